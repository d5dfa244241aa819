"""A blob as a stream that checks itself."""

import io
import os
from typing import TYPE_CHECKING, NoReturn

from builder.adapters.store import disk
from builder.digest import Digest, Hasher

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import WriteableBuffer


class VerifyingFile(io.RawIOBase):
    """A file that is hashed while it is read.

    The read that reaches the end raises instead of handing over the last bytes, so that a reader
    who counts bytes and never asks for more is stopped too. A seek to the start begins the check
    anew; any other seek forgoes it until then. There is no ``fileno``: what the kernel copies by
    itself (sendfile, a child's stdin) would not be checked.
    """

    def __init__(
        self, fd: int, *, at: str, digest: Digest, corrupt: "Callable[[Digest], NoReturn]"
    ) -> None:
        super().__init__()
        self._at = at
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self._digest = digest
        self._corrupt = corrupt
        self._position = 0
        self._hasher: Hasher | None = Hasher()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read into ``buffer``.

        Raises:
            IntegrityError: The end is reached and the bytes are not what the name says.
            EnvironmentFault: The disk does not give them: whoever reads for somebody else (a client
                of an engine) would take it for that one's failure.
        """
        view = memoryview(buffer).cast("B")
        with disk.faults(self._at):
            count = os.readv(self._fd, [view])
        self._position += count
        if self._hasher is not None:
            self._hasher.update(view[:count])
            ended = self._position >= self._size or (count == 0 and len(view) > 0)
            if ended and (got := self._hasher.digest()) != self._digest:
                self._corrupt(got)
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = os.lseek(self._fd, offset, whence)
        if position == 0:
            self._hasher = Hasher()
        elif position != self._position:
            self._hasher = None
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self.closed:
            os.close(self._fd)
        super().close()
