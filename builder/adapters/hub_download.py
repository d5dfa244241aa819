"""Large files from the hub to their place on a disk.

A file is written under the name of its digest, so that whoever comes back after a kill finds what
is there already: it is hashed, and the rest is asked for. Only a whole and verified file gets its
name; a whole one that is another is dropped. An answer that cannot be of the file (a login page)
costs nothing of what is there.
"""

import fcntl
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from builder import durable
from builder.adapters.registry.download import resumed
from builder.adapters.registry.request import Request
from builder.adapters.registry.transport import Transport
from builder.digest import CHUNK, Hasher
from builder.errors import EnvironmentFault, IntegrityError
from builder.oci import Descriptor
from builder.upstream import WantedFile

_log = logging.getLogger(__name__)

_MEDIA_TYPE = "application/octet-stream"


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """See :meth:`builder.upstream.Hub.alone_in`. The kernel drops the lock with the process.

    Raises:
        EnvironmentFault: There is no such directory, and none can be made.
    """
    with durable.writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / "lock").open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _log.warning("%s: waiting for another download into it", directory)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def download(
    transport: Transport, request: Request, file: WantedFile, advance: Callable[[int], None]
) -> None:
    """See :meth:`builder.upstream.Hub.download`.

    Args:
        request: Asks for the whole of it.
    """
    try:
        _brought(transport, request, file, advance)
    except OSError as error:
        raise EnvironmentFault(
            f"{request.what}: {str(file.part.parent)!r}: {error.strerror}",
            hint="mend that, and run it again: it goes on where it was",
        ) from error


def _brought(
    transport: Transport, request: Request, file: WantedFile, advance: Callable[[int], None]
) -> None:
    file.part.parent.mkdir(parents=True, exist_ok=True)
    hasher = Hasher()
    with _opened(file.part, what=request.what) as part:
        _take_up(part, hasher, file.size, advance)
        descriptor = Descriptor(media_type=_MEDIA_TYPE, digest=file.digest, size=file.size)
        if hasher.size < file.size:
            for chunk in resumed(transport, request, descriptor, hasher):
                part.write(chunk)
                advance(len(chunk))
        if (got := hasher.digest()) != file.digest:
            file.part.unlink()
            raise IntegrityError(f"{request.what}: expected {file.digest}, got {got}")
        part.flush()
        os.fsync(part.fileno())
    file.target.parent.mkdir(parents=True, exist_ok=True)
    durable.rename(file.part, file.target)


def _opened(path: Path, *, what: str) -> BinaryIO:
    """What an earlier call left, or a new file: no link, through which another file would be
    written to, and nothing that waits for somebody.

    Raises:
        EnvironmentFault: Something else has its name.
    """
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise EnvironmentFault(
            f"{what}: {str(path)!r} is no regular file, and cannot have been left by a download",
            hint="remove it",
        )
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    return os.fdopen(number, "r+b")


def _take_up(part: BinaryIO, hasher: Hasher, size: int, advance: Callable[[int], None]) -> None:
    """Hash what an earlier call left. What is more than the file has is cut off."""
    part.truncate(min(size, part.seek(0, os.SEEK_END)))
    part.seek(0)
    while chunk := part.read(CHUNK):
        hasher.update(chunk)
        advance(len(chunk))
