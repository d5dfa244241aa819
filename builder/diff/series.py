"""Runs the commits of a diff over a tree in memory.

The changes of one commit all read the tree before it: two files may swap their names, and a copy
takes the source as it was. The next commit reads the result. (``git apply`` reads the files on
disk for every rename and copy, so that the edits of an earlier commit in the same input are lost.)
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NoReturn

from builder.diff.fit import Rules, fit
from builder.diff.model import ChangeKind, FileChange, Place, stripped
from builder.errors import PatchError, ProjectError
from builder.verdict import Verdict

_EXECUTABLE = 0o111


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A regular file: its bytes and its permission bits."""

    data: bytes = field(repr=False)
    mode: int = 0o644

    @property
    def executable(self) -> bool:
        return bool(self.mode & _EXECUTABLE)


Read = Callable[[str], SourceText | None]


class Tree:
    """The files of the image as the commits change them; each is read at most once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.before: dict[str, SourceText | None] = {}
        self.now: dict[str, SourceText | None] = {}
        self.origin: dict[str, str] = {}
        """Where a renamed file comes from, in the image."""
        self.offsets: dict[str, tuple[int, ...]] = {}

    def get(self, path: str) -> SourceText | None:
        """The file as it is now, ``None`` where there is none."""
        if path not in self.now:
            self.before[path] = self.now[path] = self._read(path)
        return self.now[path]

    @property
    def changed(self) -> list[str]:
        """The paths whose file is not what it was, sorted."""
        return sorted(path for path, file in self.now.items() if file != self.before[path])


def run(changes: Sequence[FileChange], tree: Tree, *, place: Place, at: str, rules: Rules) -> None:
    """Apply ``changes`` to ``tree``, commit by commit. On an error the tree is of no use.

    Raises:
        PatchError: The verdict of the first change that does not apply.
        ProjectError: A section that calls one file by two names.
    """
    for _, commit in groupby(changes, key=lambda change: change.commit):
        _run_commit(list(commit), tree, place=place, at=at, rules=rules)


def _run_commit(
    commit: list[FileChange], tree: Tree, *, place: Place, at: str, rules: Rules
) -> None:
    results = []
    for change in commit:
        old, new = image_paths(change, place, at=at)
        source = None if old is None else _source(change, tree, old, at=at)
        results.append(
            (change, old, new, _edit(change, source, path=new or old or "", at=at, rules=rules))
        )
    gone = {old for change, old, _, _ in results if change.removes and old is not None}
    for change, _, new, _ in results:
        if new is not None and change.creates and new not in gone and tree.get(new) is not None:
            _refuse(change, new, "exists already", at=at)
    came_from = {path: (tree.origin.get(path, path), tree.offsets.get(path, ())) for path in gone}
    for path in gone:
        tree.now[path] = None
        tree.origin.pop(path, None)
        tree.offsets.pop(path, None)
    for change, old, new, (file, offsets) in results:
        if new is None:
            continue
        tree.get(new)
        tree.now[new] = file
        earlier = tree.offsets.get(new, ())
        if change.kind is ChangeKind.RENAME and old is not None:
            tree.origin[new], earlier = came_from[old]
        tree.offsets[new] = earlier + offsets


def _source(change: FileChange, tree: Tree, path: str, *, at: str) -> SourceText:
    source = tree.get(path)
    if source is None:
        raise PatchError(
            f"{at}:{change.line}: {path!r} does not exist, and the diff wants to {change.kind} it",
            verdict=Verdict.FILE_MISSING,
            path=path,
            hint="the base has moved or removed the file: take a diff for this base",
        )
    return source


def _edit(
    change: FileChange, source: SourceText | None, *, path: str, at: str, rules: Rules
) -> tuple[SourceText, tuple[int, ...]]:
    """The file after the change, and the offsets of its hunks."""
    if change.kind is ChangeKind.ADD or source is None:
        data = b"".join(text for hunk in change.hunks for text in hunk.new)
        return SourceText(data=data, mode=_with_mode(0o644, change.new_mode)), ()
    if change.kind is ChangeKind.DELETE:
        _check_deletion(change, source, path, at=at)
        return source, ()
    mode = _with_mode(source.mode, change.new_mode)
    if change.kind is ChangeKind.MODE and mode == source.mode:
        raise PatchError(
            f"{at}:{change.line}: {path!r} has mode {mode:04o} already",
            verdict=Verdict.DRIFT_ANCHOR,
            path=path,
        )
    fitted = fit(source.data, change.hunks, path=path, at=at, rules=rules)
    return SourceText(data=fitted.data, mode=mode), fitted.offsets


def _check_deletion(change: FileChange, source: SourceText, path: str, *, at: str) -> None:
    data = b"".join(text for hunk in change.hunks for text in hunk.old)
    if source.data == data:
        return
    got, wanted = source.data.split(b"\n"), data.split(b"\n")
    line = next(
        (n for n, (one, other) in enumerate(zip(got, wanted, strict=False)) if one != other),
        min(len(got), len(wanted)) - 1,
    )
    raise PatchError(
        f"{at}:{change.line}: {path!r} is to be deleted and is not the file that the diff shows, "
        f"they differ from line {line + 1}",
        verdict=Verdict.DRIFT_ANCHOR,
        path=path,
        hint="the base differs from the one that the diff was made for: take a diff for this base",
    )


def _with_mode(mode: int, wanted: int | None) -> int:
    """Git knows one bit: who may read may execute, or nobody may."""
    if wanted is None:
        return mode
    if wanted & _EXECUTABLE:
        return mode if mode & _EXECUTABLE else mode | (mode & 0o444) >> 2
    return mode & ~_EXECUTABLE


def image_paths(change: FileChange, place: Place, *, at: str) -> tuple[str | None, str | None]:
    """Where the two names of a change lead in the image.

    Raises:
        ProjectError: Too few components for the strip, or one file under two names.
    """
    old, new = (
        _image_path(change, path, place, at=at) for path in (change.old_path, change.new_path)
    )
    if change.kind in (ChangeKind.MODIFY, ChangeKind.MODE) and old != new:
        raise ProjectError(
            f"{at}:{change.line}: strip {place.strip} leaves two names for one file, "
            f"{old!r} and {new!r}"
        )
    return old, new


def _image_path(change: FileChange, path: str | None, place: Place, *, at: str) -> str | None:
    if path is None:
        return None
    name = stripped(path, place.strip)
    if name is None:
        raise ProjectError(
            f"{at}:{change.line}: {path!r} has too few components for strip {place.strip}"
        )
    return place.join(name)


def _refuse(change: FileChange, path: str, what: str, *, at: str) -> NoReturn:
    raise PatchError(
        f"{at}:{change.line}: {path!r} {what}, and the diff wants to {change.kind} it",
        verdict=Verdict.REFUSED,
        path=path,
        hint="the base has a file of that name: take a diff for this base",
    )


def touched(changes: Iterable[FileChange], place: Place, *, at: str) -> set[str]:
    """Every image path that ``changes`` name."""
    return {path for c in changes for path in image_paths(c, place, at=at) if path is not None}
