"""The pins of a variant whose bytes come from outside."""

from collections.abc import Iterator
from typing import TypeAlias

from builder.lock.model import GenesisPin, ImagePin, PullPin, SourcePin, WheelPin
from builder.project import Project
from builder.variant import (
    GenesisStep,
    PinnedBase,
    PullStep,
    ScriptFile,
    ScriptStep,
    SourceStep,
    Variant,
    WheelsStep,
)

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
    found: dict[tuple[type, str], OutsidePin] = {}
    if isinstance(variant.base, PinnedBase):
        pin = lock.images[variant.base.pin]
        found[ImagePin, pin.name] = pin
    for step_pin in _of_steps(project, variant):
        if not (isinstance(step_pin, WheelPin) and step_pin.path is not None):
            found.setdefault((type(step_pin), step_pin.name), step_pin)
    return tuple(found.values())


def _of_steps(project: Project, variant: Variant) -> Iterator[OutsidePin]:
    lock = project.lock_for(variant)
    for step in variant.steps:
        match step:
            case PullStep(pull=name):
                pull = lock.pulls[name]
                yield pull
                if pull.published is not None:
                    yield lock.sources[pull.published.source]
            case SourceStep(source=name):
                yield lock.sources[name]
            case ScriptStep(script=ScriptFile(source=str(name))):
                yield lock.sources[name]
            case WheelsStep(wheels=names):
                yield from (lock.wheels[name] for name in names)
            case GenesisStep(genesis=name):
                yield lock.genesis[name]
            case _:
                pass
