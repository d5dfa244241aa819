"""The pins of a variant whose bytes come from outside."""

from collections.abc import Mapping
from typing import TypeAlias

from builder.lock.model import GenesisPin, ImagePin, PullPin, SourcePin, WheelPin
from builder.project import Project
from builder.uses import uses
from builder.variant import Variant

OutsidePin: TypeAlias = ImagePin | PullPin | SourcePin | WheelPin | GenesisPin
"""The kinds of pin that are kept. Models are not: they are no part of an image."""

KINDS: dict[type, str] = {
    ImagePin: "vllm",
    PullPin: "pull",
    SourcePin: "source",
    WheelPin: "wheel",
    GenesisPin: "genesis",
}
"""What people call them."""


def pins_of(project: Project, variant: Variant) -> tuple[OutsidePin, ...]:
    """Base first, then in the order of the steps, each once. A wheel that the project has unpacked
    is at hand, and so is a base in a layout."""
    lock = project.lock_for(variant)
    pins: Mapping[type, Mapping[str, OutsidePin]] = {
        ImagePin: lock.images,
        PullPin: lock.pulls,
        SourcePin: lock.sources,
        WheelPin: lock.wheels,
        GenesisPin: lock.genesis,
    }
    found = [
        pins[kind][name] for kind, name in dict.fromkeys(uses(variant, lock.pulls)) if kind in pins
    ]
    return tuple(pin for pin in found if not (isinstance(pin, WheelPin) and pin.path is not None))
