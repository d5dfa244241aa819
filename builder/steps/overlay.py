"""``overlay``: a change of our own: whole files, removals, anchored edits, a local diff."""

from typing import Any, ClassVar

from builder.changes import Change
from builder.digest import Digest
from builder.errors import PatchError
from builder.observed import Observed
from builder.outcome import FileOutcome, Outcome
from builder.python_layout import PythonLayout
from builder.steps.edits import edit_file
from builder.steps.request import DiffRule, Materials, layout_of, locate
from builder.steps.whole import WholeFile, place, together
from builder.tree import View
from builder.value import field, value
from builder.variant import Overlay


@value
class OverlayRequest:
    """Apply ``overlay``. All of its rules see the parent tree; no two may write one file."""

    kind: ClassVar[str] = "overlay"

    overlay: Overlay
    strict: bool = False
    until_upstream: bool = False
    python: PythonLayout | None = None
    at: str = field(default="", compare=False)

    @property
    def pins(self) -> tuple[str, ...]:
        return (f"overlay {self.overlay.name}",)

    def record(self) -> dict[str, Any]:
        return {
            "files": [
                {
                    "target": rule.target,
                    "digest": str(Digest.of(rule.data)),
                    "replaces": _text(rule.replaces),
                    "mode": rule.mode,
                }
                for rule in self.overlay.files
            ],
            "remove": [
                {"target": rule.target, "replaces": str(rule.replaces)}
                for rule in self.overlay.remove
            ],
            "edits": [
                {
                    "target": rule.target,
                    "replaces": _text(rule.replaces),
                    "edits": [
                        {
                            "anchor": str(Digest.of(edit.anchor)),
                            "action": str(edit.action),
                            "text": str(Digest.of(edit.text)),
                            "count": edit.count,
                        }
                        for edit in rule.edits
                    ],
                }
                for rule in self.overlay.edits
            ],
            "patch": None
            if self.overlay.patch is None
            else {"digest": str(Digest.of(self.overlay.patch.data)), "rule": self._rule().record()},
            "until_upstream": self.until_upstream,
            "python": None if self.python is None else self.python.record(),
        }

    def run(self, view: Observed, materials: Materials) -> Outcome:  # noqa: ARG002 - has its bytes
        layout = layout_of(view, self.python)
        parts: list[Outcome] = []
        failures: list[PatchError] = []
        for part in (self._whole, self._edits, self._patch):
            try:
                parts.append(part(view, layout))
            except PatchError as error:
                failures.append(error)
        used = sum(bool(rules) for rules in self._rules())
        if failures:
            raise together(failures, total=used, at=self.at)
        return Outcome(
            changes=tuple(change for part in parts for change in part.changes),
            files=tuple(file for part in parts for file in part.files),
            ignored=tuple(path for part in parts for path in part.ignored),
        )

    def _rules(self) -> tuple[object, ...]:
        overlay = self.overlay
        return (overlay.files + overlay.remove, overlay.edits, overlay.patch)

    def _whole(self, view: View, layout: PythonLayout) -> Outcome:
        added = [
            WholeFile(
                path=locate(rule.target, layout),
                data=rule.data,
                replaces=rule.replaces,
                mode=rule.mode,
                at=rule.at,
            )
            for rule in self.overlay.files
        ]
        removed = [
            WholeFile(
                path=locate(rule.target, layout), data=None, replaces=rule.replaces, at=rule.at
            )
            for rule in self.overlay.remove
        ]
        return place(added + removed, view, at=self.at)

    def _edits(self, view: View, layout: PythonLayout) -> Outcome:
        rules = [(rule, locate(rule.target, layout)) for rule in self.overlay.edits]
        view.prefetch(path for _, path in rules)
        changes: list[Change] = []
        files: list[FileOutcome] = []
        failures: list[PatchError] = []
        for rule, path in rules:
            try:
                change, outcome = edit_file(rule, path, view)
            except PatchError as error:
                failures.append(error)
                continue
            changes.append(change)
            files.append(outcome)
        if failures:
            raise together(failures, total=len(rules), at=self.at)
        return Outcome(changes=tuple(changes), files=tuple(files))

    def _patch(self, view: View, layout: PythonLayout) -> Outcome:
        if self.overlay.patch is None:
            return Outcome(changes=())
        from builder.steps.patch import apply_diff  # noqa: PLC0415 - see builder.steps.request

        return apply_diff(self.overlay.patch.data, self._rule(), view, layout)

    def _rule(self) -> DiffRule:
        patch = self.overlay.patch
        if patch is None:
            raise RuntimeError("an overlay without a patch has no rule for one")
        return DiffRule(
            root=patch.root,
            strip=patch.strip,
            ignore=patch.ignore,
            strict=self.strict,
            at=patch.at,
        )


def _text(digest: Digest | None) -> str | None:
    return None if digest is None else str(digest)
