"""Work on many files at once, in threads: neither reading nor hashing holds Python's lock. Memory
is constant, whatever the size of the files."""

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import FileIO
from typing import TypeVar

from builder.digest import Digest, Hasher
from builder.ports import Task

CHUNK = 1 << 20
"""How much a thread reads at a time."""

_LOST = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT})
"""What fsync(2) says where bytes that can still be read will not be there the next time."""

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class Stopped(Exception):
    """Nobody wants the result any more."""


class Crew:
    """What the threads have in common: progress, and whether to go on."""

    def __init__(self, task: Task, stopped: threading.Event) -> None:
        self._task = task
        self._stopped = stopped

    def digest(self, file: FileIO) -> Digest:
        """The digest of a file from where it is to its end.

        Raises:
            Stopped: The work was given up.
            OSError: It cannot be read, or is not on the disk as it is read.
        """
        hasher = Hasher()
        buffer = memoryview(bytearray(CHUNK))
        _settle(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while count := file.readinto(buffer):
            hasher.update(buffer[:count])
            self.advance(count)
        return hasher.digest()

    def advance(self, count: int) -> None:
        """Tell that some bytes more are done.

        Raises:
            Stopped: The work was given up.
        """
        if self._stopped.is_set():
            raise Stopped
        self._task.advance(count)


def _settle(file: FileIO) -> None:
    """Have the kernel tell of each write from now on. Of a mapping, only the first write to a page
    gives the file a ctime, until the page is on the disk (mmap(2), MAP_SHARED)."""
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno in _LOST:
            raise


@contextmanager
def at_once(
    function: Callable[[Crew, ItemT], ResultT], items: Iterable[ItemT], *, task: Task, threads: int
) -> Iterator[Iterator[ResultT]]:
    """Call ``function`` for each item in some threads, results in the order of the items.

    When the block is left, however that comes, the threads have ended.
    """
    stopped = threading.Event()
    crew = Crew(task, stopped)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        futures = [pool.submit(function, crew, item) for item in items]
        try:
            yield (future.result() for future in futures)
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
