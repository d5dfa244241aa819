"""Running commands for the scripts: `builder` as a user runs it, and the peers beside it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.adapters.store import FileStore

ROOT = Path(__file__).resolve().parent.parent
"""The project that the scripts belong to."""


class CommandError(Exception):
    """A command ended with another status than 0 (``None``: it did not start). ``said`` is the
    first line of what it said."""

    def __init__(self, message: str, *, status: int | None = None, said: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.said = said.partition("\n")[0].removeprefix("builder: error: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that ended with status 0."""

    stdout: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.stdout.decode().strip()


def run(
    argv: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    given: bytes = b"",
    umask: int = -1,
    user: int | None = None,
) -> Finished:
    """Run a command to its end; its wall time counts from fork to exit.

    Args:
        environment: All of it; the present one where it is left out.
        given: What it reads on stdin.
        user: Another uid and gid, and no other groups.

    Raises:
        CommandError: It ends with another status than 0, or cannot be started.
    """
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [os.fspath(item) for item in argv],
            input=given,
            capture_output=True,
            env=environment,
            cwd=directory,
            umask=umask,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            check=False,
        )
    except OSError as error:
        raise CommandError(f"{argv[0]}: {error}") from error
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        shown = " ".join(os.fspath(item) for item in argv)
        raise CommandError(
            f"{shown[:200]}: status {done.returncode}: {said[-800:]}",
            status=done.returncode,
            said=said,
        )
    return Finished(stdout=done.stdout, seconds=seconds)


def clean_environment(**more: str) -> dict[str, str]:
    """The present environment without what would change a build or where it goes; git mirrors,
    proxies and pip's settings stay."""
    unwanted = ("SOURCE_DATE_EPOCH", "DOCKER_HOST", "PYTHONDONTWRITEBYTECODE", "CI")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BUILDER_") and name not in unwanted
    }
    return kept | more


def mirrors(hosts: Mapping[str, str]) -> str:
    """``BUILDER_MIRRORS``: where these registries are, and the mirrors of the environment."""
    given = os.environ.get("BUILDER_MIRRORS", "").split()
    return " ".join([*(f"{host}={location}" for host, location in hosts.items()), *given])


def download_cache() -> Path:
    """Where large downloads are kept between runs: ``BUILDER_TEST_CACHE``, or a directory of the
    user's cache. All of it is checked by digest when it is used, and may be deleted."""
    given = os.environ.get("BUILDER_TEST_CACHE")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(given) if given else Path(cache) / "builder-tests"
    path.mkdir(parents=True, exist_ok=True)
    return path


def empty_store(path: Path) -> Path:
    """Make an empty store that finds the wheels of earlier runs."""
    with FileStore(path).lease():  # the store makes itself; only then may something lie in it
        pass
    wheels = download_cache() / "wheels"
    wheels.mkdir(exist_ok=True)
    (path / "wheels").symlink_to(wheels)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """``builder`` in a process of its own, with a store of its own."""

    store: Path
    project: Path = ROOT
    python: Path = Path(sys.executable)
    environment: Mapping[str, str] = field(default_factory=clean_environment)

    def run(self, *arguments: str | Path) -> Finished:
        """Run it in the project's directory, as a user does.

        Raises:
            CommandError: It refuses.
        """
        environment = {**self.environment, "BUILDER_STORE": str(self.store)}
        command = (self.python.with_name("builder"), *arguments)
        return run(command, environment=environment, directory=self.project)

    def ask(self, *arguments: str | Path) -> tuple[dict[str, Any], float]:
        """Run it with ``--json``; returns the document and the wall time."""
        done = self.run(*arguments, "--json")
        return json.loads(done.stdout), done.seconds
