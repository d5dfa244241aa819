"""Fakes of the ports and protocols: small implementations that can refuse, never mocks."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.tree import Entry, Kind, View, parents


@dataclass(frozen=True, slots=True)
class File:
    """A regular file of a :class:`TreeView` that is more than its bytes."""

    data: bytes
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    xattrs: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link of a :class:`TreeView`."""

    target: str


Node: TypeAlias = bytes | File | Link | Entry


@dataclass(slots=True)
class TreeView:
    """A ``builder.tree.View`` over a dict of path to node.

    Bytes are a regular file 0644 0:0; directories that are only named in passing are 0755 0:0; an
    :class:`Entry` is for what the other nodes cannot say. A hard link is the same node under two
    paths. ``reads`` and ``prefetched`` say what was asked for, in order.
    """

    tree: Mapping[str, Node]
    reads: list[str] = field(default_factory=list)
    prefetched: list[str] = field(default_factory=list)
    _entries: dict[str, Entry] = field(init=False, default_factory=dict)
    _data: dict[str, bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for path, node in self.tree.items():
            for parent in parents(path):
                directory = Entry(path=parent, kind=Kind.DIRECTORY, mode=0o755)
                self._entries.setdefault(parent, directory)
            self._add(path, node)

    def _add(self, path: str, node: Node) -> None:
        match node:
            case Entry():
                self._entries[path] = replace(node, path=path)
            case Link(target):
                link = Entry(path=path, kind=Kind.SYMLINK, mode=0o777, target=target)
                self._entries[path] = link
            case bytes():
                self._add(path, File(node))
            case File(data, mode, uid, gid, xattrs):
                self._data[path] = data
                self._entries[path] = Entry(
                    path=path,
                    kind=Kind.FILE,
                    mode=mode,
                    uid=uid,
                    gid=gid,
                    size=len(data),
                    digest=Digest.of(data),
                    xattrs=tuple(sorted(xattrs)),
                )

    def stat(self, path: str) -> Entry | None:
        entry = self._entries.get(self.resolve(path))
        return entry and replace(entry, path=path)

    def children(self, path: str, *, prefix: str = "") -> tuple[str, ...]:
        real = self._followed(path)
        inside = (name for name in self._entries if posixpath.dirname(name) == real)
        names = (posixpath.basename(name) for name in inside)
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def below(self, path: str) -> tuple[Entry, ...]:
        return listed_below(self, path)

    def read_many(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        return {path: self.read(path) for path in paths}

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return self._data[self.resolve(path)]

    def resolve(self, path: str) -> str:
        directory, name = posixpath.split(path)
        return posixpath.join(self._followed(directory), name)

    def prefetch(self, paths: Iterable[str]) -> None:
        self.prefetched.extend(paths)

    def _followed(self, path: str) -> str:
        """``path`` with every link in it followed, the last component's, too."""
        real: list[str] = []
        ahead = path.split("/")[::-1]
        hops = 0
        while ahead:
            part = ahead.pop()
            if part == ".." and not real:
                raise IntegrityError(f"{path!r}: a link leads out of the image")
            if part == "..":
                real.pop()
            elif part not in ("", "."):
                entry = self._entries.get("/".join((*real, part)))
                if entry is None or entry.kind is not Kind.SYMLINK:
                    real.append(part)
                    continue
                hops += 1
                if hops > 40:
                    raise IntegrityError(f"{path!r}: a loop of links")
                target = entry.target or ""
                if target.startswith("/"):
                    real.clear()
                ahead.extend(target.split("/")[::-1])
        return "/".join(real)


def listed_below(view: View, path: str) -> tuple[Entry, ...]:
    """:meth:`builder.tree.View.below` by its definition, entry by entry."""
    found: list[Entry] = []
    todo = [path]
    while todo:
        directory = todo.pop()
        for name in view.children(directory):
            child = f"{directory}/{name}" if directory else name
            entry = view.stat(child)
            if entry is None or name == "__pycache__":
                continue
            if entry.is_directory:
                todo.append(child)
            else:
                found.append(entry)
    return tuple(sorted(found, key=lambda entry: entry.path))
