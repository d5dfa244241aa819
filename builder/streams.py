"""Chunks on their way: counted for progress, or read as a file."""

import io
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from builder.digest import CHUNK, Digest
from builder.ports import Store, Task

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def counted(chunks: Iterator[bytes], task: Task) -> Iterator[bytes]:
    """Pass chunks through, saying how many bytes went by."""
    for chunk in chunks:
        task.advance(len(chunk))
        yield chunk


def stored(digest: Digest, store: Store) -> Iterator[bytes]:
    """A blob of the store in chunks, verified at its end."""
    with store.open(digest) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


class ChunkReader(io.RawIOBase):
    """Chunks as a file, to be read once. What the chunks raise at their end, reading raises.
    Closing it closes where they come from: who stops early leaves no connection open."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        if isinstance(self._chunks, Generator):
            self._chunks.close()
        super().close()
