r"""A diff as a value.

Content is bytes and lines end at ``\n`` only: a ``\r``, a ``\f`` or a U+2028 is content like any
other. Paths are text with ``surrogateescape``, exactly as written, prefix components included.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, Self


class ChangeKind(StrEnum):
    """What a section of a diff does to its file."""

    MODIFY = "modify"
    ADD = "add"
    DELETE = "delete"
    RENAME = "rename"
    COPY = "copy"
    MODE = "mode"


class Line(NamedTuple):
    r"""One line of a hunk. ``text`` has its ``\n``; without one it is the last line of a file that
    does not end in a newline (``\ No newline at end of file``)."""

    op: str
    """``" "``, ``"-"`` or ``"+"``."""
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One hunk, its counts checked against its lines. ``line`` is where it stands in the diff."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[Line, ...]
    line: int = field(default=0, compare=False)

    @property
    def old(self) -> list[bytes]:
        """What must stand in the file: context and removed lines."""
        return [text for op, text in self.lines if op != "+"]

    @property
    def new(self) -> list[bytes]:
        """What stands there afterwards: context and added lines."""
        return [text for op, text in self.lines if op != "-"]

    @property
    def old_index(self) -> int:
        """The stated place: how many lines of the old file stand before the hunk. A range of no
        lines names the line *before* it (POSIX diff -u, "if the range is empty")."""
        return self.old_start - 1 if self.old_count else self.old_start

    @property
    def new_index(self) -> int:
        """The same in the new file."""
        return self.new_start - 1 if self.new_count else self.new_start

    @property
    def leading(self) -> int:
        """How many lines of context stand before the first change."""
        return next((n for n, line in enumerate(self.lines) if line.op != " "), len(self.lines))

    @property
    def trailing(self) -> int:
        """How many lines of context stand after the last change."""
        last = reversed(self.lines)
        return next((n for n, line in enumerate(last) if line.op != " "), len(self.lines))

    @property
    def has_context(self) -> bool:
        return any(line.op == " " for line in self.lines)

    def reverse(self) -> Self:
        """The hunk that undoes this one."""
        flip = {" ": " ", "-": "+", "+": "-"}
        return replace(
            self,
            old_start=self.new_start,
            old_count=self.new_count,
            new_start=self.old_start,
            new_count=self.old_count,
            lines=tuple(Line(flip[op], text) for op, text in self.lines),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One section of a diff.

    ``old_path`` is ``None`` for a file that is created, ``new_path`` for one that is deleted
    (``/dev/null``). Modes are git's (``0o100644``, ``0o100755``), ``None`` where the section says
    nothing. ``commit`` counts the diffs of a series: the changes of one number all refer to the
    same old tree, those of the next number to its result. ``unfit`` says why the section can only
    be ignored, never applied (``"a binary file"``); ``payload`` are the bytes of a binary patch.
    """

    kind: ChangeKind
    old_path: str | None
    new_path: str | None
    old_mode: int | None = None
    new_mode: int | None = None
    hunks: tuple[Hunk, ...] = ()
    commit: int = 0
    unfit: str = ""
    payload: bytes = b""
    line: int = field(default=0, compare=False)

    @property
    def path(self) -> str:
        """The path to name in messages: the new one where there is one."""
        path = self.new_path or self.old_path
        assert path is not None  # the parser refuses /dev/null on both sides
        return path

    @property
    def creates(self) -> bool:
        """Whether the new path must be free."""
        return self.kind in (ChangeKind.ADD, ChangeKind.RENAME, ChangeKind.COPY)

    @property
    def edits(self) -> bool:
        """Whether the hunks stand in a text that is there already."""
        return self.kind not in (ChangeKind.ADD, ChangeKind.DELETE)

    @property
    def removes(self) -> bool:
        """Whether nothing is left at the old path."""
        return self.kind in (ChangeKind.DELETE, ChangeKind.RENAME)

    def reverse(self) -> Self:
        """The change that undoes this one. A copy has no inverse of its own.

        Raises:
            ValueError: A copy: the caller removes its target and proves the rest by a round trip.
        """
        if self.kind is ChangeKind.COPY:
            raise ValueError("a copy is not reversed by a change")
        swap = {ChangeKind.ADD: ChangeKind.DELETE, ChangeKind.DELETE: ChangeKind.ADD}
        return replace(
            self,
            kind=swap.get(self.kind, self.kind),
            old_path=self.new_path,
            new_path=self.old_path,
            old_mode=self.new_mode,
            new_mode=self.old_mode,
            hunks=tuple(hunk.reverse() for hunk in self.hunks),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All changes of a diff, in its order. ``at`` is what it is called in messages."""

    changes: tuple[FileChange, ...]
    at: str = field(default="diff", compare=False)

    @property
    def without_context(self) -> bool:
        """Whether this was surely made with ``-U0``: no hunk of it has context, and one of them
        could not be like that otherwise (it is not the only one, or not at the first line).

        Lack of context then says nothing about where a file begins or ends.
        """
        edits = [change for change in self.changes if change.edits]
        if any(hunk.has_context for change in edits for hunk in change.hunks):
            return False
        return any(
            len(change.hunks) > 1 or hunk.old_index > 0 or hunk.new_index > 0
            for change in edits
            for hunk in change.hunks
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a diff applies: its paths, without their first ``strip`` components, are relative to
    ``root`` (a path in the image without a leading slash, ``""`` for the image's root)."""

    root: str
    strip: int

    def join(self, stripped: str) -> str:
        """The image path of a stripped path."""
        return f"{self.root}/{stripped}" if self.root else stripped


def stripped(path: str, strip: int) -> str | None:
    """``path`` without its first ``strip`` components; ``None`` where nothing would be left.

    >>> stripped("a/vllm/envs.py", 1)
    'vllm/envs.py'
    """
    parts = path.split("/")
    return "/".join(parts[strip:]) if strip < len(parts) else None
