"""A bump: pins that move together, tried on every variant that uses them, and only then written.

moves    which pins, and to what            builder.moves, builder.resolve
tried    the locks as they would be, and every variant under them
write    the same bytes, unless the lock has changed meanwhile
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from builder.errors import (
    BuilderError,
    EnvironmentFault,
    IntegrityError,
    NetworkError,
    ProjectError,
    UsageError,
)
from builder.genesis.between import differences
from builder.lock.edit import file_of, put
from builder.lock.model import GenesisPin, Lock, Pin
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

_log = logging.getLogger(__name__)

UNTRIED = (IntegrityError, EnvironmentFault, NetworkError)
"""What stops a variant and says nothing of whether the pin is good: damaged bytes, this machine,
the network."""


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
    not_tried: tuple[str, ...] = ()
    """Variants that use one of the pins, or that nobody can read, and were not asked for; where
    nothing was tried, those that are recorded as failing."""
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
    def errors(self) -> tuple[BuilderError, ...]:
        """Everything that stops a variant."""
        return tuple(error for trial in self.trials for error in trial.errors)


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
        UsageError: One of the variants uses none of the pins, and would say nothing of them.
    """
    seen, files = edited(project, [move.pin for move in moves if move.changes])
    after = Project(project.root, replaced=files, acceptance=project.acceptance)
    pins = [move.pin for move in moves]
    asked = tuple(dict.fromkeys(variants))
    _check_asked(project, asked, moves)
    named = asked or tuple(users(project, pins))
    trials = tuple(
        try_variant(after, name, world=world, platform=platform, before=project) for name in named
    )
    landed, remarks = _landed(after, named, world=world)
    return Bump(
        moves=tuple(moves),
        trials=trials,
        not_tried=tuple(_others(project, pins, named)),
        landed=landed,
        remarks=(
            *(() if named else ("no variant uses it: nothing was tried",)),
            *_patch_sets(after, moves, world),
            *remarks,
        ),
        seen=seen,
        files=files,
    )


def _check_asked(project: Project, asked: tuple[str, ...], moves: Sequence[Move]) -> None:
    """Whether the variants that were named use one of the pins: the others prove nothing."""
    keys = {(type(move.pin), move.pin.name) for move in moves}
    if strange := [name for name in asked if not _uses_one(project, name, keys)]:
        pins = ", ".join(f"{move.kind} {move.pin.name}" for move in moves)
        using = ", ".join(users(project, [move.pin for move in moves]))
        raise UsageError(
            f"{', '.join(strange)} does not use {pins}, so that to try it says nothing",
            hint=f"these use it: {using}" if using else "no variant uses it",
        )


def untried(project: Project, moves: Sequence[Move]) -> Bump:
    """Moves that no variant has to be tried on: pins that are new, or only say more than before."""
    changed = [move for move in moves if move.changes]
    seen, files = edited(project, [move.pin for move in changed])
    recorded = {name for move in changed if move.before is not None for name in move.before.failing}
    return Bump(moves=tuple(moves), not_tried=tuple(sorted(recorded)), seen=seen, files=files)


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
    keys = {(type(pin), pin.name) for pin in pins}
    return (name for name in project.variants() if _uses_one(project, name, keys))


def _others(project: Project, pins: Iterable[Pin], named: tuple[str, ...]) -> Iterator[str]:
    """The variants beside ``named`` that use one of ``pins``, or cannot be read."""
    keys = {(type(pin), pin.name) for pin in pins}
    for name in project.variants():
        if name in named:
            continue
        try:
            if not _uses_one(project, name, keys):
                continue
        except ProjectError as error:
            _log.debug("%s may use it: %s", name, error.message)
        yield name


def _uses_one(project: Project, name: str, keys: set[tuple[type, str]]) -> bool:
    return not keys.isdisjoint(uses(project.variant(name), project.pulls))


def write(project: Project, bump: Bump) -> tuple[str, ...]:
    """Write the pins of a bump; returns the files that changed. Variants that fail are recorded in
    the pins; those that did before and were not tried stay so.

    Raises:
        ProjectError: A lockfile is not what it was when the bump was tried.
    """
    pins = [
        replace(move.pin, failing=(*bump.failing, *_still_failing(move, bump)))
        for move in bump.moves
        if move.changes
    ]
    return project.put_pins(pins, seen=bump.seen)


def _still_failing(move: Move, bump: Bump) -> tuple[str, ...]:
    before = () if move.before is None else move.before.failing
    return tuple(name for name in before if name in bump.not_tried)


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
    """The pull requests whose merge is in the history of a base, as far as anybody can tell; a host
    is asked once about each."""
    found: list[Landed] = []
    remarks: dict[str, None] = {}
    for (repository, number), places in _pulls(project, variants).items():
        try:
            facts = world.forge.pull(repository, number)
            if facts is None or (merge := facts.merge_commit) is None:
                continue
            for commit in dict.fromkeys(place.commit for place in places):
                if world.history.is_ancestor(repository, merge, commit):
                    found += [
                        Landed(variant=place.variant, step=place.step, pull=number, commit=merge)
                        for place in places
                        if place.commit == commit
                    ]
        except BuilderError as error:
            remarks[f"whether pull requests have landed is not known: {error.message}"] = None
    return tuple(sorted(found, key=lambda item: item.variant)), tuple(remarks)


@value
class _Place:
    """A step that applies a pull request, and the commit of vLLM below it."""

    variant: str
    step: str
    commit: str


def _pulls(project: Project, variants: Iterable[str]) -> Mapping[tuple[str, int], Sequence[_Place]]:
    """Where each pull request is applied to a base of a known commit."""
    places: dict[tuple[str, int], list[_Place]] = {}
    for name in variants:
        try:
            variant = project.variant(name)
        except ProjectError:
            continue  # said by its trial
        if not isinstance(variant.base, PinnedBase):
            continue
        vllm = project.images[variant.base.pin].vllm
        if vllm is None or vllm.commit is None:
            continue
        for step in variant.steps:
            if isinstance(step, PullStep):
                pin = project.pulls[step.pull]
                place = _Place(variant=name, step=step.name, commit=str(vllm.commit))
                places.setdefault((pin.repository, pin.pull), []).append(place)
    return places
