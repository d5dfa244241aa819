"""Files of an image, as values: entries, and the view of a merged tree that steps read.

A path is relative to the image's root, without a leading slash, without ``.`` or ``..`` parts;
bytes that are not UTF-8 are carried with ``surrogateescape``.
"""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from builder.digest import Digest
from builder.errors import IntegrityError

EPOCH = 315532800
"""The mtime of everything we write: 1980-01-01T00:00:00Z, the earliest that a zip can hold, so
that wheels and jars packed from inside the image keep working."""


class Kind(StrEnum):
    """What an entry is. The values stand in file indexes."""

    FILE = "file"
    DIRECTORY = "dir"
    SYMLINK = "symlink"
    HARDLINK = "hardlink"
    CHARACTER = "char"
    BLOCK = "block"
    FIFO = "fifo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a layer or of a merged tree.

    ``mode`` holds the permission bits (07777). ``size`` and ``digest`` are of a file's content;
    ``target`` is the text of a symlink, or the path (from the root) that a hard link names.
    ``xattrs`` are (name, value) sorted by name, without the ``SCHILY.xattr.`` prefix.
    """

    path: str
    kind: Kind
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0
    digest: Digest | None = None
    target: str | None = None
    xattrs: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_file(self) -> bool:
        return self.kind is Kind.FILE

    @property
    def is_directory(self) -> bool:
        return self.kind is Kind.DIRECTORY

    def record(self) -> dict[str, Any]:
        """All that can be seen of the entry, as canonical JSON takes it; fields at their default
        (except the mode) are left out."""
        value: dict[str, Any] = {"kind": str(self.kind), "mode": f"{self.mode:04o}"}
        if self.uid or self.gid:
            value["owner"] = [self.uid, self.gid]
        if self.digest is not None:
            value |= {"digest": str(self.digest), "size": self.size}
        if self.target is not None:
            value["target"] = self.target
        if self.xattrs:
            value["xattrs"] = {name: data.hex() for name, data in self.xattrs}
        return value


class View(Protocol):
    """The merged tree that a step sees: the parent image, read-only.

    Links are those of the image: a parent directory that is a symlink is followed inside the
    image's root, never outside of it.
    """

    def stat(self, path: str) -> Entry | None:
        """The entry at ``path``, or ``None``. Parents that are links are followed, the last
        component is not. A hard link is returned as the file that it names, under ``path``."""

    def children(self, path: str, *, prefix: str = "") -> tuple[str, ...]:
        """The sorted names in the directory at ``path`` that start with ``prefix``; empty where
        there is no directory. Whoever asks for less depends on less: see
        :class:`builder.observed.Observed`."""

    def below(self, path: str) -> tuple[Entry, ...]:
        """Everything below the directory at ``path`` that is no directory itself, sorted by path.
        Compiled files (``__pycache__``) are left out. Empty where there is no directory."""

    def read_many(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        """As :meth:`read`, of many files at once."""

    def read(self, path: str) -> bytes:
        """The verified content of the regular file at ``path``.

        Raises:
            KeyError: There is no regular file: a bug of the caller, who should have asked.
            IntegrityError: The bytes are not those of the index.
        """

    def resolve(self, path: str) -> str:
        """``path`` with every parent that is a link replaced by what it leads to, so that an entry
        written there lands in the directory that is really meant. The last component is kept.

        Raises:
            IntegrityError: A loop, or a link that leads out of the image's root.
        """

    def prefetch(self, paths: Iterable[str]) -> None:
        """Say which files will be read, so that each layer is streamed at most once."""


def normal(path: str, *, at: str) -> str:
    """A path from outside, checked and without leading ``./`` or ``/``.

    Raises:
        IntegrityError: ``..``, NUL, a backslash with a drive, an empty path. ``at`` names the
            place for the message.
    """
    if "\0" in path:
        raise IntegrityError(f"{at}: a path with a NUL byte: {path!r}")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise IntegrityError(f"{at}: a path that leaves the image: {path!r}")
    if not parts:
        raise IntegrityError(f"{at}: an empty path: {path!r}")
    return "/".join(parts)


def parents(path: str) -> tuple[str, ...]:
    """The directories above ``path``, outermost first.

    >>> parents("a/b/c.py")
    ('a', 'a/b')
    """
    found: list[str] = []
    while path := posixpath.dirname(path):
        found.append(path)
    return tuple(reversed(found))
