"""The services that the tests of the flow share, and the log of what was run."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.worlds import REGISTRY, Tiny
from tests.services import RunningRegistry, running_registry
from tests.standin.registry import StandIn, stand_in


class Log(logging.Handler):
    """What builder said, in order, whatever the level and whoever configured logging before."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def runs(self) -> list[str]:
        """The steps that were run since the last call."""
        return self._take("running step ")

    def streamed(self) -> list[str]:
        """The base layers that were read since the last call."""
        return self._take("reading base layer ")

    def _take(self, start: str) -> list[str]:
        found = [line.removeprefix(start) for line in self.lines if line.startswith(start)]
        self.lines = [line for line in self.lines if not line.startswith(start)]
        return found


@pytest.fixture
def log() -> Iterator[Log]:
    logger, handler = logging.getLogger("builder"), Log()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.setLevel(level)
    logger.removeHandler(handler)


@pytest.fixture
def registry() -> Iterator[StandIn]:
    """A registry that tells what it was asked."""
    with stand_in() as server:
        yield server


@pytest.fixture
def tiny(tmp_path: Path, registry: StandIn) -> Tiny:
    """An empty project whose registry is the stand-in."""
    return Tiny.make(tmp_path, registries={REGISTRY: {"location": registry.host}})


@pytest.fixture(scope="session")
def real_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    """One real registry for all tests of the directory; each has repositories of its own."""
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running
