"""Whole files: the guards that ``overlay`` and ``source`` steps share.

A whole file carries no context, so its guard is the pre-image: the sha256 of the file that it
replaces, or the statement that there is none. Anything else would silently undo what upstream did
in between.
"""

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from builder.changes import Change, Inline, Put, Remove
from builder.digest import Digest
from builder.errors import PatchError
from builder.outcome import FileOutcome, Outcome
from builder.tree import Entry, View
from builder.value import field, value
from builder.verdict import Verdict

_DIFFERENCE_LINES = 60


@value
class WholeFile:
    """One file to place (``data``) or to remove (``data`` is ``None``). ``path`` is in the image;
    ``replaces`` is the pre-image, ``None`` where nothing may stand."""

    path: str
    data: bytes | None = field(repr=False)
    replaces: Digest | None
    mode: int | None = None
    at: str = ""


def place(files: Sequence[WholeFile], view: View, *, at: str) -> Outcome:
    """Place all files, or none.

    Raises:
        PatchError: With the verdict of the file where all fail for one reason, ``refused`` where
            reasons differ, ``already-upstream`` where every file is there already.
    """
    view.prefetch(file.path for file in files if file.replaces is not None)
    outcomes: list[FileOutcome] = []
    changes: list[Change] = []
    failures: list[PatchError] = []
    for file in files:
        try:
            outcomes.append(_guard(file, view))
        except PatchError as error:
            failures.append(error)
            continue
        if file.data is None:
            changes.append(Remove(path=file.path))
        else:
            changes.append(Put(path=file.path, content=Inline(file.data), mode=file.mode))
    if failures:
        raise together(failures, total=len(files), at=at)
    return Outcome(changes=tuple(changes), files=tuple(outcomes))


def together(failures: Sequence[PatchError], *, total: int, at: str) -> PatchError:
    """One error for several files of a step: itself where there is one file, otherwise a summary
    with a line for each. Files that upstream has already fail the step unless all have it."""
    first = failures[0]
    if total == 1:
        return first
    verdicts = {failure.verdict for failure in failures}
    whole = len(failures) == total
    if verdicts == {Verdict.ALREADY_UPSTREAM} and not whole:
        return PatchError(
            f"{at}: {len(failures)} of {total} files are already upstream, the others are not",
            verdict=Verdict.REFUSED,
            path=first.path,
            findings=tuple(failure.message for failure in failures),
            hint="drop the files that upstream has from the step",
        )
    said = f"{len(failures)} of {total} files do not apply"
    if verdicts == {Verdict.ALREADY_UPSTREAM}:
        said = f"the base has this change already, in all of its {total} files"
    # What is wrong comes before what is only needless.
    worst = next((f for f in failures if f.verdict != Verdict.ALREADY_UPSTREAM), first)
    return PatchError(
        f"{at}: {said}",
        verdict=verdicts.pop() if len(verdicts) == 1 else Verdict.REFUSED,
        path=worst.path,
        findings=tuple(f"{failure.verdict}: {failure.message}" for failure in failures),
        hint=worst.hint,
        difference=next((item.difference for item in failures if item.difference), None),
    )


def _guard(file: WholeFile, view: View) -> FileOutcome:
    entry = view.stat(file.path)
    post = None if file.data is None else Digest.of(file.data)
    if file.replaces is None:
        return _absent(file, entry, post)
    if entry is None:
        raise missing(file.path, view, wanted=file.replaces, at=file.at)
    if not entry.is_file or entry.digest is None:
        raise PatchError(
            f"{file.at}: expected a regular file at {file.path!r}, found a {entry.kind}"
            + (f" to {entry.target!r}" if entry.target else ""),
            verdict=Verdict.REFUSED,
            path=file.path,
            hint="name the file that the link leads to" if entry.target else None,
        )
    if _is_there(file, entry, post):
        raise already_upstream(file.path, at=file.at)
    if entry.digest != file.replaces:
        raise PatchError(
            f"{file.at}: {file.path!r} is not the file that this step was made for: expected"
            f" {file.replaces}, the image has {entry.digest}",
            verdict=Verdict.REFUSED,
            path=file.path,
            hint="replacing it would undo what upstream changed since; bring that over into the"
            " overlay's file, then pin the new 'replaces'",
            difference=_difference(file, view),
        )
    return FileOutcome(path=file.path, verdict=Verdict.APPLIED, pre=entry.digest, post=post)


def _absent(file: WholeFile, entry: Entry | None, post: Digest | None) -> FileOutcome:
    if entry is None:
        return FileOutcome(path=file.path, verdict=Verdict.APPLIED, post=post)
    if _is_there(file, entry, post):
        raise already_upstream(file.path, at=file.at)
    raise PatchError(
        f"{file.at}: {file.path!r} must not exist, the image has a {entry.kind}"
        + (f" {entry.digest} of mode {entry.mode:04o}" if entry.digest else ""),
        verdict=Verdict.REFUSED,
        path=file.path,
        hint="if the file is meant to be replaced, pin its sha256 as 'replaces'",
    )


def _is_there(file: WholeFile, entry: Entry, post: Digest | None) -> bool:
    """Whether the image has what the step would make: the bytes, and the mode where one is said."""
    return entry.is_file and entry.digest == post and file.mode in (None, entry.mode)


def already_upstream(path: str, *, at: str) -> PatchError:
    """The parent holds, byte for byte, what the step would make."""
    return PatchError(
        f"{at}: {path!r} is already upstream: the image has these bytes",
        verdict=Verdict.ALREADY_UPSTREAM,
        path=path,
        hint="retire the step, or mark it 'until: upstream' to leave it out where this is so",
    )


def missing(path: str, view: View, *, wanted: Digest | None, at: str) -> PatchError:
    """There is no file at ``path``: say so, and where a file of that name or content stands now."""
    found = tuple(_same_name(path, view))
    same = [item for item in found if wanted is not None and item[1] == wanted]
    if not found:
        return PatchError(
            f"{at}: no file at {path!r} in the image",
            verdict=Verdict.FILE_MISSING,
            path=path,
            hint="upstream removed it, or the path is wrong",
        )
    exact = ", the very bytes that are pinned" if same else ""
    where = ", ".join(repr(item[0]) for item in (same or found)[:3])
    return PatchError(
        f"{at}: no file at {path!r} in the image; one of that name is at {where}{exact}",
        verdict=Verdict.FILE_MOVED,
        path=path,
        hint="look whether it is the same module, then change the path in the step",
    )


def _same_name(path: str, view: View) -> Iterator[tuple[str, Digest | None]]:
    """Files of the same name in the same top package: two levels above the missing file's
    directory that exists, walked to the end."""
    name = posixpath.basename(path)
    top = _package(path, view)
    if top is None:
        return
    stack = [top]
    while stack:
        directory = stack.pop()
        for child in view.children(directory):
            candidate = f"{directory}/{child}"
            if child == name or "." not in child:
                entry = view.stat(candidate)
                if entry is not None and entry.is_directory and child != "__pycache__":
                    stack.append(candidate)
                elif entry is not None and child == name:
                    yield candidate, entry.digest


def _package(path: str, view: View) -> str | None:
    """The outermost directory above ``path`` that is a Python package, if any."""
    for directory in _ancestors(path):
        if view.stat(f"{directory}/__init__.py") is not None:
            return directory
    return None


def _ancestors(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _difference(file: WholeFile, view: View) -> str | None:
    """What placing the file would change in the image's own, for a person to look at."""
    if file.data is None:
        return None
    from difflib import unified_diff  # noqa: PLC0415 - wanted only where a build has failed

    old, new = (
        data.decode("utf-8", "replace").splitlines() for data in (view.read(file.path), file.data)
    )
    lines = list(unified_diff(old, new, f"image/{file.path}", "step", lineterm="", n=2))
    cut = len(lines) - _DIFFERENCE_LINES
    shown = lines[:_DIFFERENCE_LINES]
    return "\n".join([*shown, f"... and {cut} more lines"] if cut > 0 else shown)
