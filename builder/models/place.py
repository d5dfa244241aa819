"""Where the files of a model are on a disk, and which there are.

Two layouts are known. Plain: the directory is the model's (of several models each has a directory
of its pin's name in it). The hub's cache: ``models--OWNER--NAME/snapshots/COMMIT``, whose files are
links to ``blobs``.
"""

import os
import stat
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from builder.errors import IntegrityError
from builder.lock.model import ModelPin
from builder.value import value

_LINKS = 40
"""The most links that a path may lead through: Linux has the same limit."""
_OWN = ".cache/huggingface"
"""What huggingface_hub keeps about its downloads in a directory: no files of the model."""


class Identity(NamedTuple):
    """What changes when a file's bytes do: nobody can set back ``ctime_ns``."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Identity":
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )


@value
class Place:
    """The directory of one model. Links may lead anywhere in ``root``, and at no step out of it,
    because ``root`` is what containers get to see, under another name."""

    root: Path
    directory: Path
    scratch: Path
    """For files that are not whole yet, on the same file system."""
    blobs: Path | None = None
    """Where the bytes are, in the hub's cache."""

    def find(self, path: str) -> Path | None:
        """Where the bytes of a file are, links followed; ``None`` where there is nothing.

        Raises:
            IntegrityError: A link is absolute, leads out of ``root``, in a circle, or to nothing.
        """
        named = self.directory / path
        if not os.path.lexists(named):
            return None
        real = followed(named, root=self.root)
        if not real.exists():
            target = str(real.relative_to(self.root))
            raise IntegrityError(f"a link to {target!r}, which is not there")
        return real

    def target(self, path: str) -> Path:
        """Where a file is to be put, instead of whatever is there.

        Raises:
            IntegrityError: Something is in the way that nobody but its owner may remove.
        """
        named = self.directory / path
        for parent in filter(None, (named.parent, self.blobs)):
            if not Path(os.path.realpath(parent)).is_relative_to(self.root):
                raise IntegrityError(
                    f"{str(named)!r}: {str(parent)!r} leads out of {str(self.root)!r}",
                    hint="remove the link",
                )
        above = next(one for one in (named.parent, *named.parents) if os.path.lexists(one))
        if not above.is_dir() or (named.is_dir() and not named.is_symlink()):
            inside = "directory" if above.is_dir() else "file"
            raise IntegrityError(f"{str(named)!r}: a {inside} is in its place", hint="remove it")
        return named

    def link(self, path: str, blob: Path) -> None:
        """Let a file of a snapshot be a link to its bytes."""
        named = self.target(path)
        named.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.scratch / "link"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(os.path.relpath(blob, named.parent))
        fresh.replace(named)

    @contextmanager
    def open(self, real: Path) -> Iterator[tuple[FileIO, Identity]]:
        """Open what :meth:`find` found. It must stay as it is until the block ends.

        Raises:
            IntegrityError: It is no regular file, or was written to meanwhile.
        """
        # Not blocking: a named pipe would wait for somebody to write.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise IntegrityError("no regular file")
            identity = Identity.of(status)
            yield file, identity
            if Identity.of(os.fstat(descriptor)) != identity:
                raise IntegrityError("written to while it was read")

    def paths(self, *, through: AbstractSet[str] = frozenset()) -> Iterator[str]:
        """All that is in the directory, directories themselves left out, sorted by directory.

        Args:
            through: Directories that may be links, which are then followed.
        """
        yield from _below(str(self.directory), through)


def place_of(pin: ModelPin, root: Path, *, alone: bool, cache: bool | None = None) -> Place:
    """Where ``pin`` is in ``root``.

    Args:
        alone: Whether it is the only model, and ``root`` its own directory.
        cache: Whether it is the hub's cache; ``None`` for as it looks.
    """
    real = Path(os.path.realpath(root))
    held = real / cache_name(pin.repository)
    if held.is_dir() if cache is None else cache:
        return snapshot(pin, held, root=real)
    return plain(real if alone else real / pin.name, root=real)


def plain(directory: Path, *, root: Path) -> Place:
    """A model that has ``directory`` for itself."""
    return Place(root=root, directory=directory, scratch=directory / _OWN / "builder")


def snapshot(pin: ModelPin, held: Path, *, root: Path) -> Place:
    """The commit of ``pin`` in ``held``, its repository's directory in the hub's cache."""
    return Place(
        root=root,
        directory=held / "snapshots" / pin.commit.hex,
        scratch=held / ".builder",
        blobs=held / "blobs",
    )


def cache_name(repository: str) -> str:
    """What the hub's cache calls the directory of a repository.

    >>> cache_name("Team/Tiny")
    'models--Team--Tiny'
    """
    return f"models--{repository.replace('/', '--')}"


def followed(path: Path, *, root: Path) -> Path:
    """Where a path leads if ``root`` is all that can be seen, as it is for a container that has it
    mounted somewhere.

    Args:
        path: Below ``root``; it need not be there.
        root: Without links.

    Raises:
        IntegrityError: A link is absolute, leads out of ``root``, or in a circle.
    """
    place, waiting, links = root, [*reversed(path.relative_to(root).parts)], 0
    while waiting:
        part = waiting.pop()
        if part == ".." and place == root:
            raise _out(path, root)
        place = place.parent if part == ".." else place / part
        if not place.is_symlink():
            continue
        links += 1
        target = PurePosixPath(place.readlink())
        if links > _LINKS:
            raise IntegrityError("links that lead in a circle")
        if target.is_absolute():
            if not Path(os.path.realpath(path)).is_relative_to(root):
                raise _out(path, root)
            raise IntegrityError(
                f"a link to {str(target)!r}, which is another place where {str(root)!r} is mounted:"
                " make it relative"
            )
        place = place.parent
        waiting += reversed(target.parts)
    return place


def _out(path: Path, root: Path) -> IntegrityError:
    return IntegrityError(
        f"a link out of the directory, to {os.path.realpath(path)!r}: who gets to see only"
        f" {str(root)!r} finds nothing there"
    )


def _below(directory: str, through: AbstractSet[str]) -> Iterator[str]:
    waiting = _entries(directory, "")  # no recursion: directories may be nested deeper than calls
    while waiting:
        path, entry = waiting.pop()
        if not entry.is_dir(follow_symlinks=path in through):
            yield path
        elif path != _OWN:
            waiting += _entries(entry.path, f"{path}/")


def _entries(directory: str, prefix: str) -> list[tuple[str, os.DirEntry[str]]]:
    """What is in a directory, by path: the last one first."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name, reverse=True)
    except FileNotFoundError:
        return []
    return [(prefix + entry.name, entry) for entry in entries]
