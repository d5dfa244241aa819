"""A registry for images."""

from collections.abc import Iterator

import pytest

from tests.resolve.image_world import World
from tests.standin.registry import stand_in


@pytest.fixture
def world() -> Iterator[World]:
    with stand_in() as registry:
        made = World(registry)
        yield made
        made.client.close()
