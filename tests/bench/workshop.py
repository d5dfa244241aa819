"""Where it is measured: a registry with two bases in it, a store, a project."""

import io
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.reference import Reference
from tests.access_log import AccessLog
from tests.bench.base import BaseImage, make_base
from tests.bench.project import BenchProject, base_files
from tests.commands import Builder, empty_store
from tests.services import RunningRegistry, running_registry

MB = 1_000_000
_SMALL = 20 * MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Everything that the rows share. ``bases`` are ``small`` and ``large``."""

    scratch: Path
    registry: RunningRegistry
    log: AccessLog
    bases: dict[str, BaseImage]
    project: BenchProject
    builder: Builder

    def base(self, name: str) -> str:
        """The reference of a base."""
        return f"{self.registry.host}/bench/base:{name}"


@contextmanager
def workshop(size: int) -> Iterator[Workshop]:
    """Open one whose large base has about ``size`` compressed bytes."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="builder-bench-")))
        (scratch / "registry").mkdir()
        registry = stack.enter_context(running_registry(scratch / "registry"))
        sizes = {"small": [_SMALL], "large": [size // 6, size - size // 6]}
        bases = {}
        for name, layers in sizes.items():
            place = scratch / name
            place.mkdir()
            bases[name] = make_base(place, sizes=layers, files=base_files())
            push(bases[name], Reference.parse(f"{registry.host}/bench/base:{name}"))
        project = BenchProject(root=scratch / "project")
        digests = {name: base.manifest.digest for name, base in bases.items()}
        project.write(registry.host, digests)
        yield Workshop(
            scratch=scratch,
            registry=registry,
            log=AccessLog(registry.access_log),
            bases=bases,
            project=project,
            builder=Builder(store=empty_store(scratch / "store"), project=project.root),
        )


def push(base: BaseImage, target: Reference) -> None:
    """Publish a base; the files of its layers go."""
    client = RegistryClient(RegistryConfiguration())
    for path, descriptor in base.layers:
        with path.open("rb") as file:
            client.push_blob(target, descriptor, file)
        path.unlink()
    client.push_blob(target, base.manifest.config, io.BytesIO(base.config))
    client.push_manifest(target, base.manifest)
