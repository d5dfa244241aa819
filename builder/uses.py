"""Which pins and overlays a variant uses. Pure."""

from collections.abc import Iterator, Mapping

from builder.lock.model import (
    GenesisPin,
    ImagePin,
    ModelPin,
    PullPin,
    SourcePin,
    WheelPin,
)
from builder.variant import (
    GenesisStep,
    OverlayStep,
    PinnedBase,
    PullStep,
    ScriptFile,
    ScriptStep,
    SourceStep,
    Variant,
    WheelsStep,
)


def uses(variant: Variant, pulls: Mapping[str, PullPin]) -> Iterator[tuple[type, str]]:
    """The pins (by type and name) and the overlays (as :class:`OverlayStep`) that a recipe names.

    Args:
        pulls: Say which of them are published as a file of a source, which is then used, too.
    """
    if isinstance(variant.base, PinnedBase):
        yield ImagePin, variant.base.pin
    yield from ((ModelPin, name) for name in variant.models)
    for step in variant.steps:
        match step:
            case PullStep(pull=name):
                yield PullPin, name
                pin = pulls.get(name)
                if pin is not None and pin.published is not None:
                    yield SourcePin, pin.published.source
            case OverlayStep(overlay=name):
                yield OverlayStep, name
            case SourceStep(source=name):
                yield SourcePin, name
            case WheelsStep(wheels=names):
                yield from ((WheelPin, name) for name in names)
            case GenesisStep(genesis=name):
                yield GenesisPin, name
            case ScriptStep(script=ScriptFile(overlay=overlay, source=source)):
                yield (OverlayStep, overlay) if overlay else (SourcePin, source or "")
