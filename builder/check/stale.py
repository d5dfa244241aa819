"""Accepted results against the recipe as it is: as a locked build would judge them, without it."""

from collections.abc import Iterator

from builder.base import Base, environment
from builder.build_record import Build
from builder.check.at_hand import AtHand
from builder.check.finding import Finding, error_at, warning_at
from builder.errors import BuilderError, IntegrityError, OfflineError, ProjectError
from builder.image import assemble
from builder.lock.model import Result
from builder.oci import Platform
from builder.plan import Plan, plan
from builder.ports import Store
from builder.project import Project
from builder.realise import layers_of, remembered
from builder.results import compare
from builder.variant import LayoutBase, Variant


def planned(
    project: Project, variant: Variant, *, platform: Platform, at_hand: AtHand
) -> Iterator[Finding]:
    """What is wrong with the plan of a recipe that can be read, and with what was accepted for it.
    Where the base is not at hand, the plan is made without it, and says nothing of results."""
    known, base = True, None
    try:
        if not _lacks_directory(project, variant):
            base = at_hand.base(variant)
    except OfflineError:
        known = False
    except BuilderError as error:
        known = False
        yield error_at(variant.at, error)
    try:
        chain = plan(
            variant,
            project.lock_for(variant),
            overlay=project.overlay,
            platform=platform,
            base=None if base is None else base.manifest.digest,
            environment=None if base is None else environment(base.config),
        )
    except BuilderError as error:
        yield error_at(variant.at, error)
        return
    for result in _results(project, variant):
        said = None
        if known and result.platform == platform:
            said = _judged(result, chain, base, at_hand.store)
        yield from _counted(variant, result) if said is None else said


def _lacks_directory(project: Project, variant: Variant) -> bool:
    """Said with the recipe."""
    layout = variant.base
    return isinstance(layout, LayoutBase) and not project.has_directory(layout.layout)


def _results(project: Project, variant: Variant) -> tuple[Result, ...]:
    try:
        return project.results(variant.name)
    except ProjectError:
        return ()  # said of the file


def _judged(
    accepted: Result, chain: Plan, base: Base | None, store: Store
) -> tuple[Finding, ...] | None:
    """What a locked build would say; ``None`` where only one can tell."""
    name, asked = chain.variant.name, chain.derivation
    changed = accepted.derivation is not None and accepted.derivation != asked
    steps = remembered(chain, store=store)
    if steps is None:
        if not changed:
            return None if accepted.derivation is None else ()
        message = f"accepted before {name} changed: what it bakes to now is not known"
        hint = f"look at a build, then: builder accept {name}"
        return (error_at(accepted.at, IntegrityError(message, hint=hint)),)
    image = assemble(base, layers_of(steps), settings=chain.variant.image, platform=chain.platform)
    try:
        compare(Build(plan=chain, base=base, steps=steps, image=image), (accepted,))
    except IntegrityError as error:
        return (error_at(accepted.at, error),)
    if not changed:
        return ()
    what = f"accepted before {name} changed, and it bakes to the same image"
    hint = f"builder accept {name} writes down what it is made of now"
    return (warning_at(accepted.at, what, hint=hint),)


def _counted(variant: Variant, accepted: Result) -> Iterator[Finding]:
    """A result that this recipe cannot have: each step makes one layer, or none where it says
    ``until: upstream``."""
    most = len(variant.steps)
    least = sum(1 for step in variant.steps if not getattr(step, "until_upstream", False))
    if not least <= len(accepted.diff_ids) <= most:
        yield warning_at(
            accepted.at,
            f"accepted with {len(accepted.diff_ids)} layers, and the variant has {most} steps",
            hint=f"look at a build, then: builder accept {variant.name}",
        )
