"""The compose files of one project, with those that they include.

An included file is a project of its own, with its own directory and variables. Nothing is fetched.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from builder.compose.composition import ONE_FILE, RESET, Composition, Root, Source, tag_of
from builder.compose.document import Document, Mapping, Node, Scalar, read
from builder.compose.document import Sequence as SequenceNode
from builder.compose.env_file import read_variables
from builder.compose.interpolation import without_unset
from builder.compose.service import entries_of, value_of
from builder.errors import ProjectError

Read = Callable[[str], bytes | None]
"""The bytes of a file by its path, or ``None`` where there is none."""

FILE_LIMIT: Final = 100
"""The most files that one project may be made of."""
_REMOTE = ("://", "git@", "oci:")


def compose(sources: Sequence[Source], *, read: Read) -> Composition:
    """Put files together, the first one first, and what they include.

    Args:
        sources: The files; each has the directory of the first one.
        read: Reads what is included, and its variables.

    Raises:
        ProjectError: A file that is included is not there, remote, not a compose file, or includes
            itself; two of them have a service of one name; over ``FILE_LIMIT`` files.
    """
    return _Loader(read).load(sources, ())


def included(document: Document) -> Iterator[Scalar]:
    """The paths that a file includes, as they are written; of what is no list of them, nothing."""
    for root in document.roots:
        node = value_of(root, "include")
        for item in node.items if isinstance(node, SequenceNode) else ():
            paths = value_of(item, "path") if isinstance(item, Mapping) else item
            yield from (path for path in _listed(paths) if isinstance(path, Scalar))


class _Loader:
    def __init__(self, read: Read) -> None:
        self._read = read
        self._count = 0

    def load(self, sources: Sequence[Source], above: tuple[str, ...]) -> Composition:
        self._count += len(sources)
        if self._count > FILE_LIMIT:
            raise ProjectError(f"{sources[0].file}: with what is included, over {FILE_LIMIT} files")
        roots = [
            self._root(source, root, above) for source in sources for root in source.document.roots
        ]
        return Composition(sources, roots)

    def _root(self, source: Source, root: Node, above: tuple[str, ...]) -> Root:
        node = value_of(root, "services")
        tag = None if node is None else tag_of(node)
        services = {} if tag == RESET else {entry.key.value: entry for entry in entries_of(node)}
        return Root(
            source=source,
            services=services,
            clears=tag is not None,
            included=tuple(self._included(source, root, above)),
        )

    def _included(
        self, source: Source, root: Node, above: tuple[str, ...]
    ) -> Iterator[Composition]:
        node = value_of(root, "include")
        if node is None or tag_of(node) == RESET or (isinstance(node, Scalar) and not node.value):
            return
        if not isinstance(node, SequenceNode):
            raise ProjectError(f"{source.file}:{node.line}: include: expected a list")
        for item in node.items:
            yield self._include(source, item, above)

    def _include(self, source: Source, item: Node, above: tuple[str, ...]) -> Composition:
        at = f"{source.file}:{item.line}: include"
        node = value_of(item, "path") if isinstance(item, Mapping) else item
        paths = [self._local(source, each, at) for each in _listed(node)]
        if not paths:
            raise ProjectError(f"{at}: no path")
        stated = value_of(item, "project_directory")
        directory = (
            os.path.dirname(paths[0])  # noqa: PTH120 - no Path yet
            if stated is None
            else self._local(source, stated, at)
        )
        variables = self._variables(source, value_of(item, "env_file"), directory, at)
        files = []
        for path in paths:
            if path in above:
                raise ProjectError(f"{at}: {path!r} includes itself")
            data = self._read(path)
            if data is None:
                raise ProjectError(f"{at}: {path!r} is not there")
            document = read(data, file=path)
            files.append(Source(document=document, directory=directory, variables=variables))
        return self.load(files, (*above, *paths))

    def _variables(
        self, source: Source, node: Node | None, directory: str, at: str
    ) -> dict[str, str]:
        """What the files of variables have, under what the including file sees."""
        named = [self._local(source, each, at) for each in _listed(node)]
        found: dict[str, str] = {}
        for path in named or (f"{directory}/.env",):
            data = self._read(path)
            if data is not None:
                found |= read_variables(data, {**found, **source.variables}, file=path)
            elif named:
                raise ProjectError(f"{at}: {path!r} is not there")
        return {**found, **source.variables}

    def _local(self, source: Source, node: Node, at: str) -> str:
        text = without_unset(source.text(node))
        if not text or text.startswith(_REMOTE[1:]) or _REMOTE[0] in text:
            raise ProjectError(
                f"{at}: {text!r} is no path of this machine: nothing is fetched", hint=ONE_FILE
            )
        return source.path(text)


def _listed(node: Node | None) -> tuple[Node, ...]:
    """One text, or a list of them."""
    if isinstance(node, SequenceNode):
        return node.items
    return () if node is None or (isinstance(node, Scalar) and not node.value) else (node,)
