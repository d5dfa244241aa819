"""A tar archive as a stream of 512-byte blocks, from chunks that are cut anywhere."""

from collections.abc import Iterable, Iterator
from zlib import adler32

from builder.errors import IntegrityError

BLOCK = 512


class Blocks:
    """The archive's bytes with a position, and how much of the current member is left."""

    __slots__ = (
        "_at",
        "_chunk",
        "_chunks",
        "_passed",
        "_start",
        "_view",
        "current",
        "left",
        "padding",
    )

    def __init__(self, chunks: Iterable[bytes], *, at: str) -> None:
        self._chunks = iter(chunks)
        self._at = at
        self._chunk = b""
        self._view = memoryview(b"")
        self._start = 0
        self._passed = 0
        self.current: object = None
        self.left = 0
        self.padding = 0

    @property
    def position(self) -> int:
        return self._passed + self._start

    def header(self) -> bytes:
        """The next block, after whatever is left of the current member."""
        if self.left or self.padding:
            self._skip(self.left + self.padding)
            self.left = self.padding = 0
        return self.exactly(BLOCK)

    def body(self, size: int) -> None:
        """Say that ``size`` bytes of content follow."""
        self.left = size
        self.padding = -size % BLOCK

    def exactly(self, count: int) -> bytes:
        """The next ``count`` bytes, which must fit in memory."""
        start = self._start
        end = start + count
        if end <= len(self._chunk):
            self._start = end
            return self._chunk[start:end]
        pieces = bytearray()
        while len(pieces) < count:
            pieces += self._piece(count - len(pieces))
        return bytes(pieces)

    def content(self) -> Iterator[memoryview]:
        """What is left of the current member."""
        while self.left:
            piece = self._piece(self.left)
            self.left -= len(piece)
            yield piece

    def whole(self) -> memoryview | None:
        """The content of the current member, if all of it is at hand (small ones mostly are)."""
        start = self._start
        end = start + self.left
        if end > len(self._chunk):
            return None
        self._start = end
        self.left = 0
        return self._view[start:end]

    def rest(self) -> Iterator[memoryview]:
        """Everything up to the end of the chunks."""
        yield self._view[self._start :]
        while self._next():
            yield self._view

    def _skip(self, count: int) -> None:
        while count:
            count -= len(self._piece(count))

    def _piece(self, count: int) -> memoryview:
        """At least one of the next ``count`` bytes: those that are at hand without a copy."""
        if self._start == len(self._chunk) and not self._next():
            raise IntegrityError(
                f"{self._at}: the archive is truncated at byte {self.position},"
                f" wanted {count} more bytes",
                hint="fetch it again; if it stays so, its maker did not finish it",
            )
        start = self._start
        piece = self._view[start : start + count]
        self._start = start + len(piece)
        return piece

    def _next(self) -> bool:
        self._passed += len(self._chunk)
        self._start = 0
        self._chunk = next(filter(None, self._chunks), b"")
        self._view = memoryview(self._chunk)
        return bool(self._chunk)


def checksum(header: bytes) -> int:
    """The unsigned sum of a header with its checksum field taken as blanks.

    The low half of an Adler-32 is one more than the sum of the bytes modulo 65521, exact below
    257 bytes: three calls into C instead of 512 steps of Python.
    """
    return (
        (adler32(header[:148]) & 0xFFFF)
        + (adler32(header[156:400]) & 0xFFFF)
        + (adler32(header[400:]) & 0xFFFF)
        + (8 * 0x20 - 3)
    )


def signed_checksum(header: bytes) -> int:
    """The same of signed bytes, as some old writers summed; readers accept both."""
    plain = header[:148] + b" " * 8 + header[156:]
    return sum(byte - 256 if byte > 127 else byte for byte in plain)
