"""Bytes to a Diff: unified diffs and git diffs, alone, several in a row, or in mails.

Every line of the input is accounted for: it belongs to a section, or it is prose in a place where
prose may stand. Between a hunk and the prose behind it there must be a line that no hunk could
hold, so that a count which is too small cannot hide the rest of a hunk.
"""

from dataclasses import replace

from builder.diff.cursor import Cursor
from builder.diff.mail import Part, parts, stated_size
from builder.diff.model import ChangeKind, Diff, FileChange
from builder.diff.names import prefix_length
from builder.diff.section import read_git_section, read_plain_section

_FILES = 20_000
_FOREIGN = (
    (b"diff --cc ", "a combined diff (of a merge)"),
    (b"diff --combined ", "a combined diff (of a merge)"),
    (b"@@", "a hunk without a file header"),
    (b"+++ ", "a '+++' line without a '---' line before it"),
    (b"GIT binary patch", "a binary patch without a file header"),
    (b"***************", "a context diff"),
    (b"Property changes on: ", "a change of Subversion properties, which a diff cannot carry"),
    (b"old mode 1", "a mode without a file header"),
    (b"new mode 1", "a mode without a file header"),
    (b"new file mode ", "a mode without a file header"),
    (b"deleted file mode ", "a mode without a file header"),
    (b"similarity index ", "a rename without a file header"),
)
_SIGNATURE = b"-- "


def parse(data: bytes, *, at: str) -> Diff:
    """Read a diff, strictly. ``at`` is what it is called in messages.

    Mails (``git format-patch``, ``pull/N.patch``) and ``git show`` output may hold several commits;
    their changes come in order. Nothing is normalised: carriage returns are content.

    Raises:
        ProjectError: Anything that does not follow the format, contradicts itself, does nothing,
            or names a path that no package has. The message gives the line.
    """
    cursor = Cursor(data, at=at)
    reader = _Reader(cursor)
    for part in parts(cursor):
        reader.read(part)
    if not reader.changes:
        cursor.fail("no change in the whole diff", line=1)
    return Diff(changes=_split_commits(tuple(reader.changes)), at=at)


class _Reader:
    """Reads part after part and counts commits."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.changes: list[FileChange] = []
        self._commit = 0

    def read(self, part: Part) -> None:
        """Append the changes of one part."""
        cursor = self._cursor
        cursor.position, cursor.end = part.start, part.end
        first = len(self.changes)
        self._commit += bool(self.changes)
        size: tuple[int, int, int] | None = None
        after_section = False
        while (line := cursor.line) is not None:
            if self._read_section(line):
                after_section = True
                continue
            if part.is_mail and line.rstrip() == b"---" and len(self.changes) > first:
                cursor.fail(
                    "a second '---' line, after a diff",
                    hint="the message of this mail quotes a diff; remove it from the message",
                )
            if after_section and line and line != _SIGNATURE and line[:1] in b" +-\\":
                cursor.fail(
                    f"{line[:60]!r} after the end of a hunk",
                    hint="the counts of the hunk are wrong, or it was edited by hand",
                )
            self._refuse_foreign(line)
            if part.is_mail and len(self.changes) == first:
                size = stated_size(line) or size
            if line:
                after_section = False
            if line.startswith(b"commit ") and self.changes:
                self._commit += 1
            cursor.position += 1
        if part.is_mail and len(self.changes) == first:
            cursor.fail("a mail without a diff after its '---' line", line=part.start)
        if size is not None:
            self._check_size(size, self.changes[first:])

    def _read_section(self, line: bytes) -> bool:
        cursor = self._cursor
        if line.startswith(b"diff --git "):
            change = read_git_section(cursor, commit=self._commit)
        elif line.startswith(b"--- ") and cursor.following.startswith(b"+++ "):
            change = read_plain_section(cursor, commit=self._commit)
        else:
            return False
        if len(self.changes) == _FILES:
            cursor.fail(f"more than {_FILES} sections", line=change.line)
        self.changes.append(change)
        return True

    def _refuse_foreign(self, line: bytes) -> None:
        for start, what in _FOREIGN:
            if line.startswith(start):
                self._cursor.fail(what, hint="make the diff with git diff, or diff -ruN")
        lost = line.startswith(b"Only in ") and b": " in line
        lost |= line.startswith((b"Binary files ", b"Files ")) and line.endswith(b" differ")
        lost |= line.startswith(b"File ") and b" while file " in line
        if lost:
            self._cursor.fail(
                f"a difference without its content: {line.decode('utf-8', 'replace')!r}",
                hint="make the diff with git diff, or diff -ruN --text",
            )

    def _check_size(self, stated: tuple[int, int, int], changes: list[FileChange]) -> None:
        """Hold the diff against the diffstat of its mail: a mail that was cut between two files
        is a whole diff to every other reader."""
        lines = [op for c in changes for hunk in c.hunks for op, _ in hunk.lines]
        # A binary file counts as a file, but its lines do not.
        got = (len(changes), lines.count("+"), lines.count("-"))
        if got != stated:
            self._cursor.fail(
                "the diff has {} files, {} insertions and {} deletions, ".format(*got)
                + "its mail says {}, {} and {}".format(*stated),
                line=self._cursor.end,
                hint="the mail is truncated or was edited; fetch it again, or correct its diffstat",
            )


def _split_commits(changes: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """Begin another commit where a file is changed for a second time.

    Diffs that were put one behind the other carry no mark. Within one diff every old file is
    changed at most once and every new file written at most once, so a second time is a second diff.
    """
    split: list[FileChange] = []
    olds: set[str] = set()
    news: set[str] = set()
    extra = 0
    for change in changes:
        old, new = own_names(change)
        takes = None if change.kind is ChangeKind.COPY else old
        same = bool(split) and split[-1].commit == change.commit + extra
        if not same or takes in olds or new in news or (new is None and takes in news):
            extra += same
            olds, news = set(), set()
        olds |= {takes} if takes is not None else set()
        news |= {new} if new is not None else set()
        split.append(replace(change, commit=change.commit + extra))
    return tuple(split)


def own_names(change: FileChange) -> tuple[str | None, str | None]:
    """The two names without ``a/`` and ``b/``, to tell which sections are about one file."""
    old, new = change.old_path, change.new_path
    if old is not None and new is not None and not change.creates:
        drop = (
            prefix_length(
                old.encode("utf-8", "surrogateescape"), new.encode("utf-8", "surrogateescape")
            )
            or 0
        )
        return _without(old, drop), _without(new, drop)
    return (
        None if old is None else old.removeprefix("a/"),
        None if new is None else new.removeprefix("b/"),
    )


def _without(path: str, count: int) -> str:
    return "/".join(path.split("/")[count:])
