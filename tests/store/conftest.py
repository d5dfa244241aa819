"""The stores under test."""

from pathlib import Path

import pytest

from builder.adapters.store import FileStore
from tests.memory_store import MemoryStore
from tests.store.worlds import AnyStore


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    """A store on disk that nobody has written to."""
    return FileStore(tmp_path / "store")


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> AnyStore:
    """Each implementation in turn."""
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")
