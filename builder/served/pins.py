"""A model that a container loads to a pin, and to the place where its files are."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from builder.compose.container import Container
from builder.compose.weights import Named, cache_of
from builder.errors import ProjectError
from builder.lock.model import ModelPin
from builder.models.place import Place, cache_name, plain, snapshot
from builder.project_files import Files
from builder.served.mounts import Found, Unmapped, check_whole, on_host, real_path

_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
"""What huggingface_hub takes for yes, in any case."""
_REF_LIMIT = 4096
"""The most bytes of what says the commit of a branch; a commit has 40."""


def by_hub_id(given: Container, name: Named, pins: Sequence[ModelPin]) -> tuple[ModelPin, Place]:
    """A name at the hub: the pin of that repository, in the hub's cache of the container.

    Raises:
        Unmapped: There is none, or it would be loaded at another commit.
    """
    matching = [pin for pin in pins if pin.repository.casefold() == name.text.casefold()]
    wanted = [pin for pin in matching if pin.commit.hex == name.revision] or matching
    if len(wanted) != 1:
        raise _not_one(wanted, f"the repository {name.text!r}")
    (pin,) = wanted
    # By the name as it is written: that is where the container looks.
    inside = PurePosixPath(cache_of(given), cache_name(name.text))
    found = on_host(given, inside)
    check_whole(given, found, inside)
    held = real_path(found, found.path)
    _check_revision(pin, name.revision, held)
    _check_offline(given, pin, name.revision)
    place = snapshot(pin, held, root=Path(os.path.realpath(found.mount.source)))
    if not place.directory.is_dir():
        raise Unmapped(
            f"{str(place.directory)!r} is not there", _fetch(found.path.parent, pins, cache=True)
        )
    return pin, place


def _check_revision(pin: ModelPin, revision: str | None, held: Path) -> None:
    """A name at the hub is loaded at ``main``, or at the revision that is given."""
    hint = f"add --revision {pin.commit}"
    if revision is not None and len(revision) == 40:
        if revision != pin.commit.hex:
            raise Unmapped(f"--revision {revision}, the lock has {pin.commit}", hint)
        return
    asked = revision or "main"
    if not asked.isprintable() or asked.startswith("/") or ".." in asked:
        raise Unmapped(f"--revision {asked!r} is none of the hub's", hint)
    try:
        said = Files(held).read(f"refs/{asked}", limit=_REF_LIMIT)
    except ProjectError as error:
        raise Unmapped(f"{str(held)!r}: {error.message}", hint) from None
    if said is None:
        raise Unmapped(
            f"it is loaded at {asked!r}, and no file in {str(held / 'refs')!r} says which commit"
            " that is",
            hint,
        )
    commit = said.decode("ascii", "replace").strip()
    if commit != pin.commit.hex:
        raise Unmapped(
            f"it is loaded at {asked!r}, which is {commit[:60]!r} in the cache, the lock has"
            f" {pin.commit}",
            hint,
        )


def _check_offline(given: Container, pin: ModelPin, revision: str | None) -> None:
    """A branch is asked for again whenever the container starts, where it may ask."""
    told = (given.environment.get(name) for name in _OFFLINE)
    offline = next((text for text in told if text), "").upper() in _TRUE
    if not offline and (revision is None or len(revision) != 40):
        raise Unmapped(
            f"it is loaded at {revision or 'main'!r}, of which the container asks the hub, and"
            " takes what is newer",
            f"add --revision {pin.commit}, or set HF_HUB_OFFLINE=1 in its environment",
        )


def by_path(
    given: Container, name: Named, pins: Sequence[ModelPin], *, alone: bool
) -> tuple[ModelPin, Place]:
    """A path of the container.

    Args:
        alone: Whether it must be the one pin there is, whatever its directory is called.

    Raises:
        Unmapped: No pin is meant, or it is not where this machine has it.
    """
    inside = PurePosixPath(name.text)
    found = on_host(given, inside)
    check_whole(given, found, inside)
    if not os.path.lexists(found.path):
        raise Unmapped(f"{str(found.path)!r} is not there", _fetch(found.path, pins))
    real = real_path(found, found.path)
    if real.is_dir():
        pin = _named_after((found.path, Path(inside)), real, pins, alone=alone)
        directory = real
    else:
        pin, directory = _with_file(found, pins)
    root = Path(os.path.realpath(found.mount.source))
    if not root.is_dir():
        root = directory
    return pin, plain(directory, root=root)


def _named_after(
    paths: Iterable[Path], real: Path, pins: Sequence[ModelPin], *, alone: bool
) -> ModelPin:
    """The pin that a directory is called after; a snapshot of the hub's cache has its commit."""
    if real.parent.name == "snapshots" and real.parent.parent.name.startswith("models--"):
        held = real.parent.parent.name.casefold()
        same = [pin for pin in pins if _held(pin) == held]
        exact = [pin for pin in same if pin.commit.hex == real.name]
        if same and not exact:
            raise Unmapped(f"it is commit {real.name}, the lock has {same[0].commit}")
        if len(exact) == 1:
            return exact[0]
        raise _not_one(exact, f"the repository of {held!r}")
    for path in paths:
        matching = [pin for pin in pins if path.name.casefold() in _names(pin)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise _not_one(matching, f"the name {path.name!r}")
    if alone:
        return pins[0]
    raise _not_one([], f"the name {next(iter(paths)).name!r}")


def _with_file(found: Found, pins: Sequence[ModelPin]) -> tuple[ModelPin, Path]:
    """The pin that has a single file, and the directory that its paths start from."""
    source = Path(found.mount.source)
    single = source == found.path
    matching: list[tuple[bool, ModelPin, Path]] = []
    for parent in found.path.parents:
        if not single and not parent.is_relative_to(source):
            break
        path = found.path.relative_to(parent).as_posix()
        having = [pin for pin in pins if any(file.path == path for file in pin.files)]
        matching += [(parent.name.casefold() in _names(pin), pin, parent) for pin in having]
    best = [item for item in matching if item[0]] or matching
    if len(best) != 1:
        raise _not_one([pin for _, pin, _ in best], f"the file {found.path.name!r}")
    _, pin, parent = best[0]
    if single and len(pin.files) > 1:
        raise Unmapped(
            f"one file is mounted, and {pin.name} has {len(pin.files)}", "mount its directory"
        )
    return pin, Path(os.path.realpath(parent))


def _names(pin: ModelPin) -> frozenset[str]:
    name = pin.repository.rpartition("/")[2]
    flat = pin.repository.replace("/", "--")
    return frozenset(text.casefold() for text in (pin.name, name, flat, _held(pin)))


def _held(pin: ModelPin) -> str:
    return cache_name(pin.repository).casefold()


def _not_one(pins: Sequence[ModelPin], what: str) -> Unmapped:
    if not pins:
        return Unmapped(
            f"no pin that it could be has {what}",
            "builder add model OWNER/NAME pins one, named as its directory is; a variant has it"
            " under models",
        )
    names = ", ".join(sorted({pin.name for pin in pins}))
    return Unmapped(f"{what} is that of several pins: {names}", "name the directory as the pin")


def _fetch(path: Path, pins: Sequence[ModelPin], *, cache: bool = False) -> str:
    if not pins:
        return "mount the directory that has it; no model is pinned: builder add model OWNER/NAME"
    return f"builder models fetch VARIANT --dir {path}{' --cache' if cache else ''}"
