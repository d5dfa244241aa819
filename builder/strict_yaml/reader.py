"""Bytes to a tree of texts with their places.

Only the events of PyYAML's parser are used, never its constructors: no scalar is typed, no tag is
looked up, nothing is built that the file did not write out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

from builder.errors import ProjectError

SIZE_LIMIT: Final = 4 << 20
"""The most bytes of a document."""
DEPTH_LIMIT: Final = 32
"""How deep collections may stand in one another."""
NODE_LIMIT: Final = 200_000
"""The most scalars and collections of a document."""
SCALAR_LIMIT: Final = 1 << 20
"""The most characters of one scalar."""

_WRITE_OUT = "write the values out where they are needed"
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# What may not stand: all but YAML 1.2.2, section 5.1, c-printable; the byte order mark; and U+0085,
# U+2028, U+2029, which break lines in YAML 1.1 and do not in YAML 1.2 (section 5.4).
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# Compiled where a document asks for them: few do.
_COMMENT = "(?:^|(?<=[ \t]))#"  # YAML 1.2.2, section 6.6
_SURROGATE = "[\ud800-\udfff]"
# The parser of libyaml is some ten times faster; the other one gives the same events.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class ScalarNode(NamedTuple):
    """A text and how it stood. ``plain`` means without quotes and not as a block."""

    text: str
    plain: bool
    line: int
    column: int

    @property
    def is_null(self) -> bool:
        """Whether any YAML reader would take it for null."""
        return self.plain and self.text in _NULLS


class SequenceNode(NamedTuple):
    """A list."""

    items: "tuple[YamlNode, ...]"
    line: int
    column: int


class MappingNode(NamedTuple):
    """Keys in the order in which they stand; each with its own place."""

    entries: "Mapping[str, tuple[ScalarNode, YamlNode]]"
    line: int
    column: int


YamlNode: TypeAlias = ScalarNode | SequenceNode | MappingNode


def read(data: bytes, *, file: str) -> YamlNode:
    """The one document in ``data``. ``file`` names it in messages.

    Raises:
        ProjectError: Not UTF-8, not YAML, empty, over a limit, or any of the features above; the
            message starts with ``file:line:column``.
    """
    text = _decode(data, file=file)
    builder = _Builder(file, text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = file if mark is None else f"{file}:{mark.line + 1}:{mark.column + 1}"
        context = f"{error.context}: " if error.context else ""
        raise ProjectError(f"{place}: not YAML: {context}{error.problem}") from error
    except yaml.YAMLError as error:
        raise ProjectError(f"{file}: not YAML: {error}") from error
    return builder.finish()


def _decode(data: bytes, *, file: str) -> str:
    if len(data) > SIZE_LIMIT:
        raise ProjectError(f"{file}: {len(data)} bytes of YAML, the limit is {SIZE_LIMIT}")
    if data.startswith(b"\xef\xbb\xbf"):
        raise ProjectError(
            f"{file}:1:1: a byte order mark", hint="save the file as UTF-8 without one"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line, column = _place(data[: error.start].decode(), error.start)
        raise ProjectError(
            f"{file}:{line}:{column}: byte {data[error.start]:#04x} is not UTF-8",
            hint="save the file as UTF-8",
        ) from error
    if found := _FORBIDDEN.search(text):
        line, column = _place(text, found.start())
        raise ProjectError(
            f"{file}:{line}:{column}: character U+{ord(found[0]):04X} may not stand in YAML",
            hint="write it as an escape in double quotes, where it is meant",
        )
    return text


def _place(text: str, index: int) -> tuple[int, int]:
    before = text[:index]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _Open(NamedTuple):
    """A collection that is not closed yet. ``items`` are a mapping's values, in step with
    ``keys``, but for a key that still waits for its value."""

    is_mapping: bool
    items: list[YamlNode]
    keys: dict[str, ScalarNode]
    line: int
    column: int

    @property
    def expects_key(self) -> bool:
        return self.is_mapping and len(self.items) == len(self.keys)


class _Builder:
    """Takes events, holds the limits, ends up with the tree. No recursion anywhere."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._open: list[_Open] = []
        self._root: YamlNode | None = None
        self._count = 0
        self._documents = 0
        self._spans: list[tuple[int, int]] = []
        self._has_tabs = "\t" in text

    def take(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._start(event, is_mapping=kind is yaml.MappingStartEvent)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._end()
        elif kind is yaml.AliasEvent:
            raise self._error(
                event, f"alias {'*' + event.anchor!r}, and aliases are not read", hint=_WRITE_OUT
            )
        elif kind is yaml.DocumentStartEvent:
            self._document(event)

    def finish(self) -> YamlNode:
        if self._root is None:
            raise ProjectError(f"{self._file}:1:1: an empty document", hint="start with version: 1")
        if self._has_tabs:
            self._refuse_tabs()
        return self._root

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self._error(event, "a second document, and a file holds one")
        if event.version or event.tags:
            raise self._error(event, "a directive, and directives are not read")

    def _scalar(self, event: Any) -> None:
        self._count_value(event)
        text: str = event.value
        plain = not event.style
        if len(text) > SCALAR_LIMIT:
            raise self._error(
                event, f"a text of {len(text)} characters, the limit is {SCALAR_LIMIT}"
            )
        if not plain and not text.isascii() and re.search(_SURROGATE, text):
            raise self._error(event, "half of a surrogate pair, which is no character")
        mark = event.start_mark
        if self._has_tabs and not plain:
            self._spans.append((mark.index, event.end_mark.index))
        node = ScalarNode(text, plain, mark.line + 1, mark.column + 1)
        if self._open and self._open[-1].expects_key:
            self._key(node, event)
        else:
            self._add(node)

    def _key(self, node: ScalarNode, event: Any) -> None:
        if node.is_null:
            raise self._error(event, f"a key that is null: {node.text!r}")
        if node.plain and node.text == "<<":
            raise self._error(event, "a merge key, and merge keys are not read", hint=_WRITE_OUT)
        first = self._open[-1].keys.setdefault(node.text, node)
        if first is not node:
            raise self._error(event, f"duplicate key {node.text!r}, first on line {first.line}")

    def _start(self, event: Any, *, is_mapping: bool) -> None:
        self._count_value(event)
        if self._open and self._open[-1].expects_key:
            raise self._error(event, "a key that is a collection, and keys are texts")
        if len(self._open) >= DEPTH_LIMIT:
            raise self._error(event, f"nested deeper than {DEPTH_LIMIT}")
        mark = event.start_mark
        self._open.append(_Open(is_mapping, [], {}, mark.line + 1, mark.column + 1))

    def _end(self) -> None:
        done = self._open.pop()
        if done.is_mapping:
            values = zip(done.keys.values(), done.items, strict=True)
            self._add(
                MappingNode(dict(zip(done.keys, values, strict=True)), done.line, done.column)
            )
        else:
            self._add(SequenceNode(tuple(done.items), done.line, done.column))

    def _add(self, node: YamlNode) -> None:
        if self._open:
            self._open[-1].items.append(node)
        else:
            self._root = node

    def _count_value(self, event: Any) -> None:
        self._count += 1
        if self._count > NODE_LIMIT:
            raise self._error(event, f"more than {NODE_LIMIT} values")
        if event.anchor is not None:
            raise self._error(
                event, f"anchor {'&' + event.anchor!r}, and anchors are not read", hint=_WRITE_OUT
            )
        if event.tag is not None:
            raise self._error(
                event,
                f"tag {event.tag!r}, and tags are not read",
                hint="quote the value where a text is meant",
            )

    def _refuse_tabs(self) -> None:
        """A tab stands in quotes, a block or a comment: elsewhere, parsers differ about it."""
        for index in _tabs_outside(self._text, self._spans):
            line, column = _place(self._text, index)
            raise ProjectError(
                f"{self._file}:{line}:{column}: a tab between values", hint="use blanks"
            )

    def _error(self, event: Any, message: str, *, hint: str | None = None) -> ProjectError:
        mark = event.start_mark
        return ProjectError(f"{self._file}:{mark.line + 1}:{mark.column + 1}: {message}", hint=hint)


def _tabs_outside(text: str, spans: list[tuple[int, int]]) -> Iterator[int]:
    """Where tabs stand that are in none of ``spans`` (which are in order) and in no comment."""
    start = 0
    for begin, end in [*spans, (len(text), len(text))]:
        for line in re.finditer("[^\n]+", text[start:begin]):
            code = re.split(_COMMENT, line[0], maxsplit=1)[0]
            if "\t" in code:
                yield start + line.start() + code.index("\t")
        start = end
