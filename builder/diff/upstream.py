"""Finds out why a diff does not apply: because the base has it already, wholly or in part.

"Already upstream" is proved, never guessed: the exact reverse of the diff applies, each hunk at
one place, and the diff applied to that result gives back the base, byte for byte.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from builder.diff.fit import Rules
from builder.diff.model import ChangeKind, FileChange, Hunk, Place
from builder.diff.series import Read, Tree, image_paths, run, touched
from builder.errors import PatchError
from builder.verdict import Verdict

_LISTED = 10
_Changes = Sequence[FileChange]


def diagnose(
    changes: _Changes, read: Read, error: PatchError, *, place: Place, at: str, rules: Rules
) -> NoReturn:
    """Raise what is true of a diff that failed with ``error``.

    Raises:
        PatchError: ``already-upstream`` where the base has all of it; ``refused`` where the base
            has some files' changes and the others would apply; else ``error``.
    """

    def is_there(part: _Changes) -> bool:
        return _is_upstream(part, read, place=place, at=at, rules=rules)

    if is_there(changes):
        raise PatchError(
            f"{at}: the base has this change already, in all of its files: "
            + _names(touched(changes, place, at=at)),
            verdict=Verdict.ALREADY_UPSTREAM,
            hint="remove the step, or mark it `until: upstream`",
        ) from error
    groups = [(group, is_there(group)) for group in _groups(changes, place, at=at)]
    there = [change for group, found in groups if found for change in group]
    rest = [change for group, found in groups if not found for change in group]
    if there and _applies(rest, read, place=place, at=at, rules=rules):
        raise PatchError(
            f"{at}: the base has a part of this change: already upstream are "
            f"{_names(touched(there, place, at=at))}; not yet "
            f"{_names(touched(rest, place, at=at))}",
            verdict=Verdict.REFUSED,
            hint="take a diff for this base",
        ) from error
    raise error


def _is_upstream(changes: _Changes, read: Read, *, place: Place, at: str, rules: Rules) -> bool:
    if not all(_shows_its_place(hunk) for c in changes if c.edits for hunk in c.hunks):
        return False
    tree = Tree(read)
    base = {path: tree.get(path) for path in touched(changes, place, at=at)}
    rules = replace(rules, strict=False)
    try:
        _run_reverse(changes, tree, place=place, at=at, rules=rules)
        before = dict(tree.now)
        if before == base:
            return False
        again = Tree(before.__getitem__)
        run(changes, again, place=place, at=at, rules=rules)
    except PatchError:
        return False
    return all(again.get(path) == file for path, file in base.items())


def _shows_its_place(hunk: Hunk) -> bool:
    """Whether both sides of a hunk have lines. Without context, the reverse of a deletion inserts
    anywhere, and the lines of an insertion may stand there for another reason."""
    return hunk.has_context or (hunk.old_count > 0 and hunk.new_count > 0)


def _run_reverse(changes: _Changes, tree: Tree, *, place: Place, at: str, rules: Rules) -> None:
    """Undo commit by commit, the last one first. Copies are removed; whether they were what the
    diff makes of their source is left to the round trip."""
    for number in sorted({change.commit for change in changes}, reverse=True):
        commit = [change for change in changes if change.commit == number]
        for change in commit:
            _, new = image_paths(change, place, at=at)
            if change.kind is ChangeKind.COPY and new is not None:
                tree.get(new)
                tree.now[new] = None
        back = [c.reverse() for c in commit if c.kind is not ChangeKind.COPY]
        run(back, tree, place=place, at=at, rules=rules)


def _applies(changes: _Changes, read: Read, *, place: Place, at: str, rules: Rules) -> bool:
    try:
        run(changes, Tree(read), place=place, at=at, rules=rules)
    except PatchError:
        return False
    return True


def _groups(changes: _Changes, place: Place, *, at: str) -> list[list[FileChange]]:
    """The changes, apart as far as no file is shared between two groups, in order."""
    parent: dict[str, str] = {}

    def head(path: str) -> str:
        while parent.setdefault(path, path) != path:
            parent[path] = path = parent[parent[path]]
        return path

    for change in changes:
        first, *others = touched([change], place, at=at)
        for other in others:
            parent[head(other)] = head(first)
    groups: dict[str, list[FileChange]] = {}
    for change in changes:
        groups.setdefault(head(touched([change], place, at=at).pop()), []).append(change)
    return list(groups.values())


def _names(paths: set[str]) -> str:
    listed = ", ".join(repr(path) for path in sorted(paths)[:_LISTED])
    return listed + (f" and {len(paths) - _LISTED} more" if len(paths) > _LISTED else "")
