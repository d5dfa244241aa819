"""A new project out of the files in ``template/``."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath

from builder.digest import Digest
from builder.errors import EnvironmentFault, UsageError
from builder.lock import codec
from builder.lock.edit import put
from builder.lock.model import WheelPin
from builder.wheel_archive import WheelName
from builder.wheel_pack import pack

_WHEEL = "wheels/hello-1.0-py3-none-any"
_PROJECT = ("builder.yaml", "variants", "lockfiles", "overlays")


def start_project(directory: Path) -> tuple[str, ...]:
    """Write a project into ``directory``; returns its files, sorted.

    All or nothing: what was written is removed again where the rest cannot be.

    Raises:
        UsageError: There is a project already, or a file that would be written.
        EnvironmentFault: The directory cannot be written.
    """
    template = dict(sorted(_files(files(__package__).joinpath("template"))))
    recipes = [name for name in template if name.startswith("variants/")]
    _refuse_what_is_there(directory, (*template, codec.WHEELS))
    with _undoing() as made:
        try:
            for name, data in template.items():
                if name not in recipes:
                    _write(directory / name, data, made)
            _write(directory / codec.WHEELS, _wheels_lock(directory), made)
            for name in recipes:  # last: variants/ is what makes a directory a project
                _write(directory / name, template[name], made)
        except FileExistsError as error:
            raise _there(directory, str(error.filename)) from error
        except OSError as error:
            raise EnvironmentFault(
                f"{error.filename or directory}: cannot be written: {error.strerror}"
            ) from error
    return tuple(sorted((*template, codec.WHEELS)))


def _files(directory: Traversable, below: str = "") -> Iterator[tuple[str, bytes]]:
    for item in directory.iterdir():
        if item.name == "__pycache__":
            continue  # installers compile what they install
        if item.is_dir():
            yield from _files(item, f"{below}{item.name}/")
        else:
            yield f"{below}{item.name}", item.read_bytes()


def _refuse_what_is_there(directory: Path, names: tuple[str, ...]) -> None:
    if not directory.is_dir() and (directory.exists() or directory.is_symlink()):
        raise UsageError(f"{directory}: expected a directory, got something else")
    for name in _PROJECT:
        if _is_there(directory / name):
            raise UsageError(
                f"{directory}: there is a project already: {name!r}",
                hint="give another directory: builder init DIR",
            )
    for name in names:
        if _is_there(directory / name):
            raise _there(directory, name)
        for parent in PurePath(name).parents[:-1]:
            place = directory / parent
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                raise _there(directory, str(parent))


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _there(directory: Path, name: str) -> UsageError:
    return UsageError(
        f"{directory}: {name!r} is there already, and init overwrites nothing",
        hint="move it away, or give another directory: builder init DIR",
    )


def _wheels_lock(directory: Path) -> bytes:
    """Pins what the wheel packs to, by the code that builds pack it with."""
    filename = f"{_WHEEL.rpartition('/')[2]}.whl"
    name = WheelName.parse(filename)
    pin = WheelPin(
        name=name.project,
        project=name.project,
        version=str(name.version),
        filename=filename,
        digest=Digest.of(pack(directory / _WHEEL)),
        path=_WHEEL,
    )
    return put(None, pin)


def _write(path: Path, data: bytes, made: list[Path]) -> None:
    for parent in reversed([path.parent, *path.parent.parents]):
        if not parent.exists():
            parent.mkdir()
            made.append(parent)
    with path.open("xb") as file:
        made.append(path)
        file.write(data)


@contextmanager
def _undoing() -> Iterator[list[Path]]:
    """Whatever ends the block early, what it put into the list is removed again."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):  # others may have put something there meanwhile
                if path.is_dir():
                    path.rmdir()
                else:
                    path.unlink()
        raise
