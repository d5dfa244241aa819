"""Files that appear whole, also after a kill: written beside their place, synced, renamed.

Source: rename(2) and fsync(2): a name is on the disk when its directory is.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from builder.errors import EnvironmentFault


@contextmanager
def staged(temporary: Path, data: bytes, mode: int | None) -> Iterator[Path]:
    """A file with ``data``, on the disk, of this mode (``None``: what the umask leaves of 0666) and
    never of a wider one; gone at the end of the block, where it was not renamed.

    What a killed process left under that name is replaced.

    Raises:
        OSError: It cannot be written.
    """
    try:
        temporary.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        number = os.open(temporary, flags, 0o666 if mode is None else 0o600)
        with os.fdopen(number, "wb") as file:
            if mode is not None:
                os.fchmod(number, mode)
            file.write(data)
            file.flush()
            os.fsync(number)
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def rename(ready: Path, path: Path) -> None:
    """Give a file that is on the disk its name there, in place of what had it.

    Raises:
        OSError: It cannot be renamed.
    """
    ready.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path | str) -> None:
    """Have the names in a directory on the disk.

    Raises:
        OSError: It cannot be opened, or the disk fails.
    """
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def held(directory: Path) -> Iterator[int]:
    """Hold a directory against others who hold it, and wait for them; yields its descriptor. A
    rename within it does not replace what is locked.

    Raises:
        OSError: There is no such directory, or it cannot be opened.
    """
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield number
    finally:
        os.close(number)


@contextmanager
def writing(what: object, *, hint: str | None = None) -> Iterator[None]:
    """What the system refuses in the block is an EnvironmentFault about ``what``."""
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(f"{what}: cannot be written: {error.strerror}", hint=hint) from error
