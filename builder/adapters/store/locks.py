"""Locks between processes and threads, held by the kernel.

``flock(2)`` and not the filelock package: that costs 60 ms to import, which is more than a whole
build that has nothing to do, and it has no shared mode, which leases need. The kernel drops a lock
with its last descriptor, so that ``kill -9`` leaves nothing behind. Each use opens the file anew:
flock belongs to the open file, hence threads exclude each other too. Over NFS, Linux maps flock to
a record lock of the whole process: keep a store that several threads use on a local disk.

A lock file is never renamed or replaced, so that everybody locks the same inode.
"""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress

PATIENCE = 2.0
"""Seconds of waiting after which the user is told."""


def acquire(path: str, *, alone: bool, waiting: Callable[[], str]) -> int:
    """Lock ``path``, alone or together with others that share it; returns what ``release`` takes.

    ``waiting`` makes the sentence that the user is told where it takes long.
    """
    operation = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    fd = _open(path, alone=alone)
    try:
        _wait(fd, operation, waiting)
    except BaseException:  # Ctrl-C while waiting, too
        os.close(fd)
        raise
    if alone:
        # For people only, hence no matter on a full disk.
        with suppress(OSError):
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd


def release(fd: int) -> None:
    """Give a lock back."""
    try:
        # Not left to close: a forked child that has the descriptor too would keep the lock.
        fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def holder(path: str) -> str:
    """``process N``, the last to hold ``path`` alone; who still holds it, if somebody does."""
    try:
        with open(path, "rb") as file:
            pid = file.read(32).strip()
    except OSError:
        return "another process"
    return f"process {pid.decode()}" if pid.isdigit() else "another process"


def _open(path: str, *, alone: bool) -> int:
    if not alone:
        # Reading will do, and works in a store that this user may only read.
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _wait(fd: int, operation: int, waiting: Callable[[], str]) -> None:
    waited, pause = 0.0, 0.002
    while waited < PATIENCE:
        with suppress(BlockingIOError):
            fcntl.flock(fd, operation | fcntl.LOCK_NB)
            return
        time.sleep(pause)
        waited += pause
        pause = min(2 * pause, 0.05)
    # Only those who wait pay for this import: it costs more than the rest of the package.
    from logging import getLogger  # noqa: PLC0415 - as said

    getLogger(__name__).warning("%s", waiting())
    fcntl.flock(fd, operation)
