"""Where programs run does not change what is built: both sandboxes, one image."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.sandbox.image import system
from tests.flow.images import Layer, MadeImage, image, push
from tests.flow.worlds import BASE, Tiny, at_packages
from tests.patch_world import PatchWorld, patch_world
from tests.services import RunningRegistry
from tests.services_docker import running_dockerd

pytestmark = pytest.mark.requires("dockerd", "docker-registry", "git", "root", "unshare")

PYTHON = """\
import os, pathlib
packages = pathlib.Path(os.environ["BUILDER_PACKAGES"], "vllm")
(packages / "config.py").write_text(f"SIZE = 256\\nNAMES = {list({'one', 'two', 'three'})}\\n")
(packages / "new.py").write_text("NEW = True\\n")
(packages / "sub/module.py").chmod(0o755)
(packages / "sub/__init__.py").unlink()
"""
SHELL = 'echo "# by a shell" >>"$BUILDER_PACKAGES/vllm/config.py"\n'
APPLY = """\
import logging, os, pathlib, torch, vllm
from vllm.platforms import current_platform
log = logging.getLogger("genesis.apply_all")
root = pathlib.Path(vllm.__file__).parent
seen = vllm.__version__, torch.__version__, tuple(current_platform.get_device_capability())
names = sorted(name for name in os.environ if "GENESIS" in name), list({"one", "two", "three"})
config = root / "config.py"
mark = "# [Genesis wiring marker: Genesis P1 wider cache v1]\\n"
config.write_text(f"{mark}{config.read_text()}SEEN = {seen}, {names}\\n")
log.info("[Genesis] applied: %s — %s", "P1 wider cache", "done")
log.info("[Genesis] skipped: %s — %s", "P2", "opt-in")
"""
STEPS: tuple[dict[str, Any], ...] = (
    {
        "name": "python",
        "script": {"overlay": "scripts", "path": "fix.py"},
        "interpreter": "python",
        "touches": ["vllm/config.py", "vllm/new.py", "vllm/sub/module.py", "vllm/sub/__init__.py"],
    },
    {
        "name": "shell",
        "script": {"overlay": "scripts", "path": "fix.sh"},
        "interpreter": "sh",
        "touches": ["vllm/config.py"],
    },
    {"name": "set", "genesis": "v1", "platform": "cuda-8.6", "speculative": "mtp"},
)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A project with scripts and a patch set, whose base has Python and stands in a registry."""

    tiny: Tiny
    patches: PatchWorld
    engine: str

    def build(self, name: str, **sandbox: str) -> "Made":
        """Build it from nothing, in a sandbox that builder.yaml names."""
        self.tiny.document("builder.yaml", {"version": 1, "sandbox": sandbox})
        store = self.tiny.root.parent / f"store-{name}"
        environment = {"BUILDER_MIRRORS": self.patches.mirrors, "DOCKER_HOST": self.engine}
        done = self.tiny.run("build", "it", "--json", store=store, **environment)
        assert done.status == 0, done.err
        built = done.json["images"][0]
        note = store / "notes" / "image" / built["digest"].removeprefix("sha256:")
        record = json.loads(note.read_bytes())
        return Made(
            image=built["digest"],
            layers=[layer["digest"] for layer in built["layers"]],
            sandboxes=[step["output"]["sandbox"] for step in record["steps"]],
        )


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a build came to, and where its programs ran."""

    image: str
    layers: list[str]
    sandboxes: list[str]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The ``DOCKER_HOST`` of an engine of our own."""
    with running_dockerd(tmp_path_factory.mktemp("engine")) as host:
        yield host


@pytest.fixture(scope="module")
def base() -> MadeImage:
    """A base in which programs can run, the package above."""
    metadata = {at_packages("vllm-0.20.1.dist-info/METADATA"): b"Version: 0.20.1\n"}
    return image(Layer(system(), "tar"), {**BASE, **metadata})


@pytest.fixture
def bench(tmp_path: Path, real_registry: RunningRegistry, base: MadeImage, engine: str) -> Bench:
    tiny = Tiny.make(tmp_path)
    repository = f"{real_registry.host}/sandboxes/base"
    push(base, f"{repository}:t")
    tiny.pin(base, repository=repository, vllm={"version": "0.20.1"})
    tiny.script("scripts", fix_py=PYTHON, fix_sh=SHELL)
    patches = patch_world(tmp_path, more={"patches/__init__.py": "", "patches/apply_all.py": APPLY})
    (tiny.root / "lockfiles/genesis.yaml").write_text(patches.lock())
    packages = {"version": "3.12", "packages": at_packages("").rstrip("/")}
    env = {"GENESIS_ENABLE_P1": "1"}
    tiny.variant("it", *STEPS, python=packages, image={"env": env})
    return Bench(tiny=tiny, patches=patches, engine=engine)


def test_namespaces_and_containers_give_the_same_layers(
    bench: Bench, real_registry: RunningRegistry, base: MadeImage
) -> None:
    """In a container of the base itself, which the engine pulls by digest, and in one of another
    image."""
    here = bench.build("namespaces", use="linux-namespaces")
    there = bench.build("engine", use="docker-engine")
    tools = f"{real_registry.host}/sandboxes/tools"
    push(base, f"{tools}:t")
    elsewhere = bench.build("image", use="docker-engine", image=f"{tools}@{base.digest}")
    assert here.sandboxes == ["linux-namespaces"] * 3
    assert there.sandboxes == elsewhere.sandboxes == ["docker-engine"] * 3
    assert len(set(here.layers)) == 3
    assert there.layers == elsewhere.layers == here.layers
    assert there.image == elsewhere.image == here.image
