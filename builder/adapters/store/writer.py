"""A blob on its way into the store, for ``builder.ports.BlobWriter``."""

from collections.abc import Callable

from builder.digest import CHUNK, Digest, Hasher
from builder.errors import IntegrityError


class BlobWriter:
    """Hashes what passes, in pieces that suit a disk; see ``builder.ports.BlobWriter``.

    Args:
        at: The place, for messages.
        write: Takes the next bytes of the file under way.
        publish: Gives the file its name, by digest and size.
    """

    def __init__(
        self,
        *,
        at: str,
        write: Callable[[bytes | bytearray], None],
        publish: Callable[[Digest, int], None],
    ) -> None:
        self._at = at
        self._write = write
        self._publish = publish
        self._hasher = Hasher()
        self._waiting = bytearray()
        self._committed = False

    def write(self, chunk: bytes | bytearray | memoryview) -> int:
        """Append; returns the count of bytes taken (all of them).

        Raises:
            RuntimeError: After ``commit``.
        """
        if self._committed:
            raise RuntimeError(f"{self._at}: write after commit")
        self._hasher.update(chunk)
        self._waiting += chunk
        if len(self._waiting) >= CHUNK:
            self._flush()
        return len(chunk)

    def commit(self, expected: Digest | None = None, *, size: int | None = None) -> Digest:
        """Make the blob visible under its digest, durably, and return it.

        Raises:
            IntegrityError: It is not ``expected``, or not ``size`` bytes; nothing is kept.
            RuntimeError: For the second time.
        """
        if self._committed:
            raise RuntimeError(f"{self._at}: commit after commit")
        got = self._hasher.digest()
        if size not in {None, self._hasher.size}:
            raise IntegrityError(f"{self._at}: expected {size} bytes, got {self._hasher.size}")
        if expected not in {None, got}:
            raise IntegrityError(
                f"{self._at}: expected {expected}, got {got} ({self._hasher.size} bytes)"
            )
        self._committed = True
        self._flush()
        self._publish(got, self._hasher.size)
        return got

    def _flush(self) -> None:
        self._write(self._waiting)
        self._waiting = bytearray()
