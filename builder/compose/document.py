"""The bytes of a compose file to trees of nodes with their places.

Only the events of PyYAML's parser are used. Tags are kept and mean nothing, no scalar is typed, an
alias is the very node that its anchor names, and a merge key is a key. What Docker Compose refuses
is refused: duplicate keys, unknown anchors, anything but UTF-8.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import yaml

from builder.errors import ProjectError
from builder.strict_yaml import SIZE_LIMIT

DEPTH_LIMIT: Final = 64
"""How deep collections may stand in one another."""
NODE_LIMIT: Final = 200_000
"""The most scalars, collections and aliases of a file."""
_BOM: Final = b"\xef\xbb\xbf"
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# What may stand between a value's first mark and the value: its anchor and its tag.
_PROPERTIES = re.compile(r"(?:(?:[&!]\S*|#[^\n]*)(?:\s+|$)|\s+)*")


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A scalar. ``style`` is its first character, or nothing for a plain one; ``start`` and ``end``
    are where it stands in the text, quotes included, anchor and tag not; ``event`` counts the
    events of the file."""

    value: str
    style: str
    tag: str | None
    start: int
    end: int
    line: int
    event: int
    anchored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """A list."""

    items: "tuple[Node, ...]"
    line: int
    tag: str | None = None
    anchored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A key with its value. ``end`` is where the value, or the alias in its place, ends."""

    key: Scalar
    value: "Node"
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    """Entries in their order; keys that are no scalars are left out."""

    entries: tuple[Entry, ...]
    line: int
    tag: str | None = None
    anchored: bool = False

    def own(self, key: str) -> Entry | None:
        """The entry of this key that stands here."""
        return next((entry for entry in self.entries if entry.key.value == key), None)

    def get(self, key: str) -> Entry | None:
        """The entry of this key, here or where a merge key leads. What stands here goes first,
        then the first of a list of merges."""
        return next((entry for entry in self.merged() if entry.key.value == key), None)

    def merged(self) -> Iterator[Entry]:
        """All entries, those that stand here before those of merge keys. A mapping that is merged
        in twice is looked at once: the first time decides."""
        waiting, seen = [self], set()
        while waiting:
            mapping = waiting.pop()
            if id(mapping) in seen:
                continue
            seen.add(id(mapping))
            merges: list[Node] = []
            for entry in mapping.entries:
                if not _is_merge(entry):
                    yield entry
                elif isinstance(entry.value, Sequence):
                    merges += entry.value.items
                else:
                    merges.append(entry.value)
            waiting += (node for node in reversed(merges) if isinstance(node, Mapping))


def _is_merge(entry: Entry) -> bool:
    return entry.key.value == "<<" and not entry.key.style


Node: TypeAlias = Scalar | Sequence | Mapping
Signature: TypeAlias = tuple[tuple[Any, ...], ...]
"""Each event of a file without its place: two files of one signature say the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A compose file: its bytes, its text (without a byte order mark), a tree for each of its YAML
    documents."""

    file: str
    data: bytes
    text: str
    roots: tuple[Node, ...]
    signature: Signature

    @property
    def mark(self) -> bytes:
        """The byte order mark that the file begins with, or nothing: not part of the text."""
        return _BOM if self.data.startswith(_BOM) else b""


def read(data: bytes, *, file: str) -> Document:
    """Read a compose file. ``file`` names it in messages.

    Raises:
        ProjectError: Not UTF-8, not YAML, over a limit, or with a duplicate key.
    """
    if len(data) > SIZE_LIMIT:
        raise ProjectError(f"{file}: {len(data)} bytes of YAML, the limit is {SIZE_LIMIT}")
    try:
        text = data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise ProjectError(
            f"{file}: byte {data[error.start]:#04x} at {error.start} is not UTF-8",
            hint="save the file as UTF-8",
        ) from error
    builder = _Builder(file, text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = file if mark is None else f"{file}:{mark.line + 1}:{mark.column + 1}"
        raise ProjectError(f"{place}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ProjectError(f"{file}: not YAML: {error}") from error
    return Document(file, data, text, tuple(builder.roots), tuple(builder.signature))


@dataclass(slots=True)
class _Open:
    """A collection that is not closed yet."""

    anchor: str | None
    is_mapping: bool
    line: int
    tag: str | None
    items: "list[tuple[Node, int]]" = field(default_factory=list)
    keys: dict[str, Scalar] = field(default_factory=dict)

    @property
    def expects_key(self) -> bool:
        return self.is_mapping and len(self.items) % 2 == 0


class _Builder:
    """Takes events, holds the limits, ends up with the trees. No recursion anywhere."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self.roots: list[Node] = []
        self.signature: list[tuple[Any, ...]] = []

    def take(self, event: Any) -> None:
        if len(self.signature) >= 2 * NODE_LIMIT:
            raise ProjectError(f"{self._file}: more than {NODE_LIMIT} values")
        self.signature.append(
            (
                type(event).__name__,
                getattr(event, "anchor", None),
                getattr(event, "tag", None),
                getattr(event, "value", None),
            )
        )
        kind = type(event)
        if kind is yaml.DocumentStartEvent:
            self._anchors = {}  # they end with their document
        elif kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.AliasEvent:
            if event.anchor not in self._anchors:
                raise self._error(event, f"alias {'*' + event.anchor!r} of no anchor above it")
            self._add(self._anchors[event.anchor], event.end_mark.index)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if len(self._open) >= DEPTH_LIMIT:
                raise self._error(event, f"nested deeper than {DEPTH_LIMIT}")
            line = event.start_mark.line + 1
            is_mapping = kind is yaml.MappingStartEvent
            self._open.append(_Open(event.anchor, is_mapping, line, event.tag))
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._end(event)

    def _scalar(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        if event.anchor is not None or event.tag is not None:
            found = _PROPERTIES.match(self._text, start, end)
            start = end if found is None else found.end()
        node = Scalar(
            value=event.value,
            style=event.style or "",
            tag=event.tag,
            start=start,
            end=end,
            line=event.start_mark.line + 1 + self._text.count("\n", event.start_mark.index, start),
            event=len(self.signature) - 1,
            anchored=event.anchor is not None,
        )
        if self._open and self._open[-1].expects_key:
            first = self._open[-1].keys.setdefault(node.value, node)
            if first is not node:
                raise self._error(
                    event,
                    f"duplicate key {node.value!r}, first on line {first.line}",
                    hint="Docker Compose refuses the file, too: remove one of them",
                )
        self._keep(event.anchor, node, end)

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        nodes = done.items
        if done.is_mapping:
            pairs = zip(nodes[::2], nodes[1::2], strict=True)
            entries = (
                Entry(key, value, end)
                for (key, _), (value, end) in pairs
                if isinstance(key, Scalar)
            )
            node: Node = Mapping(tuple(entries), done.line, done.tag, done.anchor is not None)
        else:
            items = tuple(item for item, _ in nodes)
            node = Sequence(items, done.line, done.tag, done.anchor is not None)
        self._keep(done.anchor, node, event.end_mark.index)

    def _keep(self, anchor: str | None, node: Node, end: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        self._add(node, end)

    def _add(self, node: Node, end: int) -> None:
        if self._open:
            self._open[-1].items.append((node, end))
        else:
            self.roots.append(node)

    def _error(self, event: Any, message: str, *, hint: str | None = None) -> ProjectError:
        mark = event.start_mark
        return ProjectError(f"{self._file}:{mark.line + 1}:{mark.column + 1}: {message}", hint=hint)
