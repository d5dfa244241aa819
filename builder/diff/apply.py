"""Applies a diff to the files of an image in memory: every file of it, or none."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from builder.diff.fit import Rules
from builder.diff.model import Diff, Place
from builder.diff.policy import select
from builder.diff.series import Read, SourceText, Tree, run
from builder.diff.upstream import diagnose
from builder.digest import Digest
from builder.errors import PatchError
from builder.tree import parents
from builder.verdict import Verdict

__all__ = ["Applied", "AppliedFile", "SourceText", "apply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedFile:
    """What becomes of one path of the image, over all commits of the diff.

    ``pre`` is what stood at ``path`` before, ``post`` what stands there now; ``data`` is ``None``
    where the file goes. A rename gives two of these: the old path without data, and the new path
    with ``previous_path``. ``mode`` is ``None`` to keep the mode of the file at ``path``.
    ``offsets`` has a number for every hunk, 0 for one that fitted at its stated place.
    """

    path: str
    previous_path: str | None = None
    verdict: Verdict
    pre: Digest | None
    post: Digest | None
    data: bytes | None = field(repr=False)
    mode: int | None = None
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """All files that a diff changes, sorted by path, and the paths that were ignored."""

    files: tuple[AppliedFile, ...]
    ignored: tuple[str, ...]


def apply(
    diff: Diff, place: Place, *, read: Read, ignore: Sequence[str] = (), strict: bool = False
) -> Applied:
    """Apply ``diff`` at ``place``. ``read`` gives the regular file at an image path, ``None`` where
    there is none. Nothing is returned unless every hunk of every file applies.

    ``strict`` forbids that a hunk moves from its stated place.

    Raises:
        ProjectError: Dead globs, paths that ``place`` does not suit.
        PatchError: ``drift-anchor``, ``ambiguous-anchor``, ``file-missing``, ``refused`` (also:
            a target exists, nothing would change, a part is upstream), ``already-upstream``.
    """
    chosen = select(diff, strip=place.strip, ignore=ignore)
    rules = Rules(strict=strict, without_context=diff.without_context)
    read = cache(read)
    tree = Tree(read)
    try:
        run(chosen.kept, tree, place=place, at=diff.at, rules=rules)
    except PatchError as error:
        diagnose(chosen.kept, read, error, place=place, at=diff.at, rules=rules)
    changed = tree.changed
    if not changed:
        raise PatchError(
            f"{diff.at}: the diff changes nothing: its commits undo each other",
            verdict=Verdict.REFUSED,
            hint="remove the step",
        )
    _refuse_nesting(diff, tree)
    return Applied(
        files=tuple(_applied_file(tree, path) for path in changed), ignored=chosen.ignored
    )


def _applied_file(tree: Tree, path: str) -> AppliedFile:
    before, now = tree.before[path], tree.now[path]
    offsets = tree.offsets.get(path, ())
    kept_mode = now is None or (before is not None and before.mode == now.mode)
    return AppliedFile(
        path=path,
        previous_path=None if now is None else tree.origin.get(path),
        verdict=Verdict.APPLIED_WITH_OFFSET if any(offsets) else Verdict.APPLIED,
        pre=None if before is None else Digest.of(before.data),
        post=None if now is None else Digest.of(now.data),
        data=None if now is None else now.data,
        mode=None if now is None or kept_mode else now.mode,
        offsets=offsets,
    )


def _refuse_nesting(diff: Diff, tree: Tree) -> None:
    """No new file may lie below another one."""
    created = [path for path in tree.changed if tree.now[path] is not None]
    for path in created:
        for above in parents(path) if tree.before[path] is None else ():
            if tree.get(above) is not None:
                raise PatchError(
                    f"{diff.at}: {path!r} would lie below the file {above!r}",
                    verdict=Verdict.REFUSED,
                    path=path,
                )
