"""Into a real Docker Engine, and out of it."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.fakes import File, Link
from tests.flow.images import PACKAGES, image, push
from tests.flow.worlds import Tiny
from tests.plugins.requires import which
from tests.services import RunningRegistry
from tests.services_docker import running_dockerd

pytestmark = pytest.mark.requires("dockerd", "docker-registry", "busybox", "root")

CONFIG = f"{PACKAGES}/vllm/config.py"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The ``DOCKER_HOST`` of an engine of our own."""
    with running_dockerd(tmp_path_factory.mktemp("engine")) as host:
        yield host


@pytest.fixture
def client(engine: str) -> Iterator[docker.DockerClient]:
    """A client of that engine, which has no image when a test begins."""
    client = docker.DockerClient(base_url=engine, timeout=60)
    for left in client.images.list():
        client.images.remove(left.id or "", force=True)
    yield client
    client.close()


def _project(tmp_path: Path, host: str, repository: str) -> Tiny:
    """A variant on a base that can run, in a registry from which the engine can pull it."""
    busybox = Path(which("busybox") or "busybox").read_bytes()
    made = image(
        {"bin/busybox": File(busybox, mode=0o755), "bin/sh": Link("busybox")},
        {f"{PACKAGES}/vllm/__init__.py": b"", CONFIG: b"SIZE = 128\n"},
        settings={"Cmd": ["/bin/busybox", "cat", f"/{CONFIG}"], "Env": ["PATH=/bin"]},
    )
    push(made, f"{host}/{repository}:t")
    tiny = Tiny.make(tmp_path)
    tiny.pin(made, repository=f"{host}/{repository}")
    tiny.edit("one", "vllm/config.py", "128", "256")
    tiny.edit("two", "vllm/config.py", "256", "384")
    tiny.variant("it", "one", "two")
    return tiny


def _said(client: docker.DockerClient, name: str) -> bytes:
    """What the image's own command prints."""
    output: bytes = client.containers.run(name, network_mode="none", remove=True)
    return output


def test_only_our_layers_are_moved_and_the_second_time_none(
    tmp_path: Path, real_registry: RunningRegistry, engine: str, client: docker.DockerClient
) -> None:
    tiny = _project(tmp_path, real_registry.host, "load/base")
    assert client.images.list() == []
    first = tiny.run("load", "it", "--name", "flow/it:1", "--json", DOCKER_HOST=engine)
    assert first.status == 0, first.err
    assert first.json["layers_moved"] == 2
    assert first.json["id"] == client.images.get("flow/it:1").id
    assert _said(client, "flow/it:1") == b"SIZE = 384\n"
    second = tiny.run("load", "it", "--name", "flow/it:2", "--json", DOCKER_HOST=engine)
    assert second.json["layers_moved"] == 0
    assert client.images.get("flow/it:2").id == client.images.get("flow/it:1").id
    tiny.edit("two", "vllm/config.py", "256", "512")
    third = tiny.run("load", "it", "--name", "flow/it:1", "--json", DOCKER_HOST=engine)
    assert third.json["layers_moved"] == 2
    assert _said(client, "flow/it:1") == b"SIZE = 512\n"
    assert _said(client, "flow/it:2") == b"SIZE = 384\n"


def test_a_pushed_image_is_pulled_by_digest_and_run(
    tmp_path: Path, real_registry: RunningRegistry, client: docker.DockerClient
) -> None:
    tiny = _project(tmp_path, real_registry.host, "pull/base")
    repository = f"{real_registry.host}/pull/out"
    done = tiny.run("push", "it", f"{repository}:it", "--json")
    assert done.json["reference"] == f"{repository}:it@{done.json['digest']}"
    pulled = client.images.pull(f"{repository}@{done.json['digest']}")
    assert pulled.id is not None
    assert _said(client, pulled.id) == b"SIZE = 384\n"
    assert pulled.id == str(tiny.bake().image.manifest.config.digest)


def test_a_base_that_the_engine_cannot_pull_is_sent(
    tmp_path: Path, real_registry: RunningRegistry, engine: str, client: docker.DockerClient
) -> None:
    tiny = _project(tmp_path, real_registry.host, "sent/base")
    # Another base than the engine has, under a name that only builder knows how to reach.
    tiny.document(
        "builder.yaml",
        {
            "version": 1,
            "registries": {"nowhere.test": {"location": real_registry.host, "plain_http": True}},
        },
    )
    made = image(
        {"bin/busybox": File(Path(which("busybox") or "").read_bytes(), mode=0o755)},
        {f"{PACKAGES}/vllm/__init__.py": b"# sent\n", CONFIG: b"SIZE = 128\n"},
        settings={"Cmd": ["/bin/busybox", "cat", f"/{CONFIG}"]},
    )
    push(made, f"{real_registry.host}/sent/other:t")
    tiny.pin(made, repository="nowhere.test/sent/other")
    done = tiny.run("load", "it", "--name", "flow/sent:1", "--json", DOCKER_HOST=engine)
    assert done.status == 0, done.err
    assert done.json["layers_moved"] == 4
    assert "the engine cannot pull the base itself" in done.err
    assert _said(client, "flow/sent:1") == b"SIZE = 384\n"


def test_no_engine_is_this_machines_fault(tmp_path: Path) -> None:
    tiny = Tiny.make(tmp_path)
    tiny.overlay("it", files={"/it": (None, b"it\n")})
    python = {"version": "3.12", "packages": PACKAGES}
    tiny.variant("it", "it", base="scratch", python=python)
    done = tiny.run("load", "it", DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert done.status == 9
    assert "no answer from the Docker Engine" in done.first
