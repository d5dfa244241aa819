"""Files that appear whole: temporary on the same file system, fsync, rename, fsync directory.

Every call goes through ``os`` by attribute and by string path: opening a store and asking it costs
microseconds, and the tests can kill the process at each of these calls.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from builder import durable
from builder.errors import EnvironmentFault

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
IRREGULAR = frozenset({errno.EINVAL, errno.ELOOP, errno.ENXIO})
"""What ``open_regular`` raises where something stands that is no regular file."""


@contextmanager
def faults(at: str) -> Iterator[None]:
    """Turn an ``OSError`` of the block into the fault that it is for a user.

    Raises:
        EnvironmentFault: With a hint that fits the error number.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            hint = "free some space, for example with `builder store gc`"
        elif error.errno in _FORBIDDEN:
            hint = "make the store writable for this user, or choose another with --store DIR"
        else:
            hint = "look at the disk, or choose another store with --store DIR"
        what = os.strerror(error.errno) if error.errno else str(error)
        where = f": {error.filename!r}" if error.filename else ""
        raise EnvironmentFault(f"{at}{where}: {what}", hint=hint) from error


def open_regular(path: str) -> int:
    """A descriptor for reading a regular file that is no link.

    Raises:
        FileNotFoundError: Nothing is there.
        OSError: One of ``IRREGULAR`` where something else is there.
    """
    # O_NONBLOCK: opening a named pipe that somebody laid here must not wait for its other end.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return fd


def read_file(path: str, *, limit: int | None = None) -> bytes | None:
    """The whole of a small regular file, or one byte more than ``limit``; ``None`` where nothing is
    there.

    Raises:
        OSError: One of ``IRREGULAR`` where something else is there.
    """
    try:
        fd = open_regular(path)
    except FileNotFoundError:
        return None
    try:
        return read_to_end(fd, limit=limit)
    finally:
        os.close(fd)


def read_to_end(fd: int, *, limit: int | None = None) -> bytes:
    """What is left of a file; with a limit, at most one byte more than that."""
    chunks: list[bytes] = []
    left = os.fstat(fd).st_size + 1 if limit is None else limit + 1
    while left > 0 and (chunk := os.read(fd, min(left, 64 << 20))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def make_directory(path: str) -> None:
    """Make a directory, durably, that others can read whatever the umask.

    A link to a directory will do too: it is where somebody wants the bytes.
    """
    if os.path.isdir(path):
        return
    try:
        os.mkdir(path, 0o755)
    except FileExistsError:
        return  # Another process was first: whether it is a directory shows on use.
    os.chmod(path, 0o755)
    durable.sync_directory(os.path.dirname(path))


class Pending:
    """A file under way in ``tmp/``: it appears under its name whole, or never.

    The name need not be secret, only new: the directory is ours.
    """

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/{os.getpid()}-{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd: int | None = os.open(self.path, flags, 0o600)
        self._there = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of ``data``."""
        if self._fd is None:
            raise RuntimeError("write after publish or drop")
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def publish(self, target: str) -> None:
        """Make the file durable and give it its name, replacing what had the name before."""
        if self._fd is None:
            raise RuntimeError("publish after publish or drop")
        os.fchmod(self._fd, 0o644)
        os.fsync(self._fd)
        fd, self._fd = self._fd, None
        os.close(fd)
        os.replace(self.path, target)
        self._there = False
        durable.sync_directory(os.path.dirname(target))

    def drop(self) -> None:
        """Forget the file if it was not published. Never raises."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with suppress(OSError):  # a full disk may say so once more here
                os.close(fd)
        if self._there:
            self._there = False
            with suppress(OSError):
                os.unlink(self.path)


def write_file(target: str, data: bytes, *, scratch: str) -> None:
    """Write a small file whole, by way of the directory ``scratch``."""
    pending = Pending(scratch)
    try:
        pending.write(data)
        pending.publish(target)
    finally:
        pending.drop()
