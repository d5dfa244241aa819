"""Files of keys: read with an eye on who else can, written whole."""

import logging
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from builder import durable
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
        data, mode = read_regular(path)
    except FileNotFoundError as error:
        raise UsageError(f"no file {str(path)!r}", hint="builder key list shows names") from error
    if mode & 0o077:
        told = f"{path}: others can read it (mode {stat.S_IMODE(mode):04o})"
        if not encrypted(data):
            raise PolicyError(f"{told}, and it is not encrypted", hint=f"chmod 600 {path}")
        _log.warning("%s; chmod 600 %s", told, path)
    return data


def read_regular(path: Path) -> tuple[bytes, int]:
    """The start of a file, of at most a byte more than a key may have, and its mode. A pipe is not
    waited for.

    Raises:
        FileNotFoundError: There is nothing.
        IntegrityError: It is no regular file.
        EnvironmentFault: It cannot be read.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(number).st_mode
        if not stat.S_ISREG(mode):
            os.close(number)
            raise IntegrityError(f"{path}: expected a file, got something else")
        with os.fdopen(number, "rb") as file:
            return file.read(KEY_LIMIT + 1), mode
    except FileNotFoundError:
        raise
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be read: {error.strerror}") from error


def write_whole(path: Path, data: bytes, *, mode: int, force: bool) -> None:
    """Put a file in its place, whole or not at all, never readable by more than ``mode`` says.

    Raises:
        UsageError: There is one, and no ``force``; or what is there is no file that could be
            replaced.
        EnvironmentFault: It cannot be written.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    if os.path.lexists(path) and not path.is_file():  # /dev/null is no file that anybody can spare
        raise UsageError(f"{path}: expected a file or nothing there, got something else")
    with durable.writing(path), staged(path, data, mode) as temporary:
        if force:
            durable.rename(temporary, path)
        else:
            try:
                path.hardlink_to(temporary)
            except FileExistsError as error:
                raise UsageError(
                    f"there is a file {str(path)!r}", hint="--force replaces it"
                ) from error
            durable.sync_directory(path.parent)


def staged(path: Path, data: bytes, mode: int) -> AbstractContextManager[Path]:
    """A file beside ``path``, as :func:`builder.durable.staged` has it; its name is one that
    :class:`builder.adapters.keys.Keys` cleans up."""
    return durable.staged(path.with_name(f".{path.name}.{os.getpid()}.tmp"), data, mode)
