"""The pins and overlays of a project: what they say, and whether anything uses them."""

from collections.abc import Iterator, Sequence

from builder.check.finding import Finding, error_at, warning_at
from builder.errors import BuilderError
from builder.lock.kinds import every_pin
from builder.lock.model import Lock
from builder.project import Project
from builder.steps.request import Materials
from builder.uses import uses
from builder.variant import OverlayStep, Variant


def local_wheels(lock: Lock, materials: Materials) -> Iterator[Finding]:
    """Wheels that stand unpacked in the project, packed anew."""
    for pin in lock.wheels.values():
        if pin.path is not None:
            try:
                materials.wheel(pin)
            except BuilderError as error:
                yield error_at(pin.at, error)


def models(lock: Lock) -> Iterator[Finding]:
    """Models that cannot be verified as a whole."""
    for pin in lock.models.values():
        hint = f"builder lock {pin.name} completes it; nothing is fetched unverified"
        if not pin.files:
            yield warning_at(pin.at, "no files are locked", hint=hint)
        elif lacking := sum(1 for file in pin.files if file.digest is None):
            said = f"{lacking} of {len(pin.files)} files are without a digest"
            yield warning_at(pin.at, said, hint=hint)
        elif lacking := sum(1 for file in pin.files if file.size is None):
            said = f"{lacking} of {len(pin.files)} files are without a size"
            yield warning_at(pin.at, said, hint=hint)


def known_failures(lock: Lock) -> Iterator[Finding]:
    """Pins that were moved although a variant failed."""
    for pin in every_pin(lock):
        if pin.failing:
            yield warning_at(
                pin.at,
                f"it was pinned although these fail with it: {', '.join(pin.failing)}",
                hint="mend or remove them, and take them off 'failing'; the next bump tries them",
            )


def unused(project: Project, lock: Lock, variants: Sequence[Variant]) -> Iterator[Finding]:
    """Pins and overlays that no variant names: dead weight that looks alive."""
    used = {key for variant in variants for key in uses(variant, lock.pulls)}
    for pin in every_pin(lock):
        if (type(pin), pin.name) not in used:
            yield warning_at(pin.at, "no variant uses it", hint="remove it, or use it")
    for name in project.overlays:
        if (OverlayStep, name) not in used:
            yield warning_at(f"overlays/{name}", "no variant uses it", hint="remove it, or use it")
