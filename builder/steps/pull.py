"""``pull``: the diff of an upstream pull request."""

from dataclasses import dataclass
from typing import Any, ClassVar

from builder.lock.model import PullPin
from builder.observed import Observed
from builder.outcome import Outcome
from builder.python_layout import PythonLayout
from builder.steps.patch import DiffRule, apply_diff
from builder.steps.request import Materials, layout_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """Apply the change of ``pin``. Its canonical digest is the input: index lines and mail
    signatures may differ, the change may not."""

    kind: ClassVar[str] = "pull"

    pin: PullPin
    rule: DiffRule
    until_upstream: bool = False
    python: PythonLayout | None = None

    @property
    def pins(self) -> tuple[str, ...]:
        return (f"pull {self.pin.name}",)

    def record(self) -> dict[str, Any]:
        return {
            "diff": str(self.pin.diff),
            "rule": self.rule.record(),
            "until_upstream": self.until_upstream,
            "python": None if self.python is None else self.python.record(),
        }

    def run(self, view: Observed, materials: Materials) -> Outcome:
        data = materials.pull(self.pin)
        return apply_diff(data, self.rule, view, layout_of(view, self.python))
