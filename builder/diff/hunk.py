"""Reads the hunks of one section, believing neither counts nor positions before they are checked.

git and GNU patch stop at the stated count and take further lines for prose, so that a count that
is too small silently loses the end of a hunk. Here the parser of sections refuses such lines.
"""

import re

from builder.diff.cursor import TRUNCATED, Cursor
from builder.diff.model import Hunk, Line

_HEADER = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*|\r)?")
# apply.c, parse_fragment: the text behind the backslash is translated, its length is not trusted.
_NO_NEWLINE = b"\\ "
_OPS = {b" ": " ", b"-": "-", b"+": "+", b"": " "}


def read_hunks(cursor: Cursor) -> tuple[Hunk, ...]:
    """All hunks from the cursor on, in order and apart from each other.

    Raises:
        ProjectError: Counts that are wrong, hunks that overlap or go backwards, lines behind the
            end of the file, a hunk that changes nothing.
    """
    hunks: list[Hunk] = []
    old_end = new_end = 0
    while (line := cursor.line) is not None and line.startswith(b"@@"):
        if hunks and _ends_file(hunks[-1]):
            cursor.fail("a hunk after the one that ends the file")
        hunk = _read_hunk(cursor)
        if hunk.old_index < old_end or hunk.new_index < new_end:
            cursor.fail(
                f"a hunk at -{hunk.old_start} +{hunk.new_start} overlaps the one before, "
                f"which ends at -{old_end} +{new_end}",
                line=hunk.line,
            )
        old_end = hunk.old_index + hunk.old_count
        new_end = hunk.new_index + hunk.new_count
        hunks.append(hunk)
    return tuple(hunks)


def _read_hunk(cursor: Cursor) -> Hunk:
    line, number = cursor.line or b"", cursor.number
    match = _HEADER.fullmatch(line)
    if match is None:
        combined = line.startswith(b"@@@")
        cursor.fail(
            "a hunk of a combined diff (of a merge)" if combined else f"not a hunk header: {line!r}"
        )
    cursor.position += 1
    old_start, new_start = int(match[1]), int(match[3])
    old_count = 1 if match[2] is None else int(match[2])
    new_count = 1 if match[4] is None else int(match[4])
    if (old_count and not old_start) or (new_count and not new_start):
        cursor.fail(f"a hunk with lines at line 0: {line!r}", line=number)
    lines = _read_lines(cursor, old=old_count, new=new_count, header=number)
    hunk = Hunk(
        old_start=old_start,
        old_count=old_count,
        new_start=new_start,
        new_count=new_count,
        lines=lines,
        line=number,
    )
    if hunk.old == hunk.new:
        cursor.fail("a hunk that changes nothing", line=number)
    return hunk


def _read_lines(cursor: Cursor, *, old: int, new: int, header: int) -> tuple[Line, ...]:
    """The lines of one hunk; ``old`` and ``new`` are how many each side still lacks."""
    lines: list[Line] = []
    closed: set[str] = set()
    while old or new:
        line = cursor.line
        if line is None or cursor.is_cut:
            cursor.fail(
                f"the diff ends inside a hunk, {old} old and {new} new lines are missing",
                line=header,
                hint=TRUNCATED,
            )
        op = _OPS.get(line[:1])
        if op is None:
            cursor.fail(
                f"{line[:60]!r} inside the hunk of line {header}, "
                f"{old} old and {new} new lines are missing"
            )
        old -= op != "+"
        new -= op != "-"
        if old < 0 or new < 0:
            cursor.fail(f"more lines than the hunk header of line {header} counts")
        if closed & ({"-", "+"} if op == " " else {op}):
            cursor.fail("a line after the one without a newline at the end of the file")
        cursor.position += 1
        content = line[1:] + b"\n"
        if (marker := cursor.line) is not None and marker.startswith(_NO_NEWLINE):
            cursor.position += 1
            content = line[1:]
            closed |= {"-", "+"} if op == " " else {op}
            if not content:
                cursor.fail("an empty last line without a newline", line=cursor.position - 1)
        lines.append(Line(op, content))
    return tuple(lines)


def _ends_file(hunk: Hunk) -> bool:
    return any(not text.endswith(b"\n") for _, text in hunk.lines)
