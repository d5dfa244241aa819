"""Under what a build must not differ."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands import CommandError, run
from tests.reproduce.worlds import World

STRANGER = 12345
"""A uid that owns nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What is special about one build; everything else is as in the first one."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str | Path, ...] = ()
    """A program that runs the build: another clock, fewer cores."""
    arguments: tuple[str, ...] = ()
    umask: int = 0o022
    user: int | None = None
    project: Path | None = None
    python: Path | None = None
    warm: bool = False
    """In the store of the build before."""
    real: bool = False
    """Also for the image on the real wheel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A condition that this machine cannot give."""

    name: str
    why: str


def conditions(world: World) -> Iterator[Condition | Lacking]:
    """All of them; the first is the one that the others are compared with."""
    yield Condition(name="umask 022, empty store", real=True)
    yield Condition(name="the same store again", warm=True)
    yield Condition(name="the same store, --check", warm=True, arguments=("--check",))
    for umask in (0o000, 0o077):
        yield Condition(name=f"umask {umask:03o}", umask=umask, real=umask == 0o077)
    yield from _users(world)
    for zone in ("Asia/Kathmandu", "America/St_Johns"):
        yield Condition(name=f"TZ={zone}", environment={"TZ": zone})
    yield from _locales(world)
    for seed in ("0", "1", "random"):
        yield Condition(name=f"PYTHONHASHSEED={seed}", environment={"PYTHONHASHSEED": seed})
    for epoch in ("0", "1700000000"):
        name = f"SOURCE_DATE_EPOCH={epoch}"
        yield Condition(name=name, environment={"SOURCE_DATE_EPOCH": epoch})
    yield from _clocks(world)
    yield Condition(name="one core", prefix=("taskset", "-c", "0"))
    yield from _places(world)
    yield from _pythons(world)


def _users(world: World) -> Iterator[Condition | Lacking]:
    name = f"uid {STRANGER}"
    if not world.is_root:
        yield Lacking(name=name, why="only root can become another user")
    elif (python := world.python_for(STRANGER)) is None:
        yield Lacking(name=name, why="no Python here that another user can run")
    else:
        yield Condition(name=name, user=STRANGER, python=python, real=True)


def _locales(world: World) -> Iterator[Condition | Lacking]:
    plain = {"PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    yield Condition(name="LC_ALL=C, PYTHONUTF8=0", environment={"LC_ALL": "C", **plain})
    turkish = {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}
    name = "LC_ALL=tr_TR.UTF-8"
    try:
        # Compiled here, because few machines have it; the C library looks for it in LOCPATH.
        place = world.scratch / "locales"
        place.mkdir()
        run(("localedef", "-i", "tr_TR", "-f", "UTF-8", place / "tr_TR.UTF-8"))
        yield Condition(name=name, environment={**turkish, "LOCPATH": str(place)}, real=True)
    except CommandError as error:
        if "tr_TR.utf8" in run(("locale", "-a")).text.split():
            yield Condition(name=name, environment=turkish, real=True)
        else:
            yield Lacking(name=name, why=f"no such locale (Debian package locales): {error.said}")


def _clocks(world: World) -> Iterator[Condition | Lacking]:
    for time in ("1999-12-31 23:59:58", "2037-06-01 00:00:00"):
        name = f"clock at {time}"
        try:
            run(("faketime", time, "true"))
        except CommandError:
            yield Lacking(name=name, why="faketime is not installed (Debian package faketime)")
        else:
            yield Condition(name=name, prefix=("faketime", time))


def _places(world: World) -> Iterator[Condition]:
    hostile = world.hostile_git()
    yield Condition(name="a directory with another name", project=world.copy("other näme"))
    yield Condition(
        name="files 0600, from 1980, made in another order",
        project=world.copy("odd", mode=0o600, mtime=315532800, backwards=True),
    )
    checkout = world.outer_checkout()
    yield Condition(name="inside another git checkout", project=checkout, environment=hostile)
    inside = {"GIT_DIR": str(checkout.parent / ".git"), "GIT_WORK_TREE": str(checkout.parent)}
    inside |= {"GIT_INDEX_FILE": "none", "GIT_OBJECT_DIRECTORY": "/nonexistent"}
    name = "called from a git hook of it"
    yield Condition(name=name, project=checkout, environment=hostile | inside)


def _pythons(world: World) -> Iterator[Condition | Lacking]:
    for minor, interpreter in world.interpreters():
        if interpreter is None:
            yield Lacking(name=f"Python 3.{minor}", why="not installed")
            continue
        try:
            python = world.python_of(interpreter)
        except CommandError as error:
            yield Lacking(name=interpreter.name, why=error.said)
        else:
            yield Condition(name=interpreter.name, python=python, real=True)
