"""What a variant would come to, step by step, without stopping at the first that fails.

How pins are tried before they are written: the project is one whose lockfiles are replaced
(:class:`builder.project.Project`), so that what is tried is what will be read. Nothing is
referenced in the store, and nothing in the project changes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain as concatenated

from builder.base import Base
from builder.digest import Digest
from builder.errors import BuilderError, GoneError, NetworkError, OfflineError, PatchError
from builder.image import assemble
from builder.oci import Platform
from builder.outcome import FileOutcome, Output, PatchOutcome, PatchState
from builder.pipeline import admitted, chained, materials, obtain
from builder.plan import Plan, PlannedStep
from builder.ports import Registry
from builder.project import Project
from builder.realise import Failed, Realised, attempt
from builder.steps.request import Materials
from builder.traces import recall
from builder.value import field, value
from builder.verdict import Verdict
from builder.world import World


@value
class StepTrial:
    """One step of a variant under trial.

    ``before`` is what it came to under the pins as they are, where the store remembers; ``below``
    the first failed step under it, without which it was tried.
    """

    step: PlannedStep
    output: Output | None = field(repr=False)
    error: BuilderError | None = None
    before: Output | None = field(default=None, repr=False)
    below: str | None = None

    @property
    def verdict(self) -> str:
        """A word of :class:`~builder.verdict.Verdict`: the worst of its files; or why nobody can
        tell: ``gone``, ``unavailable``."""
        if self.error is not None:
            return _of_error(self.error)
        if self.output is None or self.output.layer is None:
            return str(Verdict.ALREADY_UPSTREAM)
        moved = any(file.verdict == Verdict.APPLIED_WITH_OFFSET for file in self.output.files)
        return str(Verdict.APPLIED_WITH_OFFSET if moved else Verdict.APPLIED)

    @property
    def passes(self) -> bool:
        """Whether a build would get past it."""
        return self.error is None

    @property
    def changed_below(self) -> tuple[str, ...]:
        """The files that it writes and that are not as it found them before: what upstream, or a
        step below, has changed under it."""
        if self.output is None or self.before is None:
            return ()
        old = {file.path: file.pre for file in self.before.files}
        files = self.output.files
        return tuple(f.path for f in files if f.path in old and old[f.path] != f.pre)

    @property
    def changed(self) -> tuple[str, ...]:
        """The files that come out differently than before."""
        if self.output is None or self.before is None:
            return ()
        old, new = _posts(self.before.files), _posts(self.output.files)
        return tuple(path for path in sorted({*old, *new}) if old.get(path) != new.get(path))

    @property
    def patches(self) -> tuple[str, ...]:
        """The patches of a patch set whose outcome changed: ``P67: applied -> failed``; or its
        reason, for one that does nothing as before: it was off, and is retired."""
        if self.output is None or self.before is None:
            return ()
        old = {item.name: item for item in self.before.patches}
        new = {item.name: item for item in self.output.patches}
        pairs = ((name, old.get(name), new.get(name)) for name in sorted({*old, *new}))
        return tuple(f"{name}: {said}" for name, *pair in pairs if (said := _differ(*pair)))


def _differ(old: PatchOutcome | None, new: PatchOutcome | None) -> str | None:
    """What a patch did and does; ``None`` where that is the same."""
    before, after = (str(item.state) if item else "not there" for item in (old, new))
    if before != after:
        return f"{before} -> {after}"
    if old and new and old.state is PatchState.SKIPPED and old.why != new.why:
        return f"{before} ({old.why}) -> {after} ({new.why})"
    return None


def _posts(files: tuple[FileOutcome, ...]) -> Mapping[str, Digest | None]:
    return {file.path: file.post for file in files}


def _of_error(error: BuilderError) -> str:
    match error:
        case PatchError():
            return str(error.verdict)
        case GoneError():
            return "gone"
        case NetworkError():
            return "unavailable"
        case _:
            return str(Verdict.REFUSED)


@value
class VariantTrial:
    """One variant under trial.

    ``refusals`` are what stops it whatever its steps do: a recipe that cannot be planned, a base
    that cannot be had, a patch set that does not list it. ``image`` is the digest that a build
    would give, where every step passes; ``size`` the bytes of its layers in a registry.
    """

    variant: str
    steps: tuple[StepTrial, ...] = ()
    refusals: tuple[BuilderError, ...] = ()
    warnings: tuple[str, ...] = ()
    image: Digest | None = None
    size: int | None = None
    accepted: Digest | None = None
    """What a person accepted, on this platform."""

    @property
    def passes(self) -> bool:
        """Whether a build would succeed."""
        return not self.refusals and all(step.passes for step in self.steps)

    @property
    def errors(self) -> tuple[BuilderError, ...]:
        """Everything that stops it, from the bottom."""
        failed = (step.error for step in self.steps if step.error is not None)
        return tuple(concatenated(self.refusals, failed))


def try_variant(
    project: Project,
    name: str,
    *,
    world: World,
    platform: Platform,
    before: Project | None = None,
) -> VariantTrial:
    """Try ``name`` as ``project`` has it; ``before`` is the project as it is."""
    try:
        variant = project.variant(name)
        base = obtain(project, variant, world=world, platform=platform)
        chain = chained(project, variant, platform=platform, base=base, strict=False)
    except BuilderError as error:
        return VariantTrial(variant=name, refusals=(error,))
    bytes_of = materials(project, variant, world, base)
    refusals, warnings = _ruled(project, chain, base, world=world, materials=bytes_of)
    remembered = {} if before is None else _remembered(before, name, world, platform)
    tried = attempt(
        chain,
        base,
        store=world.store,
        materials=bytes_of,
        progress=world.progress,
    )
    accepted = (item for item in project.results(name) if item.platform == platform)
    trial = VariantTrial(
        variant=name,
        steps=tuple(_steps(tried, remembered)),
        refusals=refusals,
        warnings=warnings,
        accepted=next((item.digest for item in accepted), None),
    )
    return _imaged(trial, chain, base) if trial.passes else trial


def _imaged(trial: VariantTrial, chain: Plan, base: Base | None) -> VariantTrial:
    """With the image that a build would give."""
    image = assemble(
        base,
        [
            (f"builder {item.step.kind} {item.step.name}", item.output.layer)
            for item in trial.steps
            if item.output is not None and item.output.layer is not None
        ],
        settings=chain.variant.image,
        platform=chain.platform,
    )
    size = sum(layer.size for layer in image.manifest.layers)
    return replace(trial, image=image.digest, size=size)


def _ruled(
    project: Project, chain: Plan, base: Base | None, *, world: World, materials: Materials
) -> tuple[tuple[BuilderError, ...], tuple[str, ...]]:
    """What the allowlist and the lint say: what refuses a build, and what is only told."""
    try:
        rulings = admitted(project, chain, base, world=world, materials=materials, enforced=False)
    except BuilderError as error:
        return (error,), ()
    return (
        tuple(item.error(ruling.at) for ruling in rulings for item in ruling.errors),
        tuple(f"{item.rule}: {item.message}" for ruling in rulings for item in ruling.warnings),
    )


def _remembered(
    project: Project, name: str, world: World, platform: Platform
) -> Mapping[str, Output]:
    """What each step came to under the pins as they are, as far as the store knows. Nothing is
    fetched for it."""

    def unasked() -> Registry:
        raise OfflineError("what was before is not asked for")

    at_hand = replace(world, make_registry=unasked)
    try:
        variant = project.variant(name)
        base = obtain(project, variant, world=at_hand, platform=platform)
        chain = chained(project, variant, platform=platform, base=base, strict=False)
    except BuilderError:
        return {}
    outputs = ((step.name, recall(step.derivation, world.store)) for step in chain.steps)
    return {step: output for step, output in outputs if output is not None}


def _steps(
    tried: tuple[Realised | Failed, ...], remembered: Mapping[str, Output]
) -> Iterator[StepTrial]:
    below = None
    for item in tried:
        before = remembered.get(item.step.name)
        if isinstance(item, Realised):
            yield StepTrial(step=item.step, output=item.output, before=before, below=below)
        else:
            yield StepTrial(
                step=item.step, output=None, error=item.error, before=before, below=below
            )
            below = below or item.step.name
