"""Where a diff applies: which directory its paths start from, and how many components to strip.

The same change is published as ``a/vllm/envs.py``, as ``a/envs.py`` and as
``usr/local/lib/python3.12/dist-packages/vllm/envs.py``. A wrong guess is worst for new files: they
cannot miss. So a place is taken only when it is the only one that fits every file.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from builder.diff.model import ChangeKind, Diff, FileChange, Place, stripped
from builder.diff.names import hostile
from builder.diff.policy import Selection, refuse_build_only, select, sort_out
from builder.errors import PatchError, ProjectError
from builder.tree import parents
from builder.verdict import Verdict

_LISTED = 10
_DEEPEST = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    exists: Callable[[str], bool]
    is_directory: Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """What one place makes of the diff: which files are missing, which new ones have no home."""

    place: Place
    selection: Selection
    paths: tuple[tuple[str | None, str | None], ...]
    missing: tuple[str, ...]
    homeless: tuple[str, ...]
    found: int
    """How many files the image has that the diff changes or removes."""

    @property
    def fits(self) -> bool:
        return not (self.missing or self.homeless or self.selection.short)


def resolve(
    diff: Diff,
    *,
    exists: Callable[[str], bool],
    is_directory: Callable[[str], bool],
    roots: Sequence[str],
    root: str | None,
    strip: int | None,
    ignore: Sequence[str] = (),
) -> Place:
    """Find the only place where every file of ``diff`` is at hand, or verify the stated one.

    ``exists`` (a file) and ``is_directory`` are asked about image paths. ``roots`` are the
    directories to try where ``root`` is not stated. Two places that give every file the same path
    count as one, and the shorter strip is taken; a place at which a glob of ``ignore`` matches
    nothing does not count beside one where all do. A diff that upstream has already fits too, so
    that ``apply`` can say so.

    Raises:
        ProjectError: A stated root that leaves the image, a dead glob.
        PatchError: ``file-missing``: no place fits; the message lists what is missing under the
            nearest. ``refused``: several fit, or the diff has only new files and no stated place,
            or native sources, or a new file that would stand in no package.
    """
    image = _Image(exists=exists, is_directory=is_directory)
    if root is not None:
        root = _stated(root, diff, image)
    depth = min(_DEEPEST, max(path.count("/") for path in _all_paths(diff)))
    places = [
        Place(root=one, strip=level)
        for level in ([strip] if strip is not None else _levels(diff, depth, ignore))
        for one in ([root] if root is not None else dict.fromkeys(r.strip("/") for r in roots))
    ]
    if not places:
        raise ProjectError(f"{diff.at}: no root to try")
    sorted_out = {place.strip: sort_out(diff, strip=place.strip, ignore=ignore) for place in places}
    trials = [_try(sorted_out[place.strip], place, image) for place in places]
    is_stated = root is not None and strip is not None
    fitting = _fitting(trials, is_stated=is_stated) or _fitting(
        (_try_reverse(sorted_out[place.strip], place, image) for place in places),
        is_stated=is_stated,
    )
    if not fitting:
        _refuse(diff, trials, ignore, is_stated=is_stated)
    if len({trial.paths for trial in fitting}) > 1:
        _refuse_several(diff, fitting)
    chosen = fitting[0].place
    select(diff, strip=chosen.strip, ignore=ignore)
    return chosen


def _stated(root: str, diff: Diff, image: _Image) -> str:
    """A root that the recipe or the lock states, verified to be a directory of the image."""
    root = root.strip("/")
    if root and (fault := hostile(root)) is not None:
        raise ProjectError(f"{diff.at}: a root that {fault}: {root!r}")
    if root and not image.is_directory(root):
        raise PatchError(
            f"{diff.at}: root {root!r} is not a directory of the image",
            verdict=Verdict.FILE_MISSING,
            path=root,
        )
    return root


def _fitting(trials: Iterable[_Trial | None], *, is_stated: bool) -> list[_Trial]:
    """The trials that fit; those without a dead glob alone, where there are any."""
    fit = [item for item in trials if item is not None and item.fits and (is_stated or item.found)]
    return [item for item in fit if not item.selection.dead] or fit


def _all_paths(diff: Diff) -> list[str]:
    return [p for change in diff.changes for p in (change.old_path, change.new_path) if p]


def _try(selection: Selection, place: Place, image: _Image) -> _Trial:
    """Walk through the commits of the diff, remembering what each one creates and removes."""
    made: dict[str, bool] = {}
    missing: list[str] = []
    homeless: list[str] = []
    paths: list[tuple[str | None, str | None]] = []
    found = 0
    pending: dict[str, bool] = {}
    commit = 0
    for change in selection.kept:
        if change.commit != commit:
            made, pending, commit = made | pending, {}, change.commit
        old, new = (_join(place, path) for path in (change.old_path, change.new_path))
        paths.append((old, new))
        if old is not None:
            in_image = old not in made and image.exists(old)
            found += in_image
            if not (in_image or made.get(old)):
                missing.append(old)
            if change.removes:
                pending[old] = pending.get(old, False)
            elif change.kind is not ChangeKind.COPY and old != new:
                missing.append(f"{old} (also called {new})")
        if new is not None:
            if change.creates and not _has_home(new, place, image):
                homeless.append(new)
            pending[new] = True
    return _Trial(
        place=place,
        selection=selection,
        paths=tuple(paths),
        missing=tuple(dict.fromkeys(missing)),
        homeless=tuple(homeless),
        found=found,
    )


def _try_reverse(selection: Selection, place: Place, image: _Image) -> _Trial | None:
    """The same for the diff that undoes this one; ``None`` where it proves no place."""
    last = max((change.commit for change in selection.kept), default=0)
    kept = tuple(
        replace(_undo(change), commit=last - change.commit) for change in reversed(selection.kept)
    )
    trial = _try(replace(selection, kept=kept), place, image)
    gone = all(not image.exists(new) for old, new in trial.paths if new and new != old)
    # Files that are only created prove no place, whether they are there or not.
    proves = any(change.kind is not ChangeKind.DELETE for change in kept)
    return trial if proves and gone else None


def _levels(diff: Diff, depth: int, ignore: Sequence[str]) -> list[int]:
    """The strip levels that cut one directory off all files, not ``vllm`` off one and ``tests`` off
    another: that would put a test into the package, where a new file cannot miss."""
    return [level for level in range(depth + 1) if _cuts_alike(diff, level, ignore)]


def _cuts_alike(diff: Diff, level: int, ignore: Sequence[str]) -> bool:
    sides = {(side,) for side in "abciow"}  # what git puts before a name, mnemonicPrefix included
    cut: set[tuple[str, ...]] = set()
    for change in sort_out(diff, strip=level, ignore=ignore).kept:
        for path in (change.old_path, change.new_path):
            parts = () if path is None else tuple(path.split("/")[:level])
            cut.add(parts[1:] if parts[:1] in sides else parts)
    return len(cut - {()}) <= 1


def _undo(change: FileChange) -> FileChange:
    if change.kind is ChangeKind.COPY:
        return replace(change, kind=ChangeKind.DELETE, old_path=change.new_path, new_path=None)
    return change.reverse()


def _join(place: Place, path: str | None) -> str | None:
    name = None if path is None else stripped(path, place.strip)
    return None if name is None else place.join(name)


def _has_home(path: str, place: Place, image: _Image) -> bool:
    """Whether a new file stands beside others of its package, or in a new directory below them.

    The nearest directory that exists decides: it lies below the root, or the root is itself a
    package. ``dist-packages/config/new.py`` has no home; ``dist-packages/vllm/new/x.py`` has.
    """
    if image.is_directory(path):
        return False
    for above in reversed(parents(path)):
        if image.is_directory(above):
            if above != place.root and (not place.root or above.startswith(f"{place.root}/")):
                return True
            return bool(place.root) and image.exists(f"{place.root}/__init__.py")
        if image.exists(above):
            return False
    return False


def _refuse_several(diff: Diff, fitting: list[_Trial]) -> NoReturn:
    places = ", ".join(f"{'/' + t.place.root!r} with strip {t.place.strip}" for t in fitting)
    raise PatchError(
        f"{diff.at}: the diff fits at {len(fitting)} places: {places}",
        verdict=Verdict.REFUSED,
        hint="state root and strip",
    )


def _refuse(
    diff: Diff, trials: list[_Trial], ignore: Sequence[str], *, is_stated: bool
) -> NoReturn:
    best = min(
        trials,
        key=lambda t: (len(t.selection.short), len(t.missing) + len(t.homeless), t.place.strip),
    )
    refuse_build_only(diff, best.selection)
    if best.selection.short or not best.selection.kept:
        select(diff, strip=best.place.strip, ignore=ignore)
    total = len(best.selection.kept)
    where = f"under {'/' + best.place.root!r} with strip {best.place.strip}"
    if not best.missing and best.homeless:
        raise PatchError(
            f"{diff.at}: {best.homeless[0]!r} would be a new file outside of any package, {where}",
            verdict=Verdict.REFUSED,
            path=best.homeless[0],
            hint="state root and strip, or ignore the file if it is not part of the package",
        )
    if not best.missing and not is_stated:
        raise PatchError(
            f"{diff.at}: the diff has only new files, which fit anywhere; its place is not guessed",
            verdict=Verdict.REFUSED,
            hint="state root and strip",
        )
    listed = ", ".join(repr(path) for path in best.missing[:_LISTED])
    more = f" and {len(best.missing) - _LISTED} more" if len(best.missing) > _LISTED else ""
    lead = "the stated place does not fit" if is_stated else "no place fits"
    raise PatchError(
        f"{diff.at}: {lead}: {where}, {len(best.missing)} of {total} files are missing: "
        f"{listed}{more}",
        verdict=Verdict.FILE_MISSING,
        path=best.missing[0],
        hint="ignore what is no part of the installed package with a glob; "
        "or the base has moved the files, then take a diff for this base",
    )
