"""Reads the lines that name a file in a diff, and finds the names on which all of them agree."""

from builder.diff.cursor import TRUNCATED, Cursor
from builder.diff.model import ChangeKind
from builder.diff.names import NULL, hostile, pairs, prefix_length, text, unquote, whole

FIELDS = (
    b"old mode ",
    b"new mode ",
    b"deleted file mode ",
    b"new file mode ",
    b"copy from ",
    b"copy to ",
    b"rename from ",
    b"rename to ",
    b"similarity index ",
    b"dissimilarity index ",
    b"index ",
)
"""git's extended header lines (git-diff(1), "Generating patch text")."""

Fields = dict[bytes, bytes]
Names = tuple[bytes | None, bytes | None]
"""The old and the new name; ``None`` for ``/dev/null``."""


def read_fields(cursor: Cursor) -> Fields:
    """The extended header lines from the cursor on, each at most once."""
    fields: Fields = {}
    while (line := cursor.line) is not None:
        name = next((field for field in FIELDS if line.startswith(field)), None)
        if name is None:
            break
        if name in fields:
            cursor.fail(f"a second {name.decode().strip()!r} line in one section")
        _refuse_return(cursor, line)
        if cursor.is_cut:
            cursor.fail("the diff ends inside a header", hint=TRUNCATED)
        fields[name] = line[len(name) :]
        cursor.position += 1
    return fields


def read_marks(cursor: Cursor) -> Names | None:
    """The names of ``---`` and ``+++``, ``None`` for /dev/null; ``None`` where there are none."""
    line = cursor.line
    if line is None or not line.startswith(b"--- "):
        return None
    if not cursor.following.startswith(b"+++ "):
        cursor.fail("a '---' line without a '+++' line after it")
    return _read_mark(cursor, b"--- "), _read_mark(cursor, b"+++ ")


def _read_mark(cursor: Cursor, prefix: bytes) -> bytes | None:
    line = cursor.line or b""
    _refuse_return(cursor, line)
    written = line[len(prefix) :]
    # git puts a tab behind a name with blanks, diff -u a tab and the time.
    if written.startswith(b'"'):
        found = unquote(written)
        if found is None or (found[1] and not found[1].startswith(b"\t")):
            cursor.fail(f"a name with broken quotes: {written!r}")
        name = found[0]
    else:
        name = written.partition(b"\t")[0]
    if not name:
        cursor.fail("an empty name")
    cursor.position += 1
    return None if name == NULL else name


def git_names(
    cursor: Cursor,
    written: bytes,
    fields: Fields,
    marks: Names | None,
    *,
    kind: ChangeKind,
    start: int,
) -> Names:
    """The two names, after all lines that carry names were found to agree."""
    _refuse_return_at(cursor, written, start)
    readings = pairs(written)
    if kind in (ChangeKind.RENAME, ChangeKind.COPY):
        word = kind.value.encode()
        moved = [whole(fields[word + end]) for end in (b" from ", b" to ")]
        readings = [pair for pair in readings if _are_tails(pair, moved)]
    else:
        readings = [pair for pair in readings if prefix_length(*pair) is not None]
        if marks is None and len(readings) > 1:
            readings = [pair for pair in readings if (prefix_length(*pair) or 0) <= 1]
    if marks is not None:
        absent = (kind is ChangeKind.ADD, kind is ChangeKind.DELETE)
        if tuple(mark is None for mark in marks) != absent:
            cursor.fail("/dev/null where a file stays, or a name where there is none", line=start)
        readings = [
            pair
            for pair in readings
            if all(mark in (None, name) for mark, name in zip(marks, pair, strict=True))
        ]
    if len(readings) != 1:
        fault = "does not agree with the lines below it" if not readings else "is ambiguous"
        cursor.fail(f"{b'diff --git ' + written!r:.200} {fault}", line=start)
    old, new = readings[0]
    return (
        None if kind is ChangeKind.ADD else old,
        None if kind is ChangeKind.DELETE else new,
    )


def path_of(cursor: Cursor, name: bytes | None, *, start: int) -> str | None:
    """The name as a path, if no harm can come from it."""
    if name is None:
        return None
    path = text(name)
    if (fault := hostile(path)) is not None:
        cursor.fail(f"a path that {fault}: {path!r}", line=start)
    return path


def _refuse_return(cursor: Cursor, line: bytes) -> None:
    if line.endswith(b"\r"):
        cursor.fail(
            "the header ends in a carriage return: line ends of the diff were converted",
            hint="fetch the diff again without conversion; content is compared byte for byte",
        )


def _refuse_return_at(cursor: Cursor, written: bytes, start: int) -> None:
    if written.endswith(b"\r"):
        cursor.position = start - 1
        _refuse_return(cursor, written)


def _are_tails(pair: tuple[bytes, bytes], moved: list[bytes | None]) -> bool:
    """Whether the names of ``rename from`` and ``to`` are those of the section's first line: as
    they are, or behind one prefix component each. git would believe the former alone."""
    if None in moved:
        return False
    return list(pair) == moved or [name.partition(b"/")[2] for name in pair] == moved
