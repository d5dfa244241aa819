"""Diffs as steps see them: where a diff belongs in the image, and what it changes there."""

from dataclasses import dataclass, field
from typing import Any

from builder import diff
from builder.changes import Change, Inline, Put, Remove
from builder.errors import PatchError
from builder.outcome import FileOutcome, Outcome
from builder.python_layout import PythonLayout
from builder.tree import View
from builder.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRule:
    """How a diff is to be applied. ``root`` is a directory of the image: absolute with a leading
    slash, otherwise below the packages directory (``.`` is that directory itself)."""

    root: str | None = None
    strip: int | None = None
    ignore: tuple[str, ...] = ()
    strict: bool = False
    at: str = field(default="", compare=False)

    def record(self) -> dict[str, Any]:
        """The inputs among the fields."""
        return {
            "root": self.root,
            "strip": self.strip,
            "ignore": list(self.ignore),
            "strict": self.strict,
        }


def apply_diff(data: bytes, rule: DiffRule, view: View, layout: PythonLayout) -> Outcome:
    """Apply a diff to the tree: every hunk of every file, or nothing.

    Raises:
        ProjectError: The diff cannot be parsed.
        PatchError: It does not apply.
    """
    parsed = diff.parse(data, at=rule.at)
    place = diff.resolve(
        parsed,
        exists=lambda path: view.stat(path) is not None,
        is_directory=lambda path: (entry := view.stat(path)) is not None and entry.is_directory,
        roots=(layout.packages, f"{layout.packages}/vllm", ""),
        root=None if rule.root is None else _root(rule.root, layout),
        strip=rule.strip,
        ignore=rule.ignore,
    )

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

    view.prefetch(diff.touched(parsed.changes, place, at=rule.at))
    applied = diff.apply(parsed, place, read=read, ignore=rule.ignore, strict=rule.strict)
    changes: list[Change] = []
    for file in applied.files:
        if file.previous_path is not None:
            changes.append(Remove(path=file.previous_path))
        if file.data is None:
            changes.append(Remove(path=file.path))
        else:
            changes.append(Put(path=file.path, content=Inline(file.data), mode=file.mode))
    outcomes = tuple(
        FileOutcome(
            path=file.path,
            verdict=file.verdict,
            pre=file.pre,
            post=file.post,
            offsets=file.offsets,
        )
        for file in applied.files
    )
    return Outcome(changes=tuple(changes), files=outcomes, ignored=applied.ignored)


def _is_directory(path: str, view: View) -> bool:
    """Whether files may lie below ``path``: a directory, or a link to one."""
    entry = view.stat(path)
    if entry is not None and entry.target is not None:  # a link
        return bool(view.children(path))
    return entry is not None and entry.is_directory


def _root(root: str, layout: PythonLayout) -> str:
    if root.startswith("/"):
        return root.strip("/")
    return layout.packages if root == "." else f"{layout.packages}/{root.strip('/')}"
