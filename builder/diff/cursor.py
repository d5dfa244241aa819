"""The lines of a diff and where the parser stands in them."""

from typing import NoReturn

from builder.errors import ProjectError

TRUNCATED = "the diff is truncated; fetch it again"
_BYTES = 64 << 20
_LINES = 1_000_000
# Written by an editor or a shell that converts; the first line would pass for prose.
_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class Cursor:
    r"""Walks lines that end at ``\n`` only. Line numbers count from 1 in the whole input.

    Raises:
        ProjectError: More than any person can have read, or a byte order mark.
    """

    def __init__(self, data: bytes, *, at: str) -> None:
        if len(data) > _BYTES:
            raise ProjectError(f"{at}: a diff of {len(data)} bytes, the limit is {_BYTES}")
        if (count := data.count(b"\n")) > _LINES:
            raise ProjectError(f"{at}: a diff of {count} lines, the limit is {_LINES}")
        for mark, name in _MARKS.items():
            if data.startswith(mark):
                raise ProjectError(
                    f"{at}: the diff starts with the byte order mark of {name}: it was converted",
                    hint="fetch the diff again without conversion; it is compared byte for byte",
                )
        self.at = at
        self.lines = data.split(b"\n")
        self._is_cut = self.lines[-1] != b""
        if not self._is_cut:
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
    def is_cut(self) -> bool:
        r"""Whether the line that comes next is the last one and has no ``\n``."""
        return self._is_cut and self.number == len(self.lines)

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
