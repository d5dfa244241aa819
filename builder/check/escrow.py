"""Pins whose bytes are only where others may delete them."""

from collections.abc import Iterator, Mapping, Sequence

from builder.check.finding import Finding, warning_at
from builder.lock import codec
from builder.lock.kinds import KINDS, pins_of
from builder.lock.model import GenesisPin, Lock, ModelPin, Pin, PullPin, SourcePin, WheelPin
from builder.settings.model import GitMirror
from builder.uses import uses
from builder.variant import Variant

_WORDS: Mapping[str, tuple[str, str]] = {
    "vllm": ("base", "bases"),
    "pull": ("pull request", "pull requests"),
    "source": ("source", "sources"),
    "wheel": ("wheel", "wheels"),
    "genesis": ("patch set", "patch sets"),
}
"""One and several of what is kept, by the word for its kind."""
_SHOWN = 10


def unescrowed(
    lock: Lock, variants: Sequence[Variant], mirrors: Sequence[GitMirror]
) -> Iterator[Finding]:
    """One finding for each kind of pin: those that a variant needs and that nobody keeps. What
    stands in the project, unpacked or as a mirror, is kept by it; models are no part of an image.
    """
    used: dict[tuple[type, str], str] = {}
    for variant in variants:
        for key in uses(variant, lock.pulls):
            used.setdefault(key, variant.name)
    for word in _WORDS:
        lost = [
            pin
            for pin in pins_of(lock, word).values()
            if (type(pin), pin.name) in used
            and not isinstance(pin, ModelPin)
            and not pin.escrow
            and not _is_here(pin, mirrors)
        ]
        if lost:
            users = list(dict.fromkeys(used[type(pin), pin.name] for pin in lost))
            yield _finding(word, [pin.name for pin in lost], at=lost[0].at, users=users)


def _is_here(pin: Pin, mirrors: Sequence[GitMirror]) -> bool:
    match pin:
        case WheelPin():
            return pin.path is not None
        case PullPin(published=published) if published is not None:
            return True  # the source that it is a file of is named
        case PullPin() | SourcePin() | GenesisPin():
            own = [item.prefix for item in mirrors if ":" not in item.target]
            return any(pin.repository.startswith(prefix) for prefix in own)
        case _:
            return False


def _finding(word: str, names: list[str], *, at: str, users: list[str]) -> Finding:
    one, many = _WORDS[word]
    hint = f"keep them: builder escrow {' '.join(users)} --to PLACE"
    if len(names) == 1:
        lost = f"nobody keeps the bytes of this {one}: if upstream deletes it, it is lost"
        return warning_at(at, lost, hint=hint)
    shown = ", ".join(sorted(names)[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return warning_at(
        codec.kind_of(KINDS[word]).file,
        f"nobody keeps the bytes of {len(names)} {many}: if upstream deletes them, they are lost:"
        f" {shown}{more}",
        hint=hint,
    )
