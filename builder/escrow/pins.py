"""The pins of a variant whose bytes come from outside."""

from typing import TypeAlias

from builder.lock.kinds import every_pin
from builder.lock.model import GenesisPin, ImagePin, ModelPin, PullPin, SourcePin, WheelPin
from builder.project import Project
from builder.uses import uses
from builder.variant import Variant

OutsidePin: TypeAlias = ImagePin | PullPin | SourcePin | WheelPin | GenesisPin
"""The kinds of pin that are kept. Models are not: they are no part of an image."""


def pins_of(project: Project, variant: Variant) -> tuple[OutsidePin, ...]:
    """Base first, then in the order of the steps, each once. A wheel that the project has unpacked
    is at hand, and so is a base in a layout."""
    lock = project.lock_for(variant)
    pins = {
        (type(pin), pin.name): pin
        for pin in every_pin(lock)
        if not isinstance(pin, ModelPin)
        and not (isinstance(pin, WheelPin) and pin.path is not None)
    }
    return tuple(pins[key] for key in dict.fromkeys(uses(variant, lock.pulls)) if key in pins)
