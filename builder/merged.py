"""The merged tree of a stack of layers, read from their indexes without unpacking anything.

OCI image-spec, layer.md, "Applying Changesets": a layer's whiteouts and opaque markers act on the
layers below it only, its own entries stand whatever the order in the archive; an entry that is
not a directory hides everything below its path.

A view is its topmost layer over the view of the rest, so that the view of a longer stack costs
one more layer, and shares what the shorter one has found out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.listing import below
from builder.tree import Entry, Kind, parents

LINK_LIMIT = 40
"""The most symbolic links that one path may lead through, as in Linux (MAXSYMLINKS)."""


class LayerFiles(Protocol):
    """One layer as the merged view reads it."""

    @property
    def index(self) -> FileIndex:
        """The layer's file index. Asking may stream the layer; ask again at no cost."""

    def read(self, entry: Entry) -> bytes:
        """The content of a regular file of this layer's index (``entry`` has its own path).

        Raises:
            IntegrityError: The bytes are not those that the index names.
        """

    def read_many(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """As :meth:`read`, of many files, in any order."""

    def prefetch(self, paths: Iterable[str]) -> None:
        """Hear which paths may be read, so that the next time that the layer has to be streamed
        their contents are kept. Streams nothing itself; the layer need not have the paths."""


class _Found(NamedTuple):
    entry: Entry
    view: "MergedView"  # whose topmost layer has it


class _Directory(NamedTuple):
    """What one layer does to a directory: has something there; hides what lower layers have."""

    here: bool
    hides: bool


class _Place(NamedTuple):
    """Where a path leads: with ``blocker`` the entry on the way that is no directory."""

    real: str
    exists: bool
    blocker: Entry | None = None


_EMPTY = FileIndex(b"")


class MergedView:
    """The tree that ``layers``, bottom first as in a manifest, make together.

    Implements :class:`builder.tree.View`. A lower layer's index is asked for only where the layers
    above it leave the question open. Answers are kept: the layers must not change.

    Links resolve as in a process whose root is the image: absolute targets start at the root, and
    ``..`` at the root stays there, so that no link leads out.

    Args:
        layers: The layers, bottom first; none for an empty tree.
        below: A view that the layers lie on.
    """

    def __init__(
        self, layers: Sequence[LayerFiles] = (), *, below: "MergedView | None" = None
    ) -> None:
        for layer in layers[:-1]:
            below = MergedView((layer,), below=below)
        self._layer = layers[-1] if layers else None
        self._below = below
        self._directories: dict[str, _Directory] = {}
        self._found: dict[str, _Found | None] = {}
        self._places: dict[str, _Place] = {}

    def over(self, layer: LayerFiles) -> "MergedView":
        """The view with one more layer on top. This one stays as it is."""
        return MergedView((layer,), below=self)

    def stat(self, path: str) -> Entry | None:
        """The entry at ``path``, or ``None``. Parents that are links are followed, the last
        component is not. A hard link is returned as the file that it names, under ``path``.

        Raises:
            IntegrityError: A loop of links, a hard link to nothing, or a layer that writes through
                a link of a lower one.
        """
        found = self._at(path)
        if found is None or found.entry.path == path:
            return None if found is None else found.entry
        return replace(found.entry, path=path)

    def children(self, path: str, *, prefix: str = "") -> tuple[str, ...]:
        """The sorted names with ``prefix`` in the directory at ``path`` (``""`` is the root), or
        in the one that a link there leads to; empty where there is no directory. Raises as
        :meth:`stat`."""
        place = self._walk(path)
        names: set[str] = set()
        gone: set[str] = set()
        view: MergedView | None = self if place.exists else None
        while view is not None:
            state = view._state(place.real)
            if state.here:
                names.update(set(view._index.children(place.real)) - gone)
                gone.update(view._index.whiteouts(place.real))
            view = None if state.hides else view._below
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    def below(self, path: str) -> tuple[Entry, ...]:
        """Everything below the directory at ``path`` that is no directory itself, sorted by path.
        Compiled files (``__pycache__``) are left out. Raises as :meth:`stat`."""
        place = self._walk(path)
        views: list[MergedView] = []
        view: MergedView | None = self if place.exists else None
        while view is not None:
            state = view._state(place.real)
            if state.here:
                views.append(view)
            view = None if state.hides else view._below
        entries: list[Entry] = []
        for real, item in sorted(below(place.real, (view._index for view in views)).items()):
            self._found[real] = _Found(item.entry, views[item.number])
            directory = real.rpartition("/")[0]
            self._places[directory] = _Place(directory, exists=True)
            entry = item.entry
            if entry.kind is Kind.HARDLINK:
                found = self._content(real)
                entry = entry if found is None else replace(found.entry, path=real)
            if place.real != path:
                entry = replace(entry, path=_join(path, real.removeprefix(place.real).lstrip("/")))
            entries.append(entry)
        return tuple(entries)

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """As :meth:`read`, of many files at once."""
        asked: dict[int, tuple[LayerFiles, dict[str, tuple[Entry, list[str]]]]] = {}
        for path in paths:
            found = self._at(path)
            layer = None if found is None else found.view._layer
            if found is None or layer is None or found.entry.digest is None:
                raise KeyError(path)
            _, entries = asked.setdefault(id(layer), (layer, {}))
            entries.setdefault(found.entry.path, (found.entry, []))[1].append(path)
        contents: dict[str, bytes] = {}
        for layer, entries in asked.values():
            for entry, data in layer.read_many(entry for entry, _ in entries.values()):
                contents.update(dict.fromkeys(entries[entry.path][1], data))
        return contents

    def read(self, path: str) -> bytes:
        """The verified content of the regular file at ``path``.

        Raises:
            KeyError: There is no regular file: a bug of the caller, who should have asked.
            IntegrityError: The bytes are not those of the index.
        """
        found = self._at(path)
        layer = None if found is None else found.view._layer
        if found is None or layer is None or found.entry.digest is None:
            raise KeyError(path)
        return found.entry.digest.check(layer.read(found.entry), at=path)

    def resolve(self, path: str) -> str:
        """``path`` with every parent that is a link replaced by what it leads to. Parents that do
        not exist yet are kept as they are written, and so is the last component.

        Raises:
            IntegrityError: A loop of links, or a parent that is there and is no directory.
        """
        directory, slash, name = path.rpartition("/")
        if not slash:
            return path
        place = self._walk(directory)
        if place.blocker is not None:
            raise IntegrityError(
                f"{path!r}: its parent {place.blocker.path!r} is a {place.blocker.kind},"
                " wanted a directory"
            )
        return _join(place.real, name)

    def prefetch(self, paths: Iterable[str]) -> None:
        """Say which files will be read, so that each layer is streamed at most once."""
        wanted = tuple(paths)
        view: MergedView | None = self
        while view is not None:
            if view._layer is not None:
                view._layer.prefetch(wanted)
            view = view._below

    @property
    def _index(self) -> FileIndex:
        return _EMPTY if self._layer is None else self._layer.index

    def _at(self, path: str) -> _Found | None:
        directory, _, name = path.rpartition("/")
        place = self._walk(directory)
        return self._content(_join(place.real, name)) if place.exists and name else None

    def _walk(self, path: str) -> _Place:
        """Follow ``path`` to a directory, through all links."""
        if (known := self._places.get(path)) is not None:
            return known
        todo = path.split("/")[::-1]
        place = _Place("", exists=True)
        links = 0
        while todo and place.blocker is None:
            name = todo.pop()
            if name in ("", "."):
                continue
            if name == "..":
                place = place._replace(real=place.real.rpartition("/")[0])
                continue
            here = _join(place.real, name)
            found = self._content(here) if place.exists else None
            if found is not None and found.entry.target is not None:
                links += 1
                if links > LINK_LIMIT:
                    raise IntegrityError(f"{path!r}: more than {LINK_LIMIT} links, or a loop")
                todo += found.entry.target.split("/")[::-1]
                if found.entry.target.startswith("/"):
                    place = _Place("", exists=True)
            elif found is None or found.entry.is_directory:
                place = _Place(here, exists=found is not None)
            else:
                place = _Place(here, exists=False, blocker=replace(found.entry, path=here))
        self._places[path] = place
        return place

    def _content(self, path: str) -> _Found | None:
        """What is at ``path``, whose parents are no links; for a hard link, what it names.

        That is the file as the layer with the link saw it: what upper layers put in the target's
        place is another file. The target's parents are no links either: it names a member.
        """
        found = self._find(path)
        for _ in range(LINK_LIMIT):
            if found is None or found.entry.kind is not Kind.HARDLINK:
                return found
            link, target = found.entry.path, found.entry.target or ""
            found = found.view._find(target)
            if found is None or found.entry.is_directory:
                raise IntegrityError(f"{link!r}: a hard link to {target!r}, which is no file")
        raise IntegrityError(f"{path!r}: more than {LINK_LIMIT} hard links in a row, or a loop")

    def _find(self, path: str) -> _Found | None:
        """The uppermost entry at ``path`` that no layer above it hides."""
        if path not in self._found:
            self._found[path] = self._search(path)
        return self._found[path]

    def _search(self, path: str) -> _Found | None:
        directory = path.rpartition("/")[0]
        implied: _Found | None = None
        view: MergedView | None = self
        while view is not None:
            hides = view._state(directory).hides
            if view._state(directory).here:
                node = view._index.node(path)
                if node.entry is not None and not node.implied:
                    if implied is not None and not node.entry.is_directory:
                        raise IntegrityError(
                            f"{path!r}: a layer has files below it, and a lower layer has"
                            f" a {node.entry.kind} there, wanted a directory"
                        )
                    return _Found(node.entry, view)
                if node.entry is not None and implied is None:
                    implied = _Found(node.entry, view)
                hides = hides or node.whiteout
            view = None if hides else view._below
        return implied

    def _state(self, directory: str) -> _Directory:
        """What the topmost layer alone does to a directory."""
        if (known := self._directories.get(directory)) is not None:
            return known
        state = _Directory(here=True, hides=self._index.node("").opaque)
        for part in (*parents(directory), directory) if directory else ():
            if not state.here:
                break
            node = self._index.node(part)
            here = node.entry is not None and node.entry.is_directory
            other = node.entry is not None and not node.entry.is_directory
            state = _Directory(here, state.hides or node.whiteout or node.opaque or other)
        self._directories[directory] = state
        return state


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name
