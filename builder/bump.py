"""A bump: pins that move together, tried on every variant that uses them, and only then written.

moves    which pins, and to what            builder.moves, builder.resolve
tried    the locks as they would be, and every variant under them
write    the same bytes, unless the lock has changed meanwhile
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from builder.errors import BuilderError
from builder.genesis.between import differences
from builder.lock.edit import file_of, put
from builder.lock.model import GenesisPin, ImagePin, Lock, Pin, PullPin
from builder.materials import PinnedMaterials
from builder.moves import Move
from builder.oci import Platform
from builder.patch_facts import facts_of
from builder.pipeline import copies_of
from builder.project import Project
from builder.trial import VariantTrial, try_variant
from builder.uses import uses
from builder.value import field, value
from builder.variant import PinnedBase, PullStep
from builder.world import World


@value
class Landed:
    """A pull request that upstream has by now, in the base of a variant."""

    variant: str
    step: str
    pull: int
    commit: str
    """The commit that brought it in, which is in the history of the base's vLLM."""


@value
class Bump:
    """Moves and what they would do. ``seen`` are the lockfiles as they were read, ``files`` as they
    would be."""

    moves: tuple[Move, ...]
    trials: tuple[VariantTrial, ...] = ()
    landed: tuple[Landed, ...] = ()
    remarks: tuple[str, ...] = ()
    """What a patch set says otherwise than before; what could not be found out."""
    seen: Mapping[str, bytes | None] = field(default_factory=dict, repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def changes(self) -> bool:
        """Whether any lock would say something else."""
        return any(move.changes for move in self.moves)

    @property
    def failing(self) -> tuple[str, ...]:
        """The variants that would not build."""
        return tuple(trial.variant for trial in self.trials if not trial.passes)

    @property
    def error(self) -> BuilderError | None:
        """The first of what stops a variant."""
        return next((error for trial in self.trials for error in trial.errors), None)


def tried(
    project: Project,
    moves: Sequence[Move],
    *,
    world: World,
    platform: Platform,
    variants: Iterable[str] = (),
) -> Bump:
    """Try moves on these variants; without names, on every one that uses one of the pins.

    Raises:
        ProjectError: A lockfile cannot be read.
    """
    seen, files = edited(project, [move.pin for move in moves if move.changes])
    after = Project(project.root, replaced=files, acceptance=project.acceptance)
    named = tuple(variants) or tuple(users(project, [move.pin for move in moves]))
    trials = tuple(
        try_variant(after, name, world=world, platform=platform, before=project) for name in named
    )
    landed, remarks = _landed(after, named, world=world)
    return Bump(
        moves=tuple(moves),
        trials=trials,
        landed=landed,
        remarks=(*_patch_sets(after, moves, world), *remarks),
        seen=seen,
        files=files,
    )


def untried(project: Project, moves: Sequence[Move]) -> Bump:
    """Moves that no variant has to be tried on: pins that are new, or only say more than before."""
    seen, files = edited(project, [move.pin for move in moves if move.changes])
    return Bump(moves=tuple(moves), seen=seen, files=files)


def edited(
    project: Project, pins: Iterable[Pin]
) -> tuple[Mapping[str, bytes | None], Mapping[str, bytes]]:
    """The lockfiles of ``pins`` as they are, and with these pins in them."""
    seen: dict[str, bytes | None] = {}
    files: dict[str, bytes] = {}
    for pin in pins:
        file = file_of(pin)
        if file not in seen:
            seen[file] = project.lockfile(file)
        files[file] = put(files.get(file, seen[file]), pin)
    return seen, files


def users(project: Project, pins: Iterable[Pin]) -> Iterator[str]:
    """The variants that use one of ``pins``, sorted."""
    wanted = {(type(pin), pin.name) for pin in pins}
    for name in project.variants():
        if wanted & set(uses(project.variant(name), project.pulls)):
            yield name


def write(project: Project, bump: Bump) -> tuple[str, ...]:
    """Write the pins of a bump; returns the files that changed. Variants that fail are recorded in
    the pins.

    Raises:
        ProjectError: A lockfile is not what it was when the bump was tried.
    """
    pins = [replace(move.pin, failing=bump.failing) for move in bump.moves if move.changes]
    return project.put_pins(pins, seen=bump.seen)


def _patch_sets(project: Project, moves: Iterable[Move], world: World) -> Iterator[str]:
    """What patch sets that move say of themselves now, beside what they said before."""
    materials = PinnedMaterials(
        lock=Lock(),
        store=world.store,
        git=lambda: world.git,
        wheels=lambda: world.wheels,
        make_sandbox=lambda: world.make_sandbox(None),
        open_copy=copies_of(project, world),
    )
    for move in moves:
        if not isinstance(move.before, GenesisPin) or not isinstance(move.pin, GenesisPin):
            continue
        try:
            old, new = (
                facts_of(pin, materials, store=world.store) for pin in (move.before, move.pin)
            )
        except BuilderError as error:
            yield f"{move.pin.name}: what changed in the patch set is not known: {error.message}"
        else:
            yield from (f"{move.pin.name}: {line}" for line in differences(old, new))


def _landed(
    project: Project, variants: Iterable[str], *, world: World
) -> tuple[tuple[Landed, ...], tuple[str, ...]]:
    """The pull requests whose merge is in the history of a base, as far as anybody can tell."""
    found: list[Landed] = []
    remarks: dict[str, None] = {}
    for name in variants:
        try:
            found += _landed_in(project, name, world=world)
        except BuilderError as error:
            remarks[f"whether pull requests have landed is not known: {error.message}"] = None
    return tuple(found), tuple(remarks)


def _landed_in(project: Project, name: str, *, world: World) -> Iterator[Landed]:
    variant = project.variant(name)
    if not isinstance(variant.base, PinnedBase):
        return
    base: ImagePin | None = project.images.get(variant.base.pin)
    commit = None if base is None or base.vllm is None else base.vllm.commit
    if commit is None:
        return
    for step in variant.steps:
        if not isinstance(step, PullStep):
            continue
        pin: PullPin = project.pulls[step.pull]
        facts = world.forge.pull(pin.repository, pin.pull)
        if facts is None or facts.merge_commit is None:
            continue
        if world.history.is_ancestor(pin.repository, facts.merge_commit, str(commit)):
            yield Landed(variant=name, step=step.name, pull=pin.pull, commit=facts.merge_commit)
