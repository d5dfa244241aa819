"""Files of keys: read with an eye on who else can, written whole."""

import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from builder.errors import EnvironmentFault, IntegrityError, PolicyError, UsageError
from builder.keys.public import KEY_LIMIT

_log = logging.getLogger(__name__)


def read_private_file(path: Path, *, encrypted: Callable[[bytes], bool]) -> bytes:
    """The bytes of a private key's file.

    Raises:
        UsageError: There is no such file.
        PolicyError: Others can read it, and it is not encrypted.
        IntegrityError: It is no regular file, or too large.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UsageError(f"no file {str(path)!r}", hint="builder key list shows names") from error
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be read: {error.strerror}") from error
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        raise IntegrityError(f"{path}: expected a file, got something else")
    with os.fdopen(number, "rb") as file:
        data = file.read(KEY_LIMIT + 1)
    if mode & 0o077:
        told = f"{path}: others can read it (mode {stat.S_IMODE(mode):04o})"
        if not encrypted(data):
            raise PolicyError(f"{told}, and it is not encrypted", hint=f"chmod 600 {path}")
        _log.warning("%s; chmod 600 %s", told, path)
    return data


def write_whole(path: Path, data: bytes, *, mode: int, force: bool) -> None:
    """Put a file in its place, whole or not at all, never readable by more than ``mode`` says.

    Raises:
        UsageError: There is one, and no ``force``.
        EnvironmentFault: It cannot be written.
    """
    with writing(path), staged(path, data, mode) as temporary:
        if force:
            temporary.replace(path)
        else:
            try:
                path.hardlink_to(temporary)
            except FileExistsError as error:
                raise UsageError(
                    f"there is a file {str(path)!r}", hint="--force replaces it"
                ) from error
        sync(path.parent)


@contextmanager
def staged(path: Path, data: bytes, mode: int) -> Iterator[Path]:
    """A file with ``data`` beside the place where it is to be, on the disk; gone at the end of the
    block, where it was not put there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system refuses in the block is an EnvironmentFault about ``path``."""
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be written: {error.strerror}") from error


def sync(path: Path) -> None:
    """Have what was renamed in a directory on the disk."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
