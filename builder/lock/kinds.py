"""The kinds of pins: the word for each, and where a lock has those of a kind."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from builder.lock.model import (
    GenesisPin,
    ImagePin,
    ModelPin,
    Pin,
    PullPin,
    SourcePin,
    WheelPin,
)

KINDS: Mapping[str, type[Pin]] = {
    "vllm": ImagePin,
    "genesis": GenesisPin,
    "pull": PullPin,
    "source": SourcePin,
    "wheel": WheelPin,
    "model": ModelPin,
}
"""The kinds of pins, as the command line calls them."""
_WORDS: Mapping[type, str] = {kind: word for word, kind in KINDS.items()}


class Locked(Protocol):
    """What has pins, by kind and name: a lock, or a project that reads a lockfile when it is asked
    for it."""

    @property
    def images(self) -> Mapping[str, ImagePin]: ...
    @property
    def genesis(self) -> Mapping[str, GenesisPin]: ...
    @property
    def pulls(self) -> Mapping[str, PullPin]: ...
    @property
    def sources(self) -> Mapping[str, SourcePin]: ...
    @property
    def wheels(self) -> Mapping[str, WheelPin]: ...
    @property
    def models(self) -> Mapping[str, ModelPin]: ...


def word_of(pin: Pin) -> str:
    """What the command line calls a pin's kind."""
    return _WORDS[type(pin)]


def pins_of(lock: Locked, word: str) -> Mapping[str, Pin]:
    """The pins of one of :data:`KINDS`, by name; nothing is asked about the others."""
    match word:
        case "vllm":
            return lock.images
        case "genesis":
            return lock.genesis
        case "pull":
            return lock.pulls
        case "source":
            return lock.sources
        case "wheel":
            return lock.wheels
        case "model":
            return lock.models
        case _:
            raise ValueError(f"{word!r} is no kind of pin")


def every_pin(lock: Locked) -> Iterator[Pin]:
    """All pins, in the order of :data:`KINDS`."""
    return (pin for word in KINDS for pin in pins_of(lock, word).values())
