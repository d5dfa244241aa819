"""Files that a person names for us to read: within a limit, and without waiting for nobody."""

import os
import select
import stat
from pathlib import Path

from builder.errors import UsageError

WAIT = 2.0
"""How many seconds somebody who is to write into a named pipe has to open it. Whoever has opened
it, as a shell's ``<(...)`` has, may take as long as it takes."""


def read_given(path: Path, *, limit: int, at: str | None = None) -> bytes:
    """The bytes of a file, a device or a pipe: all of them, or one more than ``limit``.

    Args:
        at: What it is called in messages (default: its path).

    Raises:
        UsageError: It cannot be read, or is a pipe that nobody writes into.
    """
    at = at or str(path)
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb", buffering=0):
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                _await_writer(number, at=at)
            os.set_blocking(number, True)
            return _read(number, limit + 1)
    except OSError as error:
        raise UsageError(f"{at}: cannot be read: {error.strerror}") from error


def _await_writer(number: int, *, at: str) -> None:
    """Wait until there is something in a pipe, or somebody who holds it open."""
    poll = select.poll()
    poll.register(number, select.POLLIN)
    if poll.poll(1000 * WAIT):
        return
    try:  # without a writer a pipe is at its end; nothing is in it, or the wait had ended
        os.read(number, 1)
    except BlockingIOError:
        return
    raise UsageError(f"{at}: a named pipe that nobody writes into", hint="give a file")


def _read(number: int, most: int) -> bytes:
    chunks: list[bytes] = []
    while most > 0 and (chunk := os.read(number, most)):
        chunks.append(chunk)
        most -= len(chunk)
    return b"".join(chunks)
