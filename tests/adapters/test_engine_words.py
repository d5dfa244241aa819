"""What an engine says that none of ours here would: by a stand-in of its API."""

import json
from collections.abc import Iterator

import pytest

from builder.adapters.engine import DockerEngine, _load_fault
from builder.digest import Digest
from builder.errors import EnvironmentFault
from builder.reference import Reference
from tests.standin.registry import Reply, StandIn, stand_in

IMAGE, OTHER = Digest.of(b"config"), Digest.of(b"manifest")
JSON = {"Content-Type": "application/json"}


def told(value: object) -> Reply:
    return Reply(headers=JSON, body=json.dumps(value).encode())


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as server:
        server.on("GET", "/version", told({"ApiVersion": "1.44"}), forever=True)
        yield server


@pytest.fixture
def engine(server: StandIn) -> DockerEngine:
    return DockerEngine(f"tcp://{server.host}")


@pytest.mark.parametrize(("found", "there"), [(IMAGE, True), (OTHER, False)])
def test_an_image_that_is_known_by_another_name_is_not_that_image(
    server: StandIn, engine: DockerEngine, found: Digest, there: bool
) -> None:
    """The containerd image store finds images by config, too, and names them by manifest."""
    server.on("GET", "/v[0-9.]+/images/.*/json", told({"Id": str(found), "RootFS": {}}))
    assert engine.has_image(IMAGE) is there


def test_a_pull_without_a_digest_is_a_bug_of_the_caller(
    server: StandIn, engine: DockerEngine
) -> None:
    with pytest.raises(RuntimeError, match="a pull needs a digest"):
        engine.pull(Reference.parse("r.example/app:t"))
    assert server.calls == []


def test_an_engine_without_space_is_told_so() -> None:
    fault = _load_fault("write /layer.tar: no space left on device")
    assert type(fault) is EnvironmentFault
    assert fault.message == "docker: load: write /layer.tar: no space left on device"
    assert fault.hint == "free some space: docker system df"
