"""What the tests of nights share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.conftest import log, registry, tiny
from tests.nightly.forge import Forge, running_forge
from tests.nightly.repository import Repository

__all__ = ["forge", "log", "registry", "repository", "tiny"]


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running_forge() as found:
        yield found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.make(tmp_path)
