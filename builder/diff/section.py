"""Reads one section of a diff: the header of a file and its hunks, to one FileChange.

The header is read as git writes it (``diff.c``, "extended header lines"); what contradicts itself
is refused, what cannot be applied to a package (binary files, links, submodules) is marked unfit.
"""

import re
from typing import NoReturn

from builder.diff.cursor import TRUNCATED, Cursor
from builder.diff.header import Fields, git_names, path_of, read_fields, read_marks
from builder.diff.hunk import read_hunks
from builder.diff.model import ChangeKind, FileChange, Hunk
from builder.diff.names import prefix_length, text

_INDEX = re.compile(rb"([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: (\d{6}))?")
_MODE_FIELDS = (b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode ")
_MODES = {b"100644": 0o100644, b"100755": 0o100755}
_TOGETHER = (
    (b"old mode ", b"new mode "),
    (b"rename from ", b"rename to "),
    (b"copy from ", b"copy to "),
)
_UNFIT = {b"120000": "a symbolic link", b"160000": "a submodule"}
# The ids of the empty blob, sha1 and sha256.
_EMPTY = (
    b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    b"473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)


def read_git_section(cursor: Cursor, *, commit: int) -> FileChange:
    """One ``diff --git`` section; the cursor stands on that line.

    Raises:
        ProjectError: Header lines that contradict each other or do nothing, hostile names.
    """
    start = cursor.number
    written = cursor.take(b"diff --git ") or b""
    fields = read_fields(cursor)
    marks = read_marks(cursor)
    payload, unfit = _read_binary(cursor)
    hunks = read_hunks(cursor) if marks is not None else ()
    if marks is not None and not hunks:
        cursor.fail("a file header without a hunk", line=start)
    kind = _kind(cursor, fields, hunks, is_binary=bool(unfit), start=start)
    old, new = git_names(cursor, written, fields, marks, kind=kind, start=start)
    index = _INDEX.fullmatch(fields.get(b"index ", b"0000..0000"))
    if index is None:
        cursor.fail(f"not an index line: {fields[b'index ']!r}", line=start)
    modes = {name: fields[name] for name in _MODE_FIELDS if name in fields}
    special = {*modes.values(), index[3]} & _UNFIT.keys()
    change = FileChange(
        kind=kind,
        old_path=path_of(cursor, old, start=start),
        new_path=path_of(cursor, new, start=start),
        old_mode=_mode(cursor, modes, b"old mode ", b"deleted file mode ", start=start),
        new_mode=_mode(cursor, modes, b"new mode ", b"new file mode ", start=start),
        hunks=hunks,
        commit=commit,
        unfit=_UNFIT[min(special)] if special else unfit,
        payload=payload,
        line=start,
    )
    _check_complete(cursor, change, fields, index)
    return change


def read_plain_section(cursor: Cursor, *, commit: int) -> FileChange:
    """One section that starts with ``---`` and ``+++``; the cursor stands on the first.

    Only ``/dev/null`` means that a file is absent: a time stamp at the epoch says nothing.

    Raises:
        ProjectError: No hunk, ``/dev/null`` twice, a creation with old lines, hostile names.
    """
    start = cursor.number
    marks = read_marks(cursor)
    assert marks is not None  # the caller has seen both lines
    old, new = marks
    if old is None and new is None:
        cursor.fail("/dev/null on both sides", line=start)
    hunks = read_hunks(cursor)
    if not hunks:
        cursor.fail("a file header without a hunk", line=start)
    kind = ChangeKind.MODIFY
    if old is None or new is None:
        kind = ChangeKind.ADD if old is None else ChangeKind.DELETE
        _check_whole(cursor, kind, hunks)
    elif prefix_length(old, new) is None:
        _mismatch(cursor, old, new, start=start)
    return FileChange(
        kind=kind,
        old_path=path_of(cursor, old, start=start),
        new_path=path_of(cursor, new, start=start),
        hunks=hunks,
        commit=commit,
        line=start,
    )


def _read_binary(cursor: Cursor) -> tuple[bytes, str]:
    if cursor.take(b"GIT binary patch") is None:
        is_binary = (cursor.line or b"").startswith(b"Binary files ")
        cursor.position += is_binary
        return b"", "a binary file without its content" if is_binary else ""
    start = cursor.position
    while cursor.line is not None and cursor.line.startswith((b"literal ", b"delta ")):
        while cursor.line:
            cursor.position += 1
        cursor.position += cursor.line is not None
    if start == cursor.position:
        cursor.fail("a binary patch without its content")
    return b"\n".join(cursor.lines[start : cursor.position]), "a binary file"


def _kind(
    cursor: Cursor,
    fields: Fields,
    hunks: tuple[Hunk, ...],
    *,
    is_binary: bool,
    start: int,
) -> ChangeKind:
    for one, other in _TOGETHER:
        if (one in fields) != (other in fields):
            wanted = f"{one.decode().strip()!r} and {other.decode().strip()!r}"
            cursor.fail(f"one of {wanted} without the other", line=start)
    said = [
        kind
        for name, kind in (
            (b"new file mode ", ChangeKind.ADD),
            (b"deleted file mode ", ChangeKind.DELETE),
            (b"rename from ", ChangeKind.RENAME),
            (b"copy from ", ChangeKind.COPY),
        )
        if name in fields
    ]
    whole = {ChangeKind.ADD, ChangeKind.DELETE}.intersection(said)
    if len(said) > 1 or (whole and b"old mode " in fields):
        cursor.fail("header lines that contradict each other", line=start)
    if said:
        if whole:
            _check_whole(cursor, said[0], hunks)
        return said[0]
    if hunks or is_binary:
        return ChangeKind.MODIFY
    if b"new mode " not in fields:
        cursor.fail(
            "a section without any operation",
            line=start,
            hint=TRUNCATED,
        )
    if fields[b"old mode "] == fields[b"new mode "]:
        cursor.fail(f"a mode change from and to {fields[b'new mode '].decode()!r}", line=start)
    return ChangeKind.MODE


def _check_whole(cursor: Cursor, kind: ChangeKind, hunks: tuple[Hunk, ...]) -> None:
    """A file that appears or goes has one hunk, with lines of one side only."""
    word, op = ("creation", "+") if kind is ChangeKind.ADD else ("deletion", "-")
    if len(hunks) > 1:
        cursor.fail(f"a second hunk in the {word} of a file", line=hunks[1].line)
    for hunk in hunks:
        if any(line.op != op for line in hunk.lines) or hunk.old_index or hunk.new_index:
            cursor.fail(f"a {word} whose hunk is not all of the file", line=hunk.line)


def _mismatch(cursor: Cursor, old: bytes, new: bytes, *, start: int) -> NoReturn:
    cursor.fail(
        f"the header names two files, {text(old)!r} and {text(new)!r}",
        line=start,
        hint="write the file's own name on both lines",
    )


def _mode(cursor: Cursor, modes: dict[bytes, bytes], *names: bytes, start: int) -> int | None:
    for name in names:
        if (value := modes.get(name)) is not None:
            if value not in _MODES and value not in _UNFIT:
                cursor.fail(
                    f"mode {value.decode('latin-1')!r}, wanted 100644 or 100755", line=start
                )
            return int(value, 8)
    return None


def _check_complete(
    cursor: Cursor, change: FileChange, fields: Fields, index: re.Match[bytes]
) -> None:
    """Refuse a section whose hunks were lost: git applies it as an empty file or a pure rename."""
    if change.hunks or change.unfit:
        return
    lost = False
    if change.kind in (ChangeKind.ADD, ChangeKind.DELETE) and b"index " in fields:
        blob = index[2] if change.kind is ChangeKind.ADD else index[1]
        lost = not any(empty.startswith(blob) for empty in _EMPTY)
    elif change.kind in (ChangeKind.RENAME, ChangeKind.COPY):
        lost = fields.get(b"similarity index ", b"100%") != b"100%"
    if lost:
        cursor.fail(
            f"{change.path!r} has content that the diff does not carry",
            line=change.line,
            hint="make the diff in full: without --irreversible-delete, not cut off",
        )
