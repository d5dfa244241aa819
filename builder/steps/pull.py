"""``pull``: the diff of an upstream pull request."""

from typing import Any, ClassVar

from builder.lock.model import PullPin
from builder.observed import Observed
from builder.outcome import Outcome
from builder.python_layout import PythonLayout
from builder.steps.request import DiffRule, Materials, layout_of
from builder.value import value


@value
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
        from builder.steps.patch import apply_diff  # noqa: PLC0415 - see builder.steps.request

        data = materials.pull(self.pin)
        return apply_diff(data, self.rule, view, layout_of(view, self.python))
