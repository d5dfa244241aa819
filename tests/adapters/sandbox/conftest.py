"""Both sandboxes, for tests that ask for ``sandbox``; an engine of our own for the session."""

from collections.abc import Iterator

import pytest

from builder.adapters.sandbox import EngineSandbox, NamespaceSandbox
from builder.sandbox import Sandbox
from tests.adapters.sandbox.image import imported
from tests.services_docker import running_dockerd

ENGINE = pytest.mark.requires("dockerd", "root")


@pytest.fixture(scope="session")
def engine_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_dockerd(tmp_path_factory.mktemp("sandbox-engine")) as host:
        yield host


@pytest.fixture(scope="session")
def engine_sandbox(engine_host: str) -> EngineSandbox:
    return EngineSandbox(imported(engine_host), base_url=engine_host)


@pytest.fixture(params=["namespaces", pytest.param("engine", marks=ENGINE)])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each kind in turn."""
    if request.param == "namespaces":
        return NamespaceSandbox()
    sandbox: EngineSandbox = request.getfixturevalue("engine_sandbox")
    return sandbox
