"""Fakes of the ports and protocols: small implementations that can refuse, never mocks."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.tree import Entry, Kind, View, parents
from builder.upstream import Commit, Distance, PullFacts


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


@dataclass(slots=True)
class FakeHistory:
    """A ``builder.upstream.History`` over commits of one repository, whatever it is called.

    ``tips`` has refs by full name (``HEAD`` with what it names), ``branch`` is the default one.
    """

    commits: Mapping[str, Commit]
    tips: Mapping[str, str] = field(default_factory=dict)
    branch: str = "refs/heads/main"

    def refs(self, repository: str) -> Mapping[str, str]:
        return dict(sorted(self.tips.items()))

    def default_branch(self, repository: str) -> str:
        if self.branch not in self.tips:
            raise GoneError(f"{repository}: HEAD names no branch that is there")
        return self.branch

    def reachable(self, repository: str, commit: str) -> tuple[str, ...]:
        self.commit(repository, commit)
        refs = self.refs(repository).items()
        return tuple(name for name, tip in refs if name != "HEAD" and commit in self._past(tip))

    def commit(self, repository: str, commit: str) -> Commit:
        if commit not in self.commits:
            raise GoneError(f"{repository}: {commit}: the remote answers and does not have it")
        return self.commits[commit]

    def at_hand(self, repository: str, commits: Iterable[str]) -> Mapping[str, Commit]:
        return {each: self.commits[each] for each in commits if each in self.commits}

    def merge_base(self, repository: str, one: str, other: str) -> str | None:
        common = self._past(one) & self._past(other)
        behind = {each for commit in common for each in self._past(commit) - {commit}}
        best = sorted(common - behind, key=lambda each: (-self.commits[each].time, each))
        return best[0] if best else None

    def distance(self, repository: str, old: str, new: str) -> Distance:
        before, after = self._past(old), self._past(new)
        return Distance(ahead=self._newest(after - before), behind=self._newest(before - after))

    def is_ancestor(self, repository: str, ancestor: str, commit: str) -> bool:
        self.commit(repository, ancestor)
        return ancestor in self._past(commit)

    def _past(self, commit: str) -> set[str]:
        found: set[str] = set()
        todo = [self.commit("fake", commit).id]
        while todo:
            each = todo.pop()
            if each not in found:
                found.add(each)
                todo.extend(self.commits[each].parents)
        return found

    def _newest(self, ids: set[str]) -> tuple[Commit, ...]:
        found = (self.commits[each] for each in ids)
        return tuple(sorted(found, key=lambda each: (-each.time, each.id)))


@dataclass(slots=True)
class FakeForge:
    """A ``builder.upstream.Forge`` that knows these pull requests; ``None`` knows no host."""

    pulls: Mapping[int, PullFacts] | None = None

    def pull(self, repository: str, number: int) -> PullFacts | None:
        if self.pulls is None:
            return None
        if number not in self.pulls:
            raise GoneError(f"{repository}: pull request {number}: 404 Not Found")
        return self.pulls[number]
