"""What the two sides say to each other: frames, each after its length.

Strings of a list end with a zero byte, which no path, argument or variable can have.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Source(Protocol):
        """Bytes in order."""

        def read(self, size: int, /) -> bytes:
            """Up to ``size`` bytes; fewer only at the end."""


class CutError(Exception):
    """The other side ended in the middle of a frame."""


def frame(data: bytes) -> bytes:
    """``data`` with its length before it."""
    return len(data).to_bytes(8, "big") + data


def table(strings: Iterable[str]) -> bytes:
    """A list of strings as one frame.

    Raises:
        ValueError: One of them has a zero byte.
    """
    rows = [string.encode("utf-8", "surrogateescape") for string in strings]
    for row in rows:
        if b"\0" in row:
            raise ValueError(f"a zero byte in {row!r}")
    return frame(b"".join(row + b"\0" for row in rows))


def exactly(source: Source, size: int) -> bytes:
    """The next ``size`` bytes.

    Raises:
        CutError: There are fewer.
    """
    data = source.read(size)
    if len(data) != size:
        raise CutError(f"expected {size} bytes, got {len(data)}")
    return data


def take(source: Source) -> bytes:
    """The data of the next frame."""
    return exactly(source, int.from_bytes(exactly(source, 8), "big"))


def take_table(source: Source) -> list[str]:
    """The strings of the next frame."""
    return [row.decode("utf-8", "surrogateescape") for row in take(source).split(b"\0")[:-1]]
