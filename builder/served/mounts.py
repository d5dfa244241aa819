"""A path of a container to one of this machine."""

import os
from pathlib import Path, PurePosixPath

from builder.compose.container import Container, Kind, Mount
from builder.compose.interpolation import unset
from builder.errors import IntegrityError
from builder.models.place import followed
from builder.value import value


class Unmapped(Exception):
    """Why a model cannot be verified."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


@value
class Found:
    """A path of this machine with the mount that it is in."""

    mount: Mount
    path: Path


def on_host(given: Container, inside: PurePosixPath) -> Found:
    """Where a path of a container is on this machine."""
    if ".." in inside.parts:
        raise Unmapped(f"{str(inside)!r} has '..' in it", "write the path as it is")
    over = [mount for mount in given.mounts if inside.is_relative_to(mount.target)]
    if not over:
        raise Unmapped(
            f"{str(inside)!r} is in no mount: it would be inside of the image, or in a volume"
            " of the image's",
            "mount the model's directory",
        )
    mount = max(over, key=lambda one: len(PurePosixPath(one.target).parts))
    at = f"{mount.target!r} ({mount.file}:{mount.line})"
    if missing := unset(mount.source):
        raise Unmapped(f"{at}: {missing[0]} is not set, and has no default", "set it")
    if mount.kind is Kind.OTHER:
        raise Unmapped(f"{at} is no directory of this machine", "mount the model's directory")
    if mount.kind is not Kind.BIND:
        name = f"the volume {mount.source!r}" if mount.source else "a volume without a name"
        raise Unmapped(
            f"{at} is {name}, whose place only the engine knows",
            "mount a directory; or builder models verify VARIANT --dir DIR",
        )
    source = Path(mount.source)
    if not os.path.exists(source):  # noqa: PTH110 - also where that cannot be asked
        raise Unmapped(f"{at}: {mount.source!r} is not there: Docker would make it, empty")
    rest = inside.relative_to(mount.target)
    return Found(mount=mount, path=source / rest if rest.parts else source)


def real_path(found: Found, path: Path) -> Path:
    """The path without links, which must lead to the same place in the container."""
    source = Path(found.mount.source)
    root = Path(os.path.realpath(source))
    try:
        return followed(root / path.relative_to(source), root=root)
    except IntegrityError as error:
        raise Unmapped(
            f"{str(path)!r}: {error.message}",
            "make the link relative, or mount where it leads to",
        ) from None


def check_whole(given: Container, found: Found, inside: PurePosixPath) -> None:
    """Hold a path of a container to be what its directory is: nothing is mounted over a part.

    Raises:
        Unmapped: Something is.
    """
    for mount in given.mounts:
        if mount is not found.mount and PurePosixPath(mount.target).is_relative_to(inside):
            raise Unmapped(
                f"{mount.target!r} is mounted over a part of it ({mount.file}:{mount.line})",
                "what the container sees there is not what the directory has",
            )
