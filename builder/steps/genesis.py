"""``genesis``: a pinned patch set, laid into the packages directory and baked.

What a boot of every container would do is done once, on a copy in the sandbox, and compared: exit
codes and counts are no evidence. The hidden inputs of the patch set are inputs of the step.
"""

import re
from typing import Any, ClassVar

from builder.changes import Change
from builder.digest import Digest
from builder.errors import ProjectError
from builder.genesis.eras import Era, era_of
from builder.genesis.program import HARNESS
from builder.lock.model import GenesisPin
from builder.observed import Observed
from builder.oci import Platform
from builder.outcome import Outcome
from builder.ports import GitSubtree
from builder.python_layout import PythonLayout
from builder.steps.request import Materials, layout_of
from builder.value import field, value

_PLATFORM = re.compile(r"(cuda|rocm|xpu|cpu)(?:-(\d{1,2})\.(\d))?")


@value
class GenesisRequest:
    """Lay ``pin`` and bake it for ``platform``.

    ``environment`` is what the image will set of the variables that a patch set may read, sorted;
    ``speculative`` the method of speculative decoding that it will be served with.
    """

    kind: ClassVar[str] = "genesis"

    pin: GenesisPin
    platform: str
    speculative: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    image: Platform = Platform("linux", "amd64")
    python: PythonLayout | None = None
    at: str = field(default="", compare=False)

    @property
    def until_upstream(self) -> bool:
        return False

    @property
    def pins(self) -> tuple[str, ...]:
        return (f"genesis {self.pin.name}",)

    def record(self) -> dict[str, Any]:
        era, payload = self._era(), self.pin.payload
        return {
            "payload": None if payload is None else str(payload.tree),
            "destination": era.package,
            "module": era.apply,
            "plugin": None if self.pin.plugin is None else str(self.pin.plugin.tree),
            "harness": str(Digest.of(HARNESS)),
            "platform": self.platform,
            "speculative": self.speculative,
            "environment": dict(self.environment),
            "image": str(self.image),
            "python": None if self.python is None else self.python.record(),
        }

    def run(self, view: Observed, materials: Materials) -> Outcome:
        from builder.steps import genesis_payload  # noqa: PLC0415 - see builder.steps.request
        from builder.steps.genesis_bake import Target, bake  # noqa: PLC0415 - as above

        layout = layout_of(view, self.python)
        era = self._era()
        directory = f"{layout.packages}/{era.package}"
        own = genesis_payload.laid(materials.payload(self.pin), directory, view, at=self.at)
        plugin = materials.plugin(self.pin)
        vendor, model = capability(self.platform, at=self.at)
        target = Target(
            module=era.apply, vendor=vendor, capability=model, environment=self._environment()
        )
        baked = bake(view, layout, target, own, sandbox=materials.sandbox, at=self.at)
        changes: list[Change] = [
            *own.changes,
            *baked.changes,
            *self._plugin(plugin, era, layout, view),
        ]
        return Outcome(
            changes=tuple(changes),
            files=baked.files,
            summary=baked.summary,
            patches=baked.patches,
            sandbox=materials.sandbox.name,
        )

    def _era(self) -> Era:
        if self.pin.payload is None:
            raise ProjectError(
                f"{self.pin.at}: no 'payload', so that nothing says what the patch set installs",
                hint="write the path and the tree id of its package, such as vllm/_genesis",
            )
        era = era_of(self.pin.payload.path)
        if era is None:
            raise ProjectError(
                f"{self.pin.at}: payload {self.pin.payload.path!r} is of no era of the patch set"
                " that can be baked",
                hint="known: vllm/_genesis, vllm/sndr_core and sndr",
            )
        return era

    def _environment(self) -> dict[str, str]:
        hint = {} if self.speculative is None else {"GENESIS_FORCE_SPEC_DECODE": self.speculative}
        return {**dict(self.environment), **hint}

    def _plugin(
        self, plugin: GitSubtree | None, era: Era, layout: PythonLayout, view: Observed
    ) -> tuple[Change, ...]:
        """What makes every worker process call the patch set: an installed entry point."""
        from builder import wheel  # noqa: PLC0415 - see builder.steps.request
        from builder.steps import genesis_plugin  # noqa: PLC0415 - as above

        if plugin is not None:
            filename, data = genesis_plugin.wheel(plugin, at=f"{self.pin.at}: plugin")
        elif not era.plugins:
            filename, data = genesis_plugin.hook(era.hook)
        else:
            return ()
        return wheel.install(data, filename=filename, python=layout, platform=self.image, view=view)


def capability(platform: str, *, at: str) -> tuple[str, tuple[int, int] | None]:
    """The vendor and the compute capability of ``cuda-8.6``.

    Raises:
        ProjectError: Not a platform.
    """
    match = _PLATFORM.fullmatch(platform)
    if match is None or (match[1] == "cuda") != (match[2] is not None):
        raise ProjectError(
            f"{at}: platform: expected a vendor, with the compute capability for cuda, got"
            f" {platform!r}",
            hint="for example cuda-8.6",
        )
    return match[1], None if match[2] is None else (int(match[2]), int(match[3]))
