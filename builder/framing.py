"""Gzip whose deflate blocks are *stored*: the same bytes under every zlib, for every reader.

RFC 1952 (gzip) around RFC 1951 section 3.2.4 (non-compressed blocks). No deflate library takes
part, so none can change a digest. The frame of a stream is fixed by its length alone:

- ten bytes of header: no name, mtime 0, XFL 0, OS 255 ("unknown");
- ``n // 65535`` full blocks, then a final block of the remaining ``n % 65535`` bytes. The final
  block is there also when nothing remains, so that no block has to be held back to mark it;
- crc32 and length modulo 2**32.
"""

import struct
import zlib
from typing import BinaryIO, Protocol

BLOCK = 0xFFFF
"""How many bytes a stored block holds at most: LEN has sixteen bits."""

_HEADER = struct.pack("<4BIBB", 0x1F, 0x8B, 8, 0, 0, 0, 255)
_TRAILER = struct.Struct("<II")
# A block's header: BFINAL and BTYPE=00 in the low three bits of a byte (the rest of the byte is
# skipped to the boundary), then LEN and its one's complement.
_BLOCK_HEADER = struct.Struct("<BHH")
_FULL = _BLOCK_HEADER.pack(0, BLOCK, 0)
_TOGETHER = 16
"""How many blocks are handed on in one write."""


class Sink(Protocol):
    """Where the framed bytes go: any binary file, or a blob writer."""

    def write(self, chunk: bytes, /) -> int:
        """Take all of ``chunk``."""


def read_range(blob: BinaryIO, start: int, length: int) -> bytes:
    """``length`` bytes of the stream from ``start``, read out of its frame. Not verified.

    Raises:
        EOFError: The frame ends before.
    """
    return Ranges(blob).read(start, length)


class Ranges:
    """Reads ranges of a framed stream. In the order of their starts, no block is read twice."""

    def __init__(self, blob: BinaryIO) -> None:
        self._blob = blob
        self._number = -1
        self._block = b""

    def read(self, start: int, length: int) -> bytes:
        """See :func:`read_range`."""
        first, last = start // BLOCK, (start + length + BLOCK - 1) // BLOCK
        parts = [self._at(number) for number in range(first, max(last, first + 1))]
        data = b"".join(parts)[start - first * BLOCK :][:length]
        if len(data) != length:
            raise EOFError(f"the frame ends {length - len(data)} bytes early")
        return data

    def _at(self, number: int) -> bytes:
        if number != self._number:
            self._blob.seek(framed_offset(number * BLOCK) - _BLOCK_HEADER.size)
            if len(header := self._blob.read(_BLOCK_HEADER.size)) < _BLOCK_HEADER.size:
                raise EOFError(f"no block at byte {self._blob.tell()} of the frame")
            self._number, self._block = number, self._blob.read(_BLOCK_HEADER.unpack(header)[1])
        return self._block


class StoredGzip:
    """Frames a stream on its way into ``sink``, in constant memory.

    The bytes depend on what is written, not on how the writes are cut. ``close`` ends the frame
    and leaves the sink open; without it the stream is truncated.
    """

    __slots__ = ("_crc", "_open", "_pending", "_sink", "_size")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._pending = bytearray()
        self._crc = 0
        self._size = 0
        self._open = True
        sink.write(_HEADER)

    def write(self, chunk: bytes | bytearray | memoryview) -> int:
        """Append, and return the count of bytes taken (all of them).

        Raises:
            ValueError: The frame is closed: a bug of the caller.
        """
        if not self._open:
            raise ValueError("write to a closed gzip frame")
        view = memoryview(chunk).cast("B")
        self._crc = zlib.crc32(view, self._crc)
        self._size += len(view)
        start = self._fill(view) if self._pending else 0
        while (full := min((len(view) - start) // BLOCK, _TOGETHER)) > 0:
            parts: list[bytes | memoryview] = []
            for at in range(start, start + full * BLOCK, BLOCK):
                parts += (_FULL, view[at : at + BLOCK])
            self._sink.write(b"".join(parts))
            start += full * BLOCK
        self._pending += view[start:]
        return len(view)

    def _fill(self, view: memoryview) -> int:
        """Complete the block under way from ``view``; how many bytes of it were used."""
        taken = min(BLOCK - len(self._pending), len(view))
        self._pending += view[:taken]
        if len(self._pending) == BLOCK:
            self._sink.write(_FULL + self._pending)
            self._pending.clear()
        return taken

    def close(self) -> None:
        """Write the final block and the trailer. Idempotent."""
        if not self._open:
            return
        self._open = False
        length = len(self._pending)
        last = _BLOCK_HEADER.pack(1, length, length ^ 0xFFFF)
        trailer = _TRAILER.pack(self._crc, self._size & 0xFFFFFFFF)
        self._sink.write(last + self._pending + trailer)


def framed_size(size: int) -> int:
    """How many bytes the frame of a stream of ``size`` bytes has.

    >>> framed_size(0)
    23
    """
    return framed_offset(size) + _TRAILER.size


def framed_offset(offset: int) -> int:
    """Where in the frame the byte at ``offset`` of the stream stands.

    A range of the stream that crosses blocks has a block header in the frame at every multiple of
    ``BLOCK``: bytes ``a`` to ``b`` (exclusive) lie within ``framed_offset(a)`` and
    ``framed_offset(b - 1) + 1``.

    >>> framed_offset(0), framed_offset(BLOCK - 1), framed_offset(BLOCK)
    (15, 65549, 65555)
    """
    return len(_HEADER) + _BLOCK_HEADER.size * (offset // BLOCK + 1) + offset
