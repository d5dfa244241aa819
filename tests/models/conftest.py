"""A store, and a hub that has the tiny model."""

from collections.abc import Iterator

import pytest

from builder.adapters.hub import HubClient
from builder.adapters.hub_settings import HubSettings
from tests.memory_store import MemoryStore
from tests.standin.hub import StandInHub, stand_in_hub


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(autouse=True)
def _disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the tests count as on a disk, also where they are in memory."""
    monkeypatch.setattr("builder.models.verify.silent_devices", frozenset)


@pytest.fixture
def server() -> Iterator[StandInHub]:
    with stand_in_hub() as hub:
        yield hub


@pytest.fixture
def hub(server: StandInHub) -> Iterator[HubClient]:
    settings = HubSettings.of({"HF_ENDPOINT": server.endpoint, "HF_TOKEN_PATH": "/nonexistent"})
    client = HubClient(settings, sleep=lambda seconds: None)
    yield client
    client.close()
