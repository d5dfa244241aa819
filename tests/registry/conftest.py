"""A client without real time, and stand-ins to talk to."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from tests.standin.registry import StandIn, stand_in


@dataclass
class Clock:
    """Time that passes only where the client sleeps or a test says so."""

    seconds: float = 1000.0
    naps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.seconds += seconds

    def now(self) -> float:
        return self.seconds


MakeClient = Callable[..., RegistryClient]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with stand_in() as server:
        yield server


@pytest.fixture
def other() -> Iterator[StandIn]:
    """A second server on another port: another origin."""
    with stand_in() as server:
        yield server


@pytest.fixture
def make_client(clock: Clock) -> Iterator[MakeClient]:
    """Makes clients from settings of the configuration."""
    clients = []

    def make(*, chunk_size: int = 8 << 20, **settings: Any) -> RegistryClient:
        client = RegistryClient(
            RegistryConfiguration(**settings),
            sleep=clock.sleep,
            clock=clock.now,
            now=clock.now,
            chunk_size=chunk_size,
        )
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(make_client: MakeClient) -> RegistryClient:
    return make_client()


DockerLogin = Callable[[dict[str, str]], Path]


@pytest.fixture
def docker_config(tmp_path: Path) -> DockerLogin:
    """Writes a config.json from ``{host: "user:password"}``."""

    def write(logins: dict[str, str]) -> Path:
        path = tmp_path / "config.json"
        auths = {
            host: {"auth": base64.b64encode(pair.encode()).decode()}
            for host, pair in logins.items()
        }
        path.write_text(json.dumps({"auths": auths}))
        return path

    return write
