"""A registry of tagged images, a store, and what the tests of images ask of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.cli.progress import NoProgress
from builder.digest import Digest
from builder.lock.model import Escrow, ImagePin
from builder.oci import OCI_INDEX, Index, Platform
from builder.reference import Reference
from builder.resolve.found import Resolved
from builder.resolve.images import complete_image, newest_tag, ordered_tags, resolve_image
from builder.upstream import Commit
from tests.fakes import FakeHistory
from tests.flow.images import PACKAGES, MadeImage, Tree, image, serve
from tests.memory_store import MemoryStore
from tests.standin.registry import StandIn

AMD64, ARM64 = Platform("linux", "amd64"), Platform("linux", "arm64")
NOW = "2026-06-01T12:00:00Z"
THEN = "2026-05-11T00:00:00Z"
COMMIT = "01d4d1ad375dc5854779c593eee093bcebb0cada"
VERSION = "0.20.2rc1.dev9+g01d4d1ad3"
VERSION_FILE = f"""\
__version__ = version = '{VERSION}'
__commit_id__ = commit_id = 'g01d4d1ad3'
"""


def vllm(version_file: str = VERSION_FILE, **more: bytes) -> Tree:
    """A layer with vLLM in it."""
    return {
        "usr/bin/python3.12": b"\x7fELF",
        f"{PACKAGES}/vllm/__init__.py": b"",
        f"{PACKAGES}/vllm/_version.py": version_file.encode(),
        **more,
    }


SYSTEM: Tree = {"etc/os-release": b"ID=ubuntu\n", "opt/x": b"x"}


def with_vllm(
    version_file: str = VERSION_FILE,
    *,
    architecture: str = "amd64",
    labels: dict[str, str] | None = None,
) -> MadeImage:
    """An image of two layers, a system and vLLM."""
    return image(
        {**SYSTEM, "etc/machine": architecture.encode()},
        vllm(version_file),
        architecture=architecture,
        settings={"Labels": labels} if labels else None,
    )


class Commits(FakeHistory):
    """Commits by time and parent, the last of them the tip: none is at hand, and what is asked for
    is remembered."""

    def __init__(self, known: Mapping[str, tuple[int, str | None]] | None = None) -> None:
        commits = {
            commit: Commit(id=commit, time=time, subject="x", parents=(parent,) if parent else ())
            for commit, (time, parent) in (known or {}).items()
        }
        super().__init__(commits, {"HEAD": next(reversed(commits))} if commits else {})
        self.asked: list[str] = []

    def refs(self, repository: str) -> Mapping[str, str]:
        self.asked.append("refs")
        return super().refs(repository)

    def commit(self, repository: str, commit: str) -> Commit:
        self.asked.append(commit)
        assert len(commit) == 40, "History takes full ids"
        return super().commit(repository, commit)

    def at_hand(self, repository: str, commits: Iterable[str]) -> Mapping[str, Commit]:
        return {}


@dataclass
class World:
    """One registry, one store."""

    registry: StandIn
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.client = RegistryClient(RegistryConfiguration(attempts=1))

    def again(self) -> "World":
        """The next run of the program, with the store of this one."""
        self.client.close()
        return World(self.registry, self.store)

    def tag(self, name: str, made: MadeImage | Index, *images: MadeImage) -> Digest:
        """Put an image, or an index and its images, under a tag."""
        for item in images:
            serve(self.registry, item, tag=str(item.digest))
        if isinstance(made, MadeImage):
            serve(self.registry, made, tag=name)
            return made.digest
        return self.registry.add_manifest("base", made.raw, media_type=OCI_INDEX, tag=name)

    def untag(self, name: str) -> None:
        del self.registry.manifests["base", name]

    def reference(self, tag: str | None = "t") -> Reference:
        return Reference(registry=self.registry.host, repository="base", tag=tag)

    def pin(self, tag: str | None = "t", **fields: Any) -> ImagePin:
        at = "lockfiles/vllm.yaml:3: vllm.it"
        return ImagePin(name="it", follows=self.reference(tag), at=at, **fields)

    def resolve(
        self,
        pin: ImagePin,
        *platforms: Platform,
        before: ImagePin | None = None,
        inside: bool = True,
    ) -> Resolved[ImagePin]:
        return resolve_image(
            pin,
            platforms=platforms or (AMD64,),
            registry=self.client,
            store=self.store,
            progress=NoProgress(),
            now=NOW,
            before=before,
            inside=inside,
        )

    def complete(
        self, pin: ImagePin, *platforms: Platform, inside: bool = True
    ) -> Resolved[ImagePin]:
        return complete_image(
            pin,
            platforms=platforms or (AMD64,),
            registry=self.client,
            store=self.store,
            progress=NoProgress(),
            now=NOW,
            open_copy=_no_copy,
            inside=inside,
        )

    def newest(
        self, pin: ImagePin, history: Commits | None = None, platform: Platform = AMD64
    ) -> str | None:
        return newest_tag(
            pin,
            platform=platform,
            registry=self.client,
            store=self.store,
            history=history or Commits(),
        ).tag

    def ordered(self, pin: ImagePin, history: Commits | None = None) -> tuple[str, ...]:
        return ordered_tags(
            pin,
            platform=AMD64,
            registry=self.client,
            store=self.store,
            history=history or Commits(),
        )

    def asked(self) -> list[str]:
        """What was asked of the registry since the last call."""
        asked = self.registry.asked()
        self.registry.calls.clear()
        return asked

    def fetched(self) -> int:
        """How many manifests were asked for with GET since the last call."""
        return sum(item.startswith("GET /v2/base/manifests/") for item in self.asked())


def _no_copy(copy: Escrow) -> NoReturn:
    raise AssertionError(copy)
