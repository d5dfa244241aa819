"""What every step kind offers to the plan and to ``realise``.

A build in which nothing has to run makes requests and runs none of them: the modules that do the
work (:mod:`builder.diff`, :mod:`builder.wheel`) are imported by ``run``.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from builder.lock.model import GenesisPin, PullPin, SourcePin, WheelPin
from builder.observed import Observed
from builder.outcome import Outcome
from builder.ports import GitSubtree
from builder.python_layout import PythonLayout
from builder.value import field, value

if TYPE_CHECKING:
    from builder.sandbox import Sandbox


class Materials(Protocol):
    """The pinned bytes that steps work with, verified against their pins, and the place where
    those that are programs may run."""

    @property
    def sandbox(self) -> "Sandbox":
        """Made when it is first asked for."""

    def payload(self, pin: GenesisPin) -> GitSubtree:
        """What a patch set puts into the packages directory."""

    def plugin(self, pin: GenesisPin) -> GitSubtree | None:
        """The plugin of a patch set, where it has one beside its payload."""

    def pull(self, pin: PullPin) -> bytes:
        """The diff of a pull request."""

    def source(self, pin: SourcePin, path: str) -> bytes:
        """One file of a source pin."""

    def wheel(self, pin: WheelPin) -> Path | bytes:
        """The wheel's file, or its bytes. A file stays as it is while the step's result is used."""


class Request(Protocol):
    """A step with its pins looked up: everything it needs but the parent tree."""

    kind: ClassVar[str]

    @property
    def until_upstream(self) -> bool:
        """Whether the step may be left out where the parent has its result already."""

    @property
    def pins(self) -> tuple[str, ...]:
        """The pins it uses, as ``kind NAME``, for tables and graphs."""

    def record(self) -> dict[str, Any]:
        """Every input by content, as canonical JSON takes it. Names and places are not inputs."""

    def run(self, view: Observed, materials: Materials) -> Outcome:
        """Compute the changes.

        Raises:
            PatchError: The step does not apply as declared; nothing was changed.
        """


@value
class DiffRule:
    """How a diff is to be applied. ``root`` is a directory of the image: absolute with a leading
    slash, otherwise below the packages directory (``.`` is that directory itself)."""

    root: str | None = None
    strip: int | None = None
    ignore: tuple[str, ...] = ()
    strict: bool = False
    at: str = field(default="", compare=False)
    stated_at: str = field(default="", compare=False)
    """Where root and strip are written, if that is not ``at``."""

    def record(self) -> dict[str, Any]:
        """The inputs among the fields."""
        return {
            "root": self.root,
            "strip": self.strip,
            "ignore": list(self.ignore),
            "strict": self.strict,
        }


def locate(target: str, layout: PythonLayout) -> str:
    """The path in the image of a recipe's target: absolute with a leading slash, otherwise below
    the packages directory."""
    return target[1:] if target.startswith("/") else f"{layout.packages}/{target}"


def layout_of(view: Observed, stated: PythonLayout | None) -> PythonLayout:
    """The image's Python: as the variant states it, or as it is found in the tree."""
    return view.python() if stated is None else stated
