"""The file index of one layer: canonical bytes that are searched as they are.

One line for each thing that the layer says of a path, in the order of the paths' bytes::

    usr/bin/env file 0755 0:0 48 9f86d0... [security.capability=0100...]
    usr/bin/sh symlink 0777 0:0 dash
    usr/lib dir 0755 0:0
    usr/lib opaque                      the directory hides what lower layers have in it
    usr/lib/old whiteout                lower layers' path is gone

Names are escaped so that a line is printable ASCII, one space ends the path, and lines sort as
the paths do (``LC_ALL=C sort`` keeps the file as it is). A lookup is a bisection over the bytes;
nothing is parsed when an index is opened, so it may be a memory map of any size.

A directory that has no line of its own but something below it is *implied*: it is there, with
mode 0755, and says nothing about what a lower layer has at its path. Whiteouts and markers imply
their parents too, as they do when a layer is unpacked.
"""

import mmap
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self, TypeAlias

from builder.digest import Digest
from builder.lines import OPAQUE, WHITEOUT, Lines, decode, escape, unescape
from builder.tree import Entry, Kind

Raw: TypeAlias = bytes | mmap.mmap


class Node(NamedTuple):
    """All that one layer says of a path. ``entry`` is there for an implied directory too."""

    entry: Entry | None
    implied: bool
    whiteout: bool
    opaque: bool


class FileIndex:
    """The index of one layer over its raw bytes. Two indexes are equal when their bytes are.

    The bytes are taken as given: check them against a digest first.
    """

    __slots__ = ("_digest", "raw")

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self._digest: Digest | None = None

    @classmethod
    def build(
        cls,
        entries: Iterable[Entry],
        whiteouts: Iterable[str] = (),
        opaques: Iterable[str] = (),
    ) -> Self:
        """Make an index. Of several entries for one path the last counts.

        Args:
            entries: What the layer has.
            whiteouts: The paths that it removes from lower layers.
            opaques: The directories whose content in lower layers it hides; ``""`` is the root.

        Raises:
            IntegrityError: Something below a path that is no directory, a directory that is
                replaced by something else within the layer, too large.
        """
        lines = Lines(at="file index")
        for entry in entries:
            lines.add(entry)
        for path in whiteouts:
            lines.whiteout(path)
        for path in opaques:
            lines.opaque(path)
        return cls(lines.raw())

    @property
    def digest(self) -> Digest:
        """The digest of the raw bytes."""
        if self._digest is None:
            self._digest = Digest.of(memoryview(self.raw))
        return self._digest

    def lookup(self, path: str) -> Entry | None:
        """What the layer has at ``path``; an implied directory has mode 0755 and owner 0:0.

        Raises:
            IntegrityError: The line there is not one that we write.
        """
        return self.node(path).entry

    def whiteout(self, path: str) -> bool:
        """Whether the layer removes ``path`` from lower layers."""
        return self.node(path).whiteout

    def opaque(self, path: str) -> bool:
        """Whether the layer hides what lower layers have in the directory ``path``."""
        return self.node(path).opaque

    def node(self, path: str) -> Node:
        """Everything about ``path`` with one search. See :meth:`lookup`."""
        key = escape(path)
        entry: Entry | None = None
        whiteout = opaque = False
        position = self._bisect(key + b" ")
        while (line := self._line(position)).startswith(key + b" "):
            position += len(line) + 1
            word = line[len(key) + 1 :]
            if word == WHITEOUT:
                whiteout = True
            elif word == OPAQUE:
                opaque = True
            else:
                entry = decode(path, line)
        if entry is None and path and (opaque or self._has_below(key, position)):
            entry = Entry(path=path, kind=Kind.DIRECTORY, mode=0o755)
            return Node(entry, True, whiteout, opaque)
        return Node(entry, False, whiteout, opaque)

    def children(self, path: str) -> tuple[str, ...]:
        """The sorted names of what the layer has in the directory ``path``, implied ones too."""
        return tuple(sorted({name for name, word in self._names(path) if word != WHITEOUT}))

    def whiteouts(self, path: str) -> tuple[str, ...]:
        """The sorted names that the layer removes from the directory ``path``."""
        return tuple(sorted(name for name, word in self._names(path) if word == WHITEOUT))

    def entries(self) -> Iterator[Entry]:
        """All entries in the order of the lines, without whiteouts, markers, implied ones."""
        position = 0
        while line := self._line(position):
            position += len(line) + 1
            key, _, word = line.partition(b" ")
            if word not in (WHITEOUT, OPAQUE):
                yield decode(unescape(key), line)

    def below(self, path: str) -> Iterator[tuple[str, bytes]]:
        """Path and line, without its end, of all that the layer says of what is below a
        directory."""
        prefix = escape(path) + b"/" if path else b""
        start = self._bisect(prefix)
        end = self._bisect(prefix[:-1] + b"0", start) if path else len(self.raw)  # "0" follows "/"
        for line in self.raw[start:end].splitlines():
            yield unescape(line.partition(b" ")[0]), line

    def ending(self, path: str) -> Iterator[str]:
        """The paths of all entries that are ``path`` or end with ``/path``."""
        key = escape(path) + b" "
        position = 0
        while (found := self.raw.find(key, position)) >= 0:
            position = found + len(key)
            start = self.raw.rfind(b"\n", 0, found) + 1
            before = self.raw[start:found]
            word = self._line(start)[found + len(key) - start :]
            whole = not before or (before.endswith(b"/") and b" " not in before)
            if whole and word not in (WHITEOUT, OPAQUE):
                yield unescape(before + key[:-1])

    def _names(self, path: str) -> Iterator[tuple[str, bytes]]:
        """(name, rest of the line) of each line directly in ``path``, and (name, ``b""``) once
        for each name that has something below it. Subtrees are jumped over, not read."""
        prefix = escape(path) + b"/" if path else b""
        position = self._bisect(prefix)
        while (line := self._line(position)).startswith(prefix) and line:
            key, _, word = line[len(prefix) :].partition(b" ")
            name, slash, _ = key.partition(b"/")
            if slash:
                yield unescape(name), b""
                position = self._bisect(prefix + name + b"0", position)  # "0" follows "/"
            else:
                position += len(line) + 1
                if name:
                    yield unescape(name), word

    def _has_below(self, key: bytes, position: int) -> bool:
        return self._line(self._bisect(key + b"/", position)).startswith(key + b"/")

    def _bisect(self, key: bytes, low: int = 0) -> int:
        """The offset of the first line, from the line at ``low`` on, that is not below ``key``."""
        raw = self.raw
        length = len(key)
        high = len(raw)
        while low < high:
            start = raw.rfind(b"\n", low, (low + high) // 2) + 1 or low
            if raw[start : start + length] < key:
                low = raw.find(b"\n", start) + 1 or high
            else:
                high = start
        return low

    def _line(self, position: int) -> bytes:
        """The line at an offset, without its end; empty at the end of the index."""
        end = self.raw.find(b"\n", position)
        return self.raw[position:end] if end >= 0 else b""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileIndex) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)
