"""Anchored edits: a change that says which text it needs and how often, and applies nowhere else.

What a patch script does with ``str.replace`` and a hope, with the count as the guard.
"""

from collections.abc import Sequence

from builder.changes import Inline, Put
from builder.digest import Digest
from builder.errors import PatchError
from builder.outcome import FileOutcome
from builder.steps.whole import already_upstream, missing
from builder.tree import View
from builder.variant import Action, Edit, EditRule
from builder.verdict import Verdict

_SHOWN = 60


def edit_file(rule: EditRule, path: str, view: View) -> tuple[Put, FileOutcome]:
    """Apply the edits of one file, in order, each to the result of the one before.

    Raises:
        PatchError: ``drift-anchor`` (an anchor stands less often than it must),
            ``ambiguous-anchor`` (more often), ``already-upstream`` (every edit's result stands
            where its anchor would), or what the pre-image guard says.
    """
    entry = view.stat(path)
    if entry is None:
        raise missing(path, view, wanted=rule.replaces, at=rule.at)
    if not entry.is_file or entry.digest is None:
        raise PatchError(
            f"{rule.at}: expected a regular file at {path!r}, found a {entry.kind}",
            verdict=Verdict.REFUSED,
            path=path,
        )
    if rule.replaces is not None and entry.digest != rule.replaces:
        raise PatchError(
            f"{rule.at}: {path!r} is not the file that this edit was made for: expected"
            f" {rule.replaces}, the image has {entry.digest}",
            verdict=Verdict.REFUSED,
            path=path,
            hint="look at what upstream changed, then pin the new 'replaces' or drop it: the"
            " anchors guard the edit on their own",
        )
    before = view.read(path)
    if _stands(rule.edits, before):
        raise already_upstream(path, at=rule.at)
    after = before
    for edit in rule.edits:
        after = _apply(edit, after, path=path)
    if after == before:
        raise PatchError(
            f"{rule.at}: the edits leave {path!r} as it was",
            verdict=Verdict.REFUSED,
            path=path,
            hint="an edit whose text equals its anchor does nothing; drop it",
        )
    return (
        Put(path=path, content=Inline(after)),
        FileOutcome(path=path, verdict=Verdict.APPLIED, pre=entry.digest, post=Digest.of(after)),
    )


def _apply(edit: Edit, data: bytes, *, path: str) -> bytes:
    lines = _places(edit.anchor, data)
    if len(lines) != edit.count:
        few = len(lines) < edit.count
        where = f" (lines {', '.join(map(str, lines[:8]))})" if lines else ""
        raise PatchError(
            f"{edit.at}: the anchor {_shown(edit.anchor)} stands {len(lines)} times in"
            f" {path!r}{where}, wanted {edit.count}",
            verdict=Verdict.DRIFT_ANCHOR if few else Verdict.AMBIGUOUS_ANCHOR,
            path=path,
            hint="compare the anchor with the file in the image, byte for byte"
            if few
            else "give the anchor more of the surrounding lines",
        )
    return data.replace(edit.anchor, _result(edit))


def _result(edit: Edit) -> bytes:
    match edit.action:
        case Action.REPLACE:
            return edit.text
        case Action.INSERT_BEFORE:
            return edit.text + edit.anchor
        case Action.INSERT_AFTER:
            return edit.anchor + edit.text


def _stands(edits: Sequence[Edit], data: bytes) -> bool:
    """Whether every edit is done already: undoing them all, last first, and doing them again
    gives the same bytes. A result that is too common to tell counts as not done."""
    undone = data
    for edit in reversed(edits):
        result = _result(edit)
        if not result or undone.count(result) != edit.count:
            return False
        undone = undone.replace(result, edit.anchor)
    redone = undone
    for edit in edits:
        if redone.count(edit.anchor) != edit.count:
            return False
        redone = redone.replace(edit.anchor, _result(edit))
    return redone == data and undone != data


def _places(anchor: bytes, data: bytes) -> list[int]:
    """The line numbers at which the anchor begins, overlaps not counted."""
    lines: list[int] = []
    start = data.find(anchor)
    while start >= 0:
        lines.append(data.count(b"\n", 0, start) + 1)
        start = data.find(anchor, start + len(anchor))
    return lines


def _shown(anchor: bytes) -> str:
    text = anchor.decode("utf-8", "replace")
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
