"""Diffs as steps see them: where a diff belongs in the image, and what it changes there."""

import logging
from collections.abc import Callable, Iterator

from builder import diff
from builder.changes import Change, Inline, Put, Remove
from builder.errors import PatchError
from builder.outcome import FileOutcome, Outcome
from builder.python_layout import PythonLayout
from builder.steps.request import DiffRule
from builder.tree import View
from builder.verdict import Verdict

_log = logging.getLogger(__name__)


def apply_diff(data: bytes, rule: DiffRule, view: View, layout: PythonLayout) -> Outcome:
    """Apply a diff to the tree: every hunk of every file, or nothing.

    Raises:
        ProjectError: The diff cannot be parsed.
        PatchError: It does not apply.
    """
    parsed = diff.parse(data, at=rule.at)

    def is_directory(path: str) -> bool:
        entry = view.stat(path)
        return entry is not None and entry.is_directory

    place = diff.resolve(
        parsed,
        exists=lambda path: view.stat(path) is not None,
        is_directory=is_directory,
        roots=(layout.packages, f"{layout.packages}/vllm", ""),
        root=None if rule.root is None else _root(rule.root, layout),
        strip=rule.strip,
        ignore=rule.ignore,
    )

    if rule.root is None or rule.strip is None:
        _log.warning(
            "%s: found to apply at root '/%s' with strip %d; so that it stays there, write root: %s"
            " and strip: %d at %s",
            rule.at,
            place.root,
            place.strip,
            _stated(place.root, layout),
            place.strip,
            rule.stated_at or rule.at,
        )

    view.prefetch(diff.touched(parsed.changes, place, at=rule.at))
    applied = diff.apply(
        parsed, place, read=_reader(view, rule), ignore=rule.ignore, strict=rule.strict
    )
    return Outcome(
        changes=tuple(_changes(applied)),
        files=tuple(_outcome(file) for file in applied.files),
        ignored=applied.ignored,
    )


def _reader(view: View, rule: DiffRule) -> Callable[[str], diff.SourceText | None]:
    def read(path: str) -> diff.SourceText | None:
        entry = view.stat(path)
        if entry is None or _is_directory(path, view):
            return None
        if not entry.is_file:
            raise PatchError(
                f"{rule.at}: expected a regular file at {path!r}, found a {entry.kind}",
                verdict=Verdict.REFUSED,
                path=path,
            )
        return diff.SourceText(mode=entry.mode, data=view.read(path))

    return read


def _outcome(file: diff.AppliedFile) -> FileOutcome:
    return FileOutcome(
        path=file.path,
        verdict=file.verdict,
        pre=file.pre,
        post=file.post,
        offsets=file.offsets if any(file.offsets) else (),
    )


def _changes(applied: diff.Applied) -> Iterator[Change]:
    for file in applied.files:
        if file.data is None:
            yield Remove(path=file.path)
        else:
            yield Put(path=file.path, content=Inline(file.data), mode=file.mode)


def _is_directory(path: str, view: View) -> bool:
    """Whether files may lie below ``path``: a directory, or a link to one."""
    entry = view.stat(path)
    if entry is not None and entry.target is not None:  # a link
        return bool(view.children(path))
    return entry is not None and entry.is_directory


def _stated(root: str, layout: PythonLayout) -> str:
    """What :func:`_root` makes ``root`` of."""
    if root == layout.packages:
        return "."
    below = root.removeprefix(f"{layout.packages}/")
    return below if below != root else f"/{root}"


def _root(root: str, layout: PythonLayout) -> str:
    if root.startswith("/"):
        return root.strip("/")
    return layout.packages if root == "." else f"{layout.packages}/{root.strip('/')}"
