"""The lines of a diff and where the parser stands in them."""

from typing import NoReturn

from builder.errors import ProjectError

_BYTES = 64 << 20


class Cursor:
    r"""Walks lines that end at ``\n`` only. Line numbers count from 1 in the whole input.

    ``cut`` says that the last line has no ``\n``: inside a hunk that is a truncated diff.

    Raises:
        ProjectError: More bytes than any diff that a person can have read.
    """

    def __init__(self, data: bytes, *, at: str) -> None:
        if len(data) > _BYTES:
            raise ProjectError(f"{at}: a diff of {len(data)} bytes, the limit is {_BYTES}")
        self.at = at
        self.lines = data.split(b"\n")
        self.cut = self.lines[-1] != b""
        if not self.cut:
            self.lines.pop()
        self.position = 0
        self.end = len(self.lines)

    @property
    def line(self) -> bytes | None:
        r"""The line that comes next, without its ``\n``; ``None`` at the end."""
        return self.lines[self.position] if self.position < self.end else None

    @property
    def following(self) -> bytes:
        """The line after that; empty at the end."""
        after = self.position + 1
        return self.lines[after] if after < self.end else b""

    @property
    def number(self) -> int:
        return self.position + 1

    def take(self, prefix: bytes) -> bytes | None:
        """The rest of the next line if it starts with ``prefix``, moving past it."""
        line = self.line
        if line is None or not line.startswith(prefix):
            return None
        self.position += 1
        return line[len(prefix) :]

    def fail(self, message: str, *, line: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise ProjectError about a line, the next one unless ``line`` says otherwise."""
        raise ProjectError(f"{self.at}:{line or self.number}: {message}", hint=hint)
