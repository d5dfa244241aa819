"""Compose files that make one project, as ``docker compose -f a -f b`` merges them.

::

    a document of a file   its services, those that they extend in it, what it includes
    a service              what stands of it in each of them, what overrides before what is
                           overridden; ``!reset`` and ``!override`` hide what is below

What Docker Compose refuses is refused; so is a tag where only Compose itself knows what it does.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as NameMapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from builder.compose.document import Document, Entry, Mapping, Node, Scalar
from builder.compose.document import Sequence as SequenceNode
from builder.compose.interpolation import interpolated
from builder.compose.service import extended, given
from builder.errors import ProjectError

EXTENDS_LIMIT: Final = 100
"""The most services that one may extend by way of others."""
RESET: Final = "!reset"
_OVERRIDE: Final = "!override"
ONE_FILE: Final = "docker compose config prints files with everything in one: give that"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A compose file, what its relative paths start from, and the variables that it sees."""

    document: Document
    directory: str
    variables: NameMapping[str, str]

    @property
    def file(self) -> str:
        return self.document.file

    def text(self, node: Node) -> str:
        """A scalar with the values of variables.

        Raises:
            ProjectError: It is none, or Compose would refuse it.
        """
        if not isinstance(node, Scalar):
            raise ProjectError(f"{self.file}:{node.line}: expected text, got a collection")
        return interpolated(node.value, self.variables, at=f"{self.file}:{node.line}")

    def path(self, text: str) -> str:
        """A path as the file means it."""
        if text == "~" or text.startswith("~/"):
            text = self.variables.get("HOME", "~") + text[1:]
        return os.path.normpath(os.path.join(self.directory, text))  # noqa: PTH118 - no Path yet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """What stands of a service in one place."""

    part: Mapping
    source: Source
    below: bool
    """Whether it is inside of what overrides: Compose does not look at tags there."""

    def tag(self, key: str) -> str | None:
        """Whether it resets or overrides what is below, for a key.

        Raises:
            ProjectError: It does so in a way that depends on what Compose reads first.
        """
        entry = self.part.get(key)
        if entry is None:
            return None
        at = f"{self.source.file}:{entry.key.line}: {key}"
        elsewhere = self.below or self.part.own(key) is None or entry.value.anchored
        if (elsewhere and tag_of(entry.value)) or _inside(entry.value):
            raise ProjectError(
                f"{at}: a tag {RESET} or {_OVERRIDE} in it, behind an anchor, or in what has one,"
                " is not followed",
                hint=f"tag the value of {key!r} itself, where it stands; {ONE_FILE}",
            )
        return tag_of(entry.value)


_Chain: TypeAlias = tuple[Level, ...]
"""A service, then what it extends in the same document, and so on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composed:
    """A service over all its places: what overrides stands before what is overridden. What is
    included is a service by itself."""

    name: str
    line: int
    file: str
    places: "tuple[_Chain | Composed, ...]"

    def levels(self, key: str) -> Iterator[Level]:
        """Where a key may stand, down to what is reset or overridden. What a service extends hides
        only what that extends itself."""
        for place in self.places:
            if isinstance(place, Composed):
                yield from place.levels(key)
                continue
            for depth, level in enumerate(place):
                tag = level.tag(key)
                if tag != RESET:
                    yield level
                if tag is not None:
                    if depth == 0:
                        return
                    break


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Root:
    """One YAML document of a file, with the projects that it includes."""

    source: Source
    services: NameMapping[str, Entry]
    clears: bool
    """Whether it takes all services away that stand before it."""
    included: "tuple[Composition, ...]"


class Composition:
    """A project: the YAML documents of its files, the first one first.

    Raises:
        ProjectError: A service is included, and stands beside, too; or extends what is not there.
    """

    def __init__(self, sources: Sequence[Source], roots: Sequence[Root]) -> None:
        self._roots = tuple(roots)
        below = [one for root in roots for each in root.included for one in each.sources]
        self.sources: tuple[Source, ...] = (*below, *sources)
        """All files, what overrides last."""
        self.services: NameMapping[str, Composed] = _services(self._roots)
        """By name, in the order in which they are first named."""


def _services(roots: Sequence[Root]) -> dict[str, Composed]:
    """The services of a project, by name."""
    places: dict[str, list[_Chain | Composed]] = {}
    first: dict[str, tuple[str, int]] = {}
    for root in roots:
        if root.clears:
            places.clear()
        for name, service in _imported(root).items():
            first.setdefault(name, (service.file, service.line))
            places.setdefault(name, []).insert(0, service)
        for name, entry in root.services.items():
            tag = tag_of(entry.value)
            if tag is not None:
                places.pop(name, None)
            if tag != RESET:
                first.setdefault(name, (root.source.file, entry.key.line))
                places.setdefault(name, []).insert(0, tuple(_chain(root, name)))
    return {
        name: Composed(name=name, file=first[name][0], line=first[name][1], places=tuple(found))
        for name, found in places.items()
    }


def _imported(root: Root) -> dict[str, Composed]:
    """The services that a document includes; none of them may stand in it, too."""
    found: dict[str, Composed] = {}
    for composition in root.included:
        for name, service in composition.services.items():
            other = found.get(name)
            if other is not None or name in root.services:
                where = root.source.file if other is None else other.file
                raise ProjectError(
                    f"{service.file}:{service.line}: service {name!r} is included, and stands in"
                    f" {where}, too",
                    hint="what is included can be overridden by a file that comes after, alone",
                )
            found[name] = service
    return found


def _chain(root: Root, name: str) -> Iterator[Level]:
    seen: set[str] = set()
    while True:
        part = root.services[name].value
        if not isinstance(part, Mapping):
            return
        below = root.clears or tag_of(part) is not None
        yield Level(part=part, source=root.source, below=below)
        seen.add(name)
        bases = (
            [base for base, file in extended(part) if not file] if given(part, "extends") else []
        )
        if not bases:
            return
        at = f"{root.source.file}:{part.line}: service {name!r} extends {bases[0]!r}"
        name = bases[0]
        if name not in root.services:
            raise ProjectError(f"{at}, which does not stand in the same document")
        if name in seen:
            raise ProjectError(f"{at}, which leads back to it")
        if len(seen) > EXTENDS_LIMIT:
            raise ProjectError(f"{at}, behind {EXTENDS_LIMIT} others, which is the limit")


def tag_of(node: Node) -> str | None:
    """The tag of a value that has nothing below it any more."""
    return node.tag if node.tag in (RESET, _OVERRIDE) else None


def _inside(node: Node) -> bool:
    """Whether something in a value is tagged."""
    waiting, seen = list(_children(node)), set()
    while waiting:
        child = waiting.pop()
        if id(child) in seen:
            continue
        seen.add(id(child))
        if tag_of(child):
            return True
        waiting += _children(child)
    return False


def _children(node: Node) -> Iterable[Node]:
    if isinstance(node, SequenceNode):
        return node.items
    return (entry.value for entry in node.entries) if isinstance(node, Mapping) else ()
