"""Mails around diffs: only what follows the ``---`` line of each mail is the change.

A commit message may quote a diff. ``git am`` and GNU patch take it for the real one, because they
look for the first thing that reads like a diff; here the separator that ``git format-patch``
writes decides, and where it is missing nothing is guessed.
"""

import re
from dataclasses import dataclass

from builder.diff.cursor import Cursor

# mailsplit.c, is_from_line: "From", someone, a time of day and a year.
_FROM_LINE = re.compile(rb"From \S+ .*\d\d?:\d\d:\d\d .*\d{4}")
_LONGEST = 1000
_FIELD = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:")
_LONE_MAIL = (b"From: ", b"Subject: ", b"Date: ", b"Message-Id: ", b"Message-ID: ")
_SECTION = (b"diff --git ", b"diff --cc ", b"diff --combined ", b"--- ", b"Index: ")
_STAT = re.compile(
    rb" (\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?"
)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of lines (from, to, counting from 0) that holds one diff of a series."""

    start: int
    end: int
    is_mail: bool


def parts(cursor: Cursor) -> list[Part]:
    """The stretches of the input that may hold changes: all of it, or one for each mail.

    Raises:
        ProjectError: A mail with a diff and no separator, or one that is encoded.
    """
    lines = cursor.lines
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    starts = [n for n in range(first, len(lines)) if _starts_mail(lines, n)]
    if first not in starts:
        if first == len(lines) or not lines[first].startswith(_LONE_MAIL):
            return [Part(0, len(lines), is_mail=False)]
        starts.insert(0, first)
    ends = [*starts[1:], len(lines)]
    found = [_body(cursor, start, end) for start, end in zip(starts, ends, strict=True)]
    return [part for part in found if part is not None]


def stated_size(line: bytes) -> tuple[int, int, int] | None:
    """Files, insertions and deletions, if ``line`` is the sum of a diffstat."""
    match = _STAT.fullmatch(line)
    return None if match is None else (int(match[1]), int(match[2] or 0), int(match[3] or 0))


def _starts_mail(lines: list[bytes], n: int) -> bool:
    # The line below must be a header field: a message may quote a "From " line too.
    return (
        lines[n].startswith(b"From ")
        and len(lines[n]) < _LONGEST
        and n + 1 < len(lines)
        and _FROM_LINE.match(lines[n]) is not None
        and _FIELD.match(lines[n + 1]) is not None
    )


def _body(cursor: Cursor, start: int, end: int) -> Part | None:
    """The part of a mail after its separator; ``None`` for a mail without a diff (a cover)."""
    lines = cursor.lines
    blank = next((n for n in range(start, end) if not lines[n].strip()), end)
    for n in range(start, blank):
        name, _, value = lines[n].lower().partition(b":")
        coded = name == b"content-transfer-encoding" and value.strip() not in (b"7bit", b"8bit")
        if coded or (name == b"content-type" and b"multipart" in value):
            cursor.fail(
                f"a mail with {lines[n].decode('utf-8', 'replace')!r}, wanted plain 7bit or 8bit",
                line=n + 1,
                hint="save the change as git made it: git format-patch, or the .diff of the pull",
            )
    for n in range(blank, end):
        if lines[n].rstrip() == b"---":
            return Part(n + 1, end, is_mail=True)
    for n in range(blank, end):
        if lines[n].startswith(_SECTION):
            cursor.fail(
                f"the mail of line {start + 1} has a diff and no '---' line before it",
                line=n + 1,
                hint="without the separator a diff that the message quotes cannot be told from "
                "the change; put '---' on a line of its own between them",
            )
    return None
