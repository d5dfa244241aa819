"""A hub to ask, and a client whose waits take no time."""

from collections.abc import Callable, Iterator

import pytest

from builder.adapters.hub import HubClient
from builder.adapters.hub_settings import HubSettings
from tests.standin.hub import StandInHub, stand_in_hub

NAME = "Team/Tiny-3B-int4"
MakeClient = Callable[..., HubClient]


@pytest.fixture
def hub() -> Iterator[StandInHub]:
    with stand_in_hub() as server:
        yield server


@pytest.fixture
def naps() -> list[float]:
    """How long the clients waited."""
    return []


@pytest.fixture
def make_client(hub: StandInHub, naps: list[float]) -> Iterator[MakeClient]:
    """Makes clients of the hub, with the environment that is given."""
    clients = []

    def make(**environment: str) -> HubClient:
        given = {"HF_ENDPOINT": hub.endpoint, "HF_TOKEN_PATH": "/nonexistent/token"} | environment
        client = HubClient(HubSettings.of(given), sleep=naps.append)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(make_client: MakeClient) -> HubClient:
    return make_client()
