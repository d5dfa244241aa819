"""One variant, built under one condition after another."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.wheelhouse import Wheelhouse
from builder.digest import Digest
from builder.errors import BuilderError
from builder.project import Project
from builder.statements import Kind
from tests.claims import Claims
from tests.commands import (
    ROOT,
    CommandError,
    Finished,
    clean_environment,
    download_cache,
    empty_store,
    mirrors,
    run,
)
from tests.plugins.requires import missing
from tests.reproduce.conditions import Condition
from tests.reproduce.difference import first_difference
from tests.reproduce.worlds import World
from tests.services import running_registry

_BASE = "vllm-0.22.0-wheel"
_REGISTRY = "registry.example.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealBase:
    """The base out of the real wheel, in a registry on loopback."""

    variant: str
    host: str


@contextmanager
def real_base(world: World, claims: Claims, *, fetch: bool) -> Iterator[RealBase | None]:
    """Bake and push the real base, where its wheel is at hand.

    Args:
        fetch: Get the wheel where it is not; that it cannot be had is a failure then.
    """
    what = "a variant on the real wheel"
    if why := missing("docker-registry"):
        claims.not_run(what, why)
        yield None
        return
    pin = Project(ROOT).wheels["vllm-0.22.0"]
    house = Wheelhouse(ROOT, cache=download_cache() / "wheels", offline=not fetch)
    try:
        house.fetch(
            project=pin.project, version=pin.version, filename=pin.filename, digest=pin.digest
        )
    except BuilderError as error:
        if fetch:
            claims.holds(what, False, error.message)
        else:
            claims.not_run(what, "the wheel was not fetched yet; --fetch does, and make real")
        yield None
        return
    place = world.scratch / "registry"
    place.mkdir()
    with running_registry(place) as registry:
        store = empty_store(world.scratch / "store-of-the-base")
        environment = _environment(world) | {"BUILDER_MIRRORS": _mirrored(registry.host)}
        command = (sys.executable, "-m", "builder", "-C", ROOT, "--store", store)
        target = f"{_REGISTRY}/builder/vllm-wheel:v0.22.0"
        run((*command, "build", _BASE, "--push", target), environment=environment)
        shutil.rmtree(store)
        yield RealBase(variant="vllm-0.22.0-guards", host=registry.host)


class Builds:
    """The builds of one variant, each compared with the first one."""

    def __init__(
        self, world: World, variant: str, *, claims: Claims, base: RealBase | None = None
    ) -> None:
        self._world = world
        self.name = variant
        self._claims = claims
        self._base = base
        self._project = world.copy(f"project-{variant}")
        self._first: tuple[Path, Digest] | None = None
        self._said: dict[str, Digest] = {}
        self._count = 0

    @property
    def digest(self) -> Digest | None:
        """That of the first build, which all others must have."""
        return None if self._first is None else self._first[1]

    def build(self, condition: Condition) -> str:
        """Build under a condition and compare; returns the digest for the table."""
        store = self._store(condition)
        claim = f"{self.name}, {condition.name}"
        try:
            digest = self._run(condition, store)
            said = self._statements(condition, store)
        except CommandError as error:
            self._claims.holds(claim, False, error)
            return "failed"
        if self._first is None:
            self._first, self._said = (store, digest), said
        known, wanted = self._first
        if digest != wanted:
            where = first_difference(known, store, (wanted, digest))
            self._claims.holds(claim, False, f"got {digest}, wanted {wanted}; {where}")
        elif others := [kind for kind in said if said[kind] != self._said[kind]]:
            self._claims.holds(claim, False, f"another {' and another '.join(others)} is said")
            return "another statement"
        else:
            self._claims.count(claim, True)
        return digest.short

    def _store(self, condition: Condition) -> Path:
        if condition.warm and self._first is not None:
            return self._first[0]
        # In a directory of the user who builds: a store belongs to somebody.
        self._count += 1
        home = self._world.scratch / f"{self.name}-{self._count}"
        home.mkdir()
        if condition.user is not None:
            os.chown(home, condition.user, condition.user)
        return home / "store"

    def _run(self, condition: Condition, store: Path) -> Digest:
        done = self._command(condition, store, "--json", "build", *condition.arguments, self.name)
        return Digest.parse(json.loads(done.stdout)["images"][0]["digest"])

    def _statements(self, condition: Condition, store: Path) -> dict[str, Digest]:
        """What would be signed of it, by kind."""
        return {
            str(kind): Digest.of(
                self._command(condition, store, "manifest", self.name, "--type", str(kind)).stdout
            )
            for kind in Kind
        }

    def _command(self, condition: Condition, store: Path, *arguments: str) -> Finished:
        python = condition.python or Path(sys.executable)
        environment = _environment(self._world)
        if self._base is not None:
            environment["BUILDER_MIRRORS"] = _mirrored(self._base.host)
        project = condition.project or self._project
        return run(
            (
                *(*condition.prefix, python, "-m", "builder"),
                *("-C", project, "--store", store),
                *arguments,
            ),
            environment={**environment, **condition.environment},
            umask=condition.umask,
            user=condition.user,
            directory=Path("/"),
        )


def _environment(world: World) -> dict[str, str]:
    """The program from where everybody can read it. No bytecode is written beside it."""
    program = str(world.program())
    return clean_environment(PYTHONPATH=program, PYTHONDONTWRITEBYTECODE="1")


def _mirrored(host: str) -> str:
    return mirrors({_REGISTRY: host})
