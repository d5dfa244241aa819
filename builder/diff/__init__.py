"""Diffs: an own strict parser and an applier that works in memory, all or nothing.

The stages, in the order in which they run; each is a pure function::

    parse       bytes to a Diff                       (every section, or an error with its line)
    canonical   a Diff to the digest of its meaning   (what a lock pins)
    resolve     a Diff to its Place in the image      (root and strip level, never guessed)
    apply       a Diff at its Place to new files      (or one error, and nothing)

Where ``git apply`` refuses, this refuses. Where git or GNU patch accept and lose or misplace
something (hunks after the end of the file, modes, empty files, a diff quoted in a mail, a second
candidate for a hunk), this refuses too.
"""

from builder.diff.apply import Applied, AppliedFile, SourceText, apply
from builder.diff.canonical import canonical
from builder.diff.model import ChangeKind, Diff, FileChange, Hunk, Line, Place
from builder.diff.parse import parse
from builder.diff.roots import resolve
from builder.diff.series import touched

__all__ = [
    "Applied",
    "AppliedFile",
    "ChangeKind",
    "Diff",
    "FileChange",
    "Hunk",
    "Line",
    "Place",
    "SourceText",
    "apply",
    "canonical",
    "parse",
    "resolve",
    "touched",
]
