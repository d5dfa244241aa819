"""A cursor over a document that knows where it is, and refuses what nobody read.

Every refusal names file, line and path:
``lockfiles/vllm.yaml:12: vllm.demo.index: sha256 takes 64 hex digits, got 4: 'beef'``.
A *reader* is any function from a :class:`Cursor` to a value; ``builder.node.readers`` has those
for texts, numbers, digests and paths.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from builder.errors import ProjectError
from builder.strict_yaml import MappingNode, ScalarNode, SequenceNode, YamlNode, read

T = TypeVar("T")

_PLAIN_KEY = re.compile(r"[\w./+@-]+")
_SHOWN = 60
"""How many characters of a value a message quotes."""


class Cursor:
    """One value of a document, with its file, line and path."""

    __slots__ = ("_asked", "file", "line", "node", "path")

    def __init__(self, node: YamlNode, *, file: str, line: int, path: str = "") -> None:
        self.node = node
        self.file = file
        self.line = line
        self.path = path
        self._asked: dict[str, None] = {}

    @classmethod
    def open(cls, data: bytes, *, file: str) -> "Cursor":
        """The root of the document in ``data``.

        Raises:
            ProjectError: The document is not strict YAML.
        """
        node = read(data, file=file)
        return cls(node, file=file, line=node.line)

    @property
    def at(self) -> str:
        """``file:line: path``."""
        return self._place(self.line)

    def error(self, message: str, *, hint: str | None = None) -> ProjectError:
        """An error about this value, to be raised."""
        return ProjectError(f"{self.at}: {message}", hint=hint)

    def scalar(self, wanted: str) -> ScalarNode:
        """This value, which must be a scalar. ``wanted`` says what of."""
        if not isinstance(self.node, ScalarNode):
            raise self.error(f"expected {wanted}, got {describe(self.node)}")
        return self.node

    def take(self, key: str, reader: Callable[["Cursor"], T]) -> T:
        """The value of a key that must be there."""
        child = self._child(key)
        if child is None:
            near = nearest(key, self._unread())
            raise self.error(
                f"missing key {key!r}",
                hint=f"{near!r} is no key here; is it meant?" if near else None,
            )
        return reader(child)

    def optional(self, key: str, reader: Callable[["Cursor"], T]) -> T | None:
        """The value of a key that may be absent."""
        child = self._child(key)
        return None if child is None else reader(child)

    def default(self, key: str, reader: Callable[["Cursor"], T], value: T) -> T:
        """The value of a key, or ``value`` where it is absent."""
        child = self._child(key)
        return value if child is None else reader(child)

    def choice(self, *keys: str) -> str:
        """Which one of ``keys`` is there. The others are no keys of this mapping then."""
        entries = self._mapping().entries
        found = [key for key in keys if key in entries]
        self._asked |= dict.fromkeys(found)
        if len(found) != 1:
            guesses = (nearest(key, keys) for key in self._unread())
            raise self.error(
                f"expected one of the keys {_listed(keys)}, got {_listed(found) or 'none of them'}",
                hint=did_you_mean(next(filter(None, guesses), None)) if not found else None,
            )
        return found[0]

    def done(self) -> None:
        """Refuse the keys that nobody asked for."""
        for key in self._unread():
            line = self._mapping().entries[key][0].line
            near = did_you_mean(nearest(key, self._asked))
            raise ProjectError(
                f"{self._place(line)}: unknown key {key!r}",
                hint=near or f"the keys here are {_listed(self._asked)}",
            )

    def entries(self) -> Iterator[tuple[str, "Cursor"]]:
        """The keys and values of a mapping with free keys. A key's cursor has the key's line."""
        for key in self._mapping().entries:
            child = self._child(key)
            if child is not None:
                yield key, child

    def elements(self) -> tuple["Cursor", ...]:
        """The values of a list."""
        if not isinstance(self.node, SequenceNode):
            raise self.error(f"expected a list, got {describe(self.node)}")
        return tuple(
            Cursor(item, file=self.file, line=item.line, path=f"{self.path}[{number}]")
            for number, item in enumerate(self.node.items)
        )

    def key(self, name: str) -> "Cursor":
        """The key ``name`` itself, as a text."""
        scalar = self._mapping().entries[name][0]
        return Cursor(scalar, file=self.file, line=scalar.line, path=self._path(name))

    def _child(self, key: str) -> "Cursor | None":
        self._asked[key] = None
        entry = self._mapping().entries.get(key)
        if entry is None:
            return None
        name, node = entry
        # The value's own line for a scalar; a collection starts below its key.
        line = node.line if isinstance(node, ScalarNode) else name.line
        return Cursor(node, file=self.file, line=line, path=self._path(key))

    def _mapping(self) -> MappingNode:
        if not isinstance(self.node, MappingNode):
            raise self.error(f"expected a mapping, got {describe(self.node)}")
        return self.node

    def _unread(self) -> list[str]:
        return [key for key in self._mapping().entries if key not in self._asked]

    def _path(self, key: str) -> str:
        if not _PLAIN_KEY.fullmatch(key):
            return f"{self.path}[{shortened(key)!r}]"
        return f"{self.path}.{key}" if self.path else key

    def _place(self, line: int) -> str:
        place = f"{self.file}:{line}"
        return f"{place}: {self.path}" if self.path else place


def shortened(text: str) -> str:
    """``text``, cut where it is too long for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def describe(node: YamlNode) -> str:
    """What a value is, for a message."""
    if isinstance(node, ScalarNode):
        return "nothing" if node.is_null else f"the text {shortened(node.text)!r}"
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that ``word`` is most likely a slip of."""
    import difflib  # noqa: PLC0415 - only errors need it, and it takes time

    return next(iter(difflib.get_close_matches(word[:_SHOWN], list(known), n=1)), None)


def did_you_mean(word: str | None) -> str | None:
    """The hint for a slip."""
    return None if word is None else f"did you mean {word!r}?"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(repr(word) for word in words)
