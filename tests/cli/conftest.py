"""A small project, and the command line on it: in this process, or in one of its own."""

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builder.cli.start import start_project

if TYPE_CHECKING:
    from tests.cli.signed_world import World

DEMO = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """What a command line came to."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Builder = Callable[..., Ran]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project that ``builder init`` makes."""
    directory = tmp_path / "project"
    start_project(directory)
    return directory


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """The demo of this repository, without its other variants, without the mirror that makes it
    work offline, and as if nobody had accepted it."""
    directory = tmp_path / "demo"
    for name in ("lockfiles", "overlays", "demo"):
        shutil.copytree(DEMO / name, directory / name, ignore=shutil.ignore_patterns("images"))
    (directory / "variants").mkdir()
    shutil.copy(DEMO / "variants/demo.yaml", directory / "variants")
    return directory


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The store of the test; nothing is there yet."""
    return tmp_path / "store"


@pytest.fixture
def environment(tmp_path: Path, store: Path) -> dict[str, str]:
    """An environment in which nothing of the machine shows."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "BUILDER_STORE": str(store),
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }


@pytest.fixture
def builder(
    project: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Builder]:
    """Run a command line in the project, in this process: ``builder("plan", "hello")``."""
    from builder.cli.app import run

    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project)
    logger = logging.getLogger("builder")
    before = logger.handlers[:], logger.level, logger.propagate

    def call(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    yield call
    logger.handlers[:], logger.level, logger.propagate = before


@pytest.fixture
def command(project: Path, environment: dict[str, str]) -> Builder:
    """Run a command line in a process of its own."""

    def call(*arguments: str | Path, **extra: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "builder", *map(str, arguments)],
            cwd=project,
            env=environment | {"PYTHONPATH": str(DEMO)} | extra,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def layout(builder: Builder, project: Path, tmp_path: Path) -> Path:
    """The project's image in a layout, not signed yet."""
    directory = tmp_path / "layout"
    assert builder("build", "hello", "--out", directory).status == 0
    return directory


@pytest.fixture(scope="session")
def unsigned(tmp_path_factory: pytest.TempPathFactory) -> "World":
    """The image of a new project in a layout, with nothing beside it: not to be changed."""
    from tests.cli.signed_world import make_world

    return make_world(tmp_path_factory.mktemp("unsigned"))


@pytest.fixture
def world(unsigned: "World", tmp_path: Path) -> "World":
    """A copy of it, to be signed and spoilt."""
    return unsigned.copy(tmp_path / "layout")


def tree(directory: Path) -> dict[str, bytes | None]:
    """Everything below a directory, to compare with later: bytes of files, ``None`` for the
    rest."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }
