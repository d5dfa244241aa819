"""``source``: files of another git repository, at a commit, placed with guards."""

from typing import Any, ClassVar

from builder.lock.model import SourcePin
from builder.observed import Observed
from builder.outcome import Outcome
from builder.python_layout import PythonLayout
from builder.steps.request import Materials, layout_of, locate
from builder.steps.whole import WholeFile, place
from builder.value import field, value
from builder.variant import Placement


@value
class SourceRequest:
    """Place ``files`` of ``pin``. The commit is where the bytes come from; the bytes are what
    goes into the derivation."""

    kind: ClassVar[str] = "source"

    pin: SourcePin
    files: tuple[Placement, ...]
    until_upstream: bool = False
    python: PythonLayout | None = None
    at: str = field(default="", compare=False)

    @property
    def pins(self) -> tuple[str, ...]:
        return (f"source {self.pin.name}",)

    def record(self) -> dict[str, Any]:
        digests = {item.path: str(item.digest) for item in self.pin.files}
        return {
            "files": [
                {
                    "digest": digests[item.source],
                    "target": item.target,
                    "replaces": None if item.replaces is None else str(item.replaces),
                    "mode": item.mode,
                }
                for item in self.files
            ],
            "until_upstream": self.until_upstream,
            "python": None if self.python is None else self.python.record(),
        }

    def run(self, view: Observed, materials: Materials) -> Outcome:
        layout = layout_of(view, self.python)
        files = [
            WholeFile(
                path=locate(item.target, layout),
                data=materials.source(self.pin, item.source),
                replaces=item.replaces,
                mode=item.mode,
                at=item.at,
            )
            for item in self.files
        ]
        return place(files, view, at=self.at)
