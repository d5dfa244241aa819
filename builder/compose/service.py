"""The trees of a compose file to its services: where each one's image stands, and what it names.

A service names what it runs with the label ``builder.variant``, with a comment ``# builder: NAME``
on the line of its image or the line above it, or through the ``composes`` of builder.yaml.
"""

import re
from collections.abc import Callable, Iterator
from collections.abc import Mapping as NameMapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from builder.compose.document import Document, Entry, Mapping, Node, Scalar, Sequence
from builder.errors import ProjectError
from builder.node import did_you_mean, nearest

Found = TypeVar("Found")

LABEL = "builder.variant"
NAMING = f"a label {LABEL}, a comment # builder: NAME at the image, or composes in builder.yaml"
"""How a service can name what it runs."""

_NO_SERVICES = "is it a compose file? those that it includes are given one by one"
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_COMMENT = r"#[ \t]*builder:[ \t]*([^\r\n]*?)[ \t]*\r?$"
_ABOVE = re.compile(rf"[ \t]*{_COMMENT}")
_BESIDE = re.compile(rf"[ \t,\]}}]*[ \t]{_COMMENT}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Service:
    """A service of a compose file, over all its YAML documents.

    ``images`` are the scalars that its image may come from: one, unless several documents each have
    one. They are shared with other services where it comes through an alias, a merge key or
    ``extends``. ``elsewhere`` says what it extends in another file.
    """

    name: str
    line: int
    images: tuple[Scalar, ...]
    runs: str | None
    """The variant or pinned base that it names."""
    built: bool
    platform: str | None
    elsewhere: str | None
    odd: bool
    """Whether what stands for its image is no text."""

    @property
    def shown_line(self) -> int:
        """The line for messages: that of its image, or its own."""
        return self.images[-1].line if self.images else self.line


def has_services(document: Document) -> bool:
    """Whether a YAML file is a compose file with something to run: not a fragment, nor what else
    stands beside compose files."""
    return any(isinstance(value_of(root, "services"), Mapping) for root in document.roots)


def services(document: Document, mapped: NameMapping[str, str]) -> tuple[Service, ...]:
    """The services of a file, in their order.

    Args:
        document: The file.
        mapped: What builder.yaml says that services of this file run.

    Raises:
        ProjectError: There are none, what a service runs is said in two ways, or builder.yaml names
            a service that is not there.
    """
    parts, lines = parts_of(document)
    if not lines:
        raise ProjectError(f"{document.file}: no services", hint=_NO_SERVICES)
    for name in mapped:
        if name not in lines:
            raise ProjectError(
                f"{document.file}: no service {name!r}, which builder.yaml names under composes",
                hint=did_you_mean(nearest(name, lines)),
            )
    reader = _Reader(document, parts, mapped)
    return tuple(reader.service(name, line) for name, line in lines.items())


Parts: TypeAlias = tuple[dict[str, list[Mapping]], dict[str, int]]


def parts_of(document: Document) -> Parts:
    """The mappings of each service in the file's documents, and where it is first named."""
    parts: dict[str, list[Mapping]] = {}
    lines: dict[str, int] = {}
    for root in document.roots:
        for entry in entries_of(value_of(root, "services")):
            lines.setdefault(entry.key.value, entry.key.line)
            found = parts.setdefault(entry.key.value, [])
            if isinstance(entry.value, Mapping):
                found.append(entry.value)
    return parts, lines


def inheritance(parts: NameMapping[str, list[Mapping]], name: str) -> Iterator[list[Mapping]]:
    """What stands of a service, then of the service of this file that it extends, and so on."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        own = parts.get(name, [])
        yield own
        bases = [base for part in own for base, file in extended(part) if not file]
        name = bases[0] if bases else name


class _Reader:
    """Reads services one by one; ``parts`` are the mappings of each in the file's documents."""

    def __init__(
        self,
        document: Document,
        parts: NameMapping[str, list[Mapping]],
        mapped: NameMapping[str, str],
    ) -> None:
        self._document = document
        self._parts = parts
        self._mapped = mapped

    def service(self, name: str, line: int) -> Service:
        entries = self._inherited(name, lambda part: given(part, "image"))
        values = [entry.value for entry in entries]
        platforms = [entry.value for entry in self._inherited(name, _platforms)]
        return Service(
            name=name,
            line=line,
            images=tuple({id(node): node for node in values if isinstance(node, Scalar)}.values()),
            runs=self._said(name, line, entries),
            built=bool(self._inherited(name, lambda part: given(part, "build"))),
            platform=next((node.value for node in platforms if isinstance(node, Scalar)), None),
            elsewhere=self._elsewhere(name),
            odd=any(not isinstance(node, Scalar) for node in values),
        )

    def _inherited(self, name: str, read: Callable[[Mapping], list[Found]]) -> list[Found]:
        """What a service has of something, or else what it inherits within the file."""
        levels = (
            [item for part in parts for item in read(part)]
            for parts in inheritance(self._parts, name)
        )
        return next((found for found in levels if found), [])

    def _elsewhere(self, name: str) -> str | None:
        bases = (
            base
            for parts in inheritance(self._parts, name)
            for part in parts
            for base in extended(part)
        )
        return next((f"{base!r} of {file!r}" for base, file in bases if file), None)

    def _said(self, name: str, line: int, images: list[Entry]) -> str | None:
        """What the service runs, by whatever says it; all that say it must agree."""
        at = f"{self._document.file}:{line}: service {name!r}"
        said: dict[str, str] = {}
        if name in self._mapped:
            said["builder.yaml"] = self._mapped[name]
        for value, place in self._inherited(name, _labels):
            said[f"the label on line {place}"] = value
        for entry in images:
            said |= {f"the comment at line {entry.key.line}": it for it in self._comments(entry)}
        for way, value in said.items():
            if len(value.split()) != 1 or "$" in value:
                raise ProjectError(
                    f"{at}: {way} names {value!r}, wanted the name of a variant or a pinned base",
                    hint="names stand in variants/ and in lockfiles/vllm.yaml",
                )
        if len(set(said.values())) > 1:
            ways = ", ".join(f"{value!r} by {way}" for way, value in said.items())
            raise ProjectError(f"{at}: what it runs is said in two ways: {ways}", hint="keep one")
        return next(iter(said.values()), None)

    def _comments(self, entry: Entry) -> Iterator[str]:
        text = self._document.text
        start = text.rfind("\n", 0, entry.key.start) + 1
        above = text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : max(start - 1, 0)]
        if found := _ABOVE.fullmatch(above):
            yield found[1]
        after = entry.end
        if isinstance(entry.value, Scalar) and entry.value.style in {"|", ">"}:
            after = block_header(text, entry.value)
        end = text.find("\n", after)
        if found := _BESIDE.fullmatch(text[after : len(text) if end < 0 else end]):
            yield found[1]


def value_of(node: Node, key: str) -> Node | None:
    """What a mapping has for a key."""
    entry = node.get(key) if isinstance(node, Mapping) else None
    return None if entry is None else entry.value


def given(part: Mapping, key: str) -> list[Entry]:
    """The entry of a key with something in it."""
    entry = part.get(key)
    if entry is None:
        return []
    value = entry.value
    empty = isinstance(value, Scalar) and (
        value.tag == "!reset"
        or not value.value.strip()
        or (not value.style and value.value in _NULLS)
    )
    return [] if empty else [entry]


def entries_of(node: Node | None) -> Iterator[Entry]:
    """The entries of a mapping, each key once."""
    if isinstance(node, Mapping):
        seen = set()
        for entry in node.merged():
            if entry.key.value not in seen:
                seen.add(entry.key.value)
                yield entry


def _platforms(part: Mapping) -> list[Entry]:
    return given(part, "platform")


def _labels(part: Mapping) -> list[tuple[str, int]]:
    """The value of the label and its line, in either form of Compose's."""
    labels = value_of(part, "labels")
    if isinstance(labels, Mapping):
        entry = labels.get(LABEL)
        if entry is None:
            return []
        value = entry.value.value if isinstance(entry.value, Scalar) else ""
        return [(value, entry.key.line)]
    items = labels.items if isinstance(labels, Sequence) else ()
    texts = ((*item.value.partition("="), item.line) for item in items if isinstance(item, Scalar))
    return [(value, line) for name, _, value, line in texts if name == LABEL]


def block_header(text: str, scalar: Scalar) -> int:
    """Where the header of a block scalar (``>-``) ends."""
    end = scalar.start
    while end < len(text) and text[end] in "|>+-0123456789":
        end += 1
    return end


def is_null(node: Node) -> bool:
    """Whether a value is none."""
    return isinstance(node, Scalar) and not node.style and node.value in _NULLS


def extended(part: Mapping) -> Iterator[tuple[str, str]]:
    """The service that a service extends, and the file that it is in: nothing for its own."""
    node = value_of(part, "extends")
    if isinstance(node, Scalar) and node.value not in _NULLS:
        yield node.value, ""
    elif isinstance(node, Mapping):
        base, file = value_of(node, "service"), value_of(node, "file")
        if isinstance(base, Scalar):
            yield base.value, file.value if isinstance(file, Scalar) else ""
