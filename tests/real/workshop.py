"""Where the script works: stores and registries of its own, gone afterwards."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.wheelhouse import Wheelhouse
from builder.lock.model import WheelPin
from tests.access_log import AccessLog
from tests.commands import ROOT, Builder, clean_environment, download_cache, empty_store, mirrors
from tests.services import RunningRegistry, running_registry

FIRST = "registry.example.invalid"
"""The registry that lockfiles/vllm.yaml names; here it stands on loopback."""
SECOND = "second.example.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Two empty registries, and a scratch directory."""

    scratch: Path
    first: RunningRegistry
    second: RunningRegistry
    log: AccessLog
    """What was asked of the first one."""

    def builder(self, name: str) -> Builder:
        """``builder`` with an empty store; wheels that were downloaded before are at hand."""
        store = empty_store(self.scratch / name)
        hosts = {FIRST: self.first.host, SECOND: self.second.host}
        return Builder(store=store, environment=clean_environment(BUILDER_MIRRORS=mirrors(hosts)))

    def fetch_wheel(self, pin: WheelPin) -> tuple[Path, float]:
        """A pinned wheel, through pip or from an earlier run, checked; and how long that took.

        Raises:
            BuilderError: It cannot be had.
        """
        house = Wheelhouse(ROOT, cache=download_cache() / "wheels", offline=False)
        start = time.perf_counter()
        path = house.fetch(
            project=pin.project, version=pin.version, filename=pin.filename, digest=pin.digest
        )
        return path, time.perf_counter() - start

    def drop(self, builder: Builder) -> None:
        """Remove a store."""
        shutil.rmtree(builder.store)


@contextmanager
def workshop() -> Iterator[Workshop]:
    """Open a workshop; everything in it goes when the block is left."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="builder-real-")))
        registries = []
        for name in ("first", "second"):
            (scratch / name).mkdir()
            registries.append(stack.enter_context(running_registry(scratch / name)))
        first, second = registries
        log = AccessLog(first.access_log)
        yield Workshop(scratch=scratch, first=first, second=second, log=log)
