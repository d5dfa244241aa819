"""``wheels``: pinned wheels, installed into the image's packages directory.

Nothing is resolved: what the variant names is what is installed. The tags of each wheel must fit
the image's Python and platform.
"""

from typing import Any, ClassVar

from builder.changes import Change
from builder.lock.model import WheelPin
from builder.observed import Observed
from builder.oci import Platform
from builder.outcome import Outcome
from builder.python_layout import PythonLayout
from builder.steps.request import Materials, layout_of
from builder.value import field, value


@value
class WheelsRequest:
    """Install ``wheels``, in their order."""

    kind: ClassVar[str] = "wheels"

    wheels: tuple[WheelPin, ...]
    platform: Platform
    python: PythonLayout | None = None
    at: str = field(default="", compare=False)

    @property
    def until_upstream(self) -> bool:
        return False

    @property
    def pins(self) -> tuple[str, ...]:
        return tuple(f"wheel {pin.name}" for pin in self.wheels)

    def record(self) -> dict[str, Any]:
        return {
            "wheels": [{"file": pin.filename, "digest": str(pin.digest)} for pin in self.wheels],
            "platform": str(self.platform),
            "python": None if self.python is None else self.python.record(),
        }

    def run(self, view: Observed, materials: Materials) -> Outcome:
        from builder import wheel  # noqa: PLC0415 - see builder.steps.request
        from builder.wheel_archive import WheelName  # noqa: PLC0415 - as above

        layout = layout_of(view, self.python)
        changes: list[Change] = []
        for pin in self.wheels:
            changes += wheel.install(
                materials.wheel(pin),
                filename=pin.filename,
                python=layout,
                platform=self.platform,
                view=view,
            )
        # Of the file names, which are inputs: a pin may spell a project in more than one way.
        found = [WheelName.parse(pin.filename) for pin in self.wheels]
        names = ", ".join(f"{name.project} {name.version}" for name in found)
        return Outcome(changes=tuple(changes), summary=f"{names}: {len(changes)} files")
