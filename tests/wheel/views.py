"""A ``builder.tree.View`` over a dict, for images that are two files big."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.tree import Entry, Kind, parents
from tests.fakes import listed_below


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(slots=True)
class Image:
    """The files of an image by path; ``None`` is a directory. ``reads`` says what was read."""

    files: Mapping[str, bytes | Link | None]
    reads: list[str] = field(default_factory=list)

    def stat(self, path: str) -> Entry | None:
        real = self.resolve(path)
        node = self.files.get(real, ...)
        if node is ...:
            inside = any(real in parents(other) for other in self.files)
            return Entry(path=path, kind=Kind.DIRECTORY, mode=0o755) if inside else None
        if node is None:
            return Entry(path=path, kind=Kind.DIRECTORY, mode=0o755)
        if isinstance(node, Link):
            return Entry(path=path, kind=Kind.SYMLINK, mode=0o777, target=node.target)
        return Entry(path=path, kind=Kind.FILE, size=len(node), digest=Digest.of(node))

    def children(self, path: str, *, prefix: str = "") -> tuple[str, ...]:
        real = posixpath.dirname(self.resolve(f"{path}/x")) if path else ""
        start = f"{real}/" if real else ""
        below = [other.removeprefix(start) for other in self.files if other.startswith(start)]
        names = {name.split("/", 1)[0] for name in below}
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def below(self, path: str) -> tuple[Entry, ...]:
        return listed_below(self, path)

    def read_many(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        return {path: self.read(path) for path in paths}

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        node = self.files[self.resolve(path)]
        if not isinstance(node, bytes):
            raise KeyError(path)
        return node

    def resolve(self, path: str) -> str:
        for _ in range(40):
            for parent in parents(path):
                node = self.files.get(parent)
                if isinstance(node, Link):
                    to = posixpath.join("/", posixpath.dirname(parent), node.target)
                    path = posixpath.normpath(to).lstrip("/") + path.removeprefix(parent)
                    break
            else:
                return path
        raise IntegrityError(f"{path!r}: a loop")

    def prefetch(self, paths: Iterable[str]) -> None:
        """Nothing to fetch."""
