"""An upstream on loopback: bases made of real wheels of vLLM under tags as the nightlies have them,
and a git repository whose commits name others of their tags.

The wheels come through pip, once a machine, and are checked by digest.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import deliver
from builder.adapters.wheelhouse import Wheelhouse
from builder.digest import Digest
from builder.oci import Manifest
from builder.reference import Reference
from tests.access_log import AccessLog
from tests.adapters.git_world import Upstream as Repository
from tests.commands import ROOT, download_cache, empty_store
from tests.flow.worlds import Tiny
from tests.services import RunningRegistry, running_registry

REGISTRY = "upstream.example.invalid"
IMAGE = f"{REGISTRY}/vllm/vllm-openai"
"""Where the bases are; :attr:`Upstream.mirrors` says where that is today."""
REPOSITORY = "https://git.example.invalid/vllm/vllm"
PYTHON = {"version": "3.12", "packages": "usr/local/lib/python3.12/dist-packages"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A wheel, and the commit that its tag names. The first one's is not the wheel's: it is that
    of the nightly which deployments know."""

    version: str
    filename: str
    digest: Digest
    commit: str

    @property
    def nightly(self) -> str:
        return f"nightly-{self.commit}"


RELEASES = (
    Release(
        version="0.20.2",
        filename="vllm-0.20.2-cp38-abi3-manylinux_2_35_x86_64.whl",
        digest=Digest("22a7dd06eb03371298e13d6100f3dedbf307352342aaf08e87c929c60aae9b4d"),
        commit="01d4d1ad375dc5854779c593eee093bcebb0cada",
    ),
    Release(
        version="0.21.0",
        filename="vllm-0.21.0-cp38-abi3-manylinux_2_24_x86_64.whl",
        digest=Digest("b241b085742cf04a68c82c089d12afe4d9ee729e0c7f81b2b2b9961d36105ee5"),
        commit="9da56fd18b95ff1b11360e8400f7c41b126d190b",
    ),
    Release(
        version="0.22.0",
        filename="vllm-0.22.0-cp38-abi3-manylinux_2_28_x86_64.whl",
        digest=Digest("c387a977e35795e8f77b009e019e69722963819c26b55e4a679e09d4279ae35d"),
        commit="0b3ba88f165976e77ca5e6a7a3f5bba4562b80af",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """What is upstream. Everything is by version."""

    registry: RunningRegistry
    repository: Path
    """A bare git repository: one commit a release, in their order, on ``main``."""
    manifests: Mapping[str, Manifest] = field(repr=False)
    commits: Mapping[str, str]
    """The commits of that repository; the bases are tagged ``commit-ID``, too."""
    log: AccessLog

    @property
    def mirrors(self) -> str:
        """``BUILDER_MIRRORS``: where ``REGISTRY`` and ``REPOSITORY`` are today."""
        return f"{REGISTRY}={self.registry.host} {REPOSITORY}={self.repository}"


@contextmanager
def upstream(scratch: Path, *releases: Release) -> Iterator[Upstream]:
    """Start one below ``scratch``, an empty directory; all of ``RELEASES`` where none is named.

    Raises:
        BuilderError: A wheel cannot be had.
    """
    releases = releases or RELEASES
    (scratch / "registry").mkdir()
    repository = Repository.make(scratch / "vllm.git")
    with running_registry(scratch / "registry") as registry:
        world = Upstream(
            registry=registry,
            repository=repository.path,
            manifests={},
            commits=dict(_commits(repository, releases)),
            log=AccessLog(registry.access_log),
        )
        yield replace(world, manifests=dict(_bases(scratch / "kitchen", world, releases)))


def fetch_wheel(release: Release) -> Path:
    """The wheel of a release, through pip or from an earlier run, checked."""
    house = Wheelhouse(ROOT, cache=download_cache() / "wheels", offline=False)
    return house.fetch(
        project="vllm",
        version=release.version,
        filename=release.filename,
        digest=release.digest,
    )


def _commits(repository: Repository, releases: tuple[Release, ...]) -> Iterator[tuple[str, str]]:
    parent = None
    for release in releases:
        files = {"VERSION": release.version.encode()}
        parent = repository.commit("refs/heads/main", files, parent=parent)
        yield release.version, parent


def _bases(
    directory: Path, world: Upstream, releases: tuple[Release, ...]
) -> Iterator[tuple[str, Manifest]]:
    """Bake each base with builder itself and push it under its tags."""
    kitchen = Tiny.make(directory)
    empty_store(kitchen.store_path)
    for release in releases:
        fetch_wheel(release)
        name = f"vllm-{release.version}"
        kitchen.lock(
            "wheels",
            name,
            {
                "follows": {"project": "vllm", "version": release.version},
                "filename": release.filename,
                "digest": str(release.digest),
            },
        )
        kitchen.variant(name, {"wheels": [name]}, base="scratch", python=PYTHON)
        made = kitchen.bake(name)
        _, machine = kitchen.world(BUILDER_MIRRORS=world.mirrors)
        for tag in (release.nightly, f"commit-{world.commits[release.version]}"):
            deliver.publish_to(made, Reference.parse(f"{IMAGE}:{tag}"), world=machine)
        yield release.version, made.image.manifest
