"""One variant, closely: its base and its diffs."""

from collections.abc import Iterator, Sequence

from builder import diff
from builder.check.finding import Finding, error_at, warning_at
from builder.diff.policy import sort_out
from builder.errors import BuilderError, OfflineError, ProjectError
from builder.lock.model import ImagePin, Lock
from builder.oci import Platform
from builder.project import Project
from builder.steps.request import Materials
from builder.variant import LayoutBase, OverlayStep, PinnedBase, PullStep, Variant

_STRIPS = range(8)
"""The levels at which a diff without a stated one may be read."""


def recipe(
    project: Project, variant: Variant, lock: Lock, *, platform: Platform, materials: Materials
) -> Iterator[Finding]:
    """What is wrong with a recipe that can be read."""
    yield from _base(project, variant, lock, platform)
    yield from _diffs(project, variant, lock, materials)


def _base(project: Project, variant: Variant, lock: Lock, platform: Platform) -> Iterator[Finding]:
    if isinstance(variant.base, LayoutBase) and not project.has_directory(variant.base.layout):
        message = f"{variant.at}: base.layout: no directory {variant.base.layout!r} in the project"
        yield error_at(variant.at, ProjectError(message))
    if not isinstance(variant.base, PinnedBase) or variant.base.pin not in lock.images:
        return
    pin = lock.images[variant.base.pin]
    if lacking := tuple(_lacking(pin, platform)):
        yield warning_at(
            pin.at,
            f"locked without {', '.join(lacking)}",
            hint=f"each build asks the registry for what is missing: builder lock {pin.name}"
            " writes it down",
        )


def _lacking(pin: ImagePin, platform: Platform) -> Iterator[str]:
    known = pin.platform(platform)
    if known is None:
        yield f"a manifest for {platform}"
        return
    if known.config is None:
        yield "its config"
    if not known.layers:
        yield "its layers"
    elif any(layer.diff_id is None for layer in known.layers):
        yield "all diff_ids"


def _diffs(
    project: Project, variant: Variant, lock: Lock, materials: Materials
) -> Iterator[Finding]:
    """Diffs that are at hand: not the pinned ones, not diffs, or with globs that match nothing."""
    for step in variant.steps:
        try:
            match step:
                case PullStep(pull=name):
                    pin = lock.pulls[name]
                    strip = pin.strip if step.strip is None else step.strip
                    _refuse_dead(materials.pull(pin), step.ignore, strip, step.at)
                case OverlayStep(overlay=name):
                    if (patch := project.overlay(name).patch) is not None:
                        _refuse_dead(patch.data, patch.ignore, patch.strip, patch.at)
                case _:
                    pass
        except OfflineError:
            continue  # not at hand
        except BuilderError as error:
            yield error_at(step.at, error)


def _refuse_dead(data: bytes, ignore: Sequence[str], strip: int | None, at: str) -> None:
    parsed = diff.parse(data, at=at)
    strips = _STRIPS if strip is None else (strip,)
    dead = [set(sort_out(parsed, strip=level, ignore=ignore).dead) for level in strips]
    for glob in sorted(set.intersection(*dead)):
        raise ProjectError(
            f"{at}.ignore: {glob!r} matches no path of the diff",
            hint="remove the glob, or correct it; it is matched against the path after the strip",
        )
