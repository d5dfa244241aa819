"""A service to what its container gets: words of a command line, environment, mounts.

As Docker Compose resolves them, from this one file. What stands elsewhere is refused, because an
answer without it would be a guess.
"""

import os
import posixpath
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from builder.compose.document import Document, Node, Scalar, Sequence
from builder.compose.document import Mapping as MappingNode
from builder.compose.env_file import read_variables
from builder.compose.interpolation import interpolated, unset, without_unset
from builder.compose.service import Parts, entries_of, given, inheritance, parts_of, value_of
from builder.errors import ProjectError

_OPTIONAL = frozenset({"false", "no", "off"})
_SHELL_ENDS = ("-c", "-lc", "-ec", "-euc", "-exc", "-euxc")


_PLACES = {"tmpfs": "/", "configs": "/", "secrets": "/run/secrets"}
"""What else is mounted, and where, if only a name is given."""


class Kind(StrEnum):
    """What is mounted."""

    BIND = "bind"
    VOLUME = "volume"
    """A volume that the engine keeps, of a name or of none."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """``source`` is a path of this machine for a bind, with variables that are not set still in it
    (:func:`builder.compose.interpolation.unset`); otherwise the volume's name, or nothing."""

    target: str
    source: str
    kind: Kind
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """``words`` are those of entrypoint and command; those of a script are its shell's words, of
    which ``assigned`` has what is given to its variables. Variables that Compose does not know are
    still recognisable in words."""

    name: str
    line: int
    words: tuple[str, ...]
    has_entrypoint: bool
    has_command: bool
    assigned: Mapping[str, frozenset[str]]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]


Read = Callable[[str], bytes | None]
"""The bytes of a file by its path, or ``None`` where there is none."""


def container(
    document: Document,
    name: str,
    *,
    variables: Mapping[str, str],
    directory: str,
    read: Read,
    parts: Parts | None = None,
) -> Container:
    """What the container of a service gets.

    Args:
        document: The compose file.
        name: A service of it.
        variables: The environment over ``.env``.
        directory: The directory of the compose file, which relative paths start from.
        read: Reads the service's ``env_file``.
        parts: What :func:`builder.compose.service.parts_of` says of the file, for those who read
            all its services.

    Raises:
        ProjectError: Compose would refuse it, it cannot be read as shell words, or a part of it
            stands in another file or service.
    """
    known = parts_of(document) if parts is None else parts
    return _Reader(
        document, name, known, variables=variables, directory=directory, read=read
    ).container()


class _Reader:
    def __init__(
        self,
        document: Document,
        name: str,
        known: Parts,
        *,
        variables: Mapping[str, str],
        directory: str,
        read: Read,
    ) -> None:
        parts, lines = known
        self._name, self._line = name, lines[name]
        self._at = f"{document.file}:{self._line}: service {name!r}"
        self._file = document.file
        self._levels = [part for level in inheritance(parts, name) for part in reversed(level)]
        """What stands of it, what overrides before what is overridden."""
        self._variables, self._directory, self._read = variables, directory, read
        self._assigned: dict[str, set[str]] = {}

    def container(self) -> Container:
        self._check_whole()
        environment = self._environment()
        entrypoint, command = self._words("entrypoint"), self._words("command")
        return Container(
            name=self._name,
            line=self._line,
            words=(*(entrypoint or ()), *(command or ())),
            has_entrypoint=bool(entrypoint),
            has_command=command is not None,
            assigned={name: frozenset(values) for name, values in self._assigned.items()},
            environment=environment,
            mounts=tuple(self._mounts()),
        )

    def _check_whole(self) -> None:
        for part in self._levels:
            for key in ("extends", "volumes_from"):
                node = value_of(part, key)
                elsewhere = key == "volumes_from" or (
                    isinstance(node, MappingNode) and value_of(node, "file") is not None
                )
                if node is not None and elsewhere and given(part, key):
                    raise ProjectError(
                        f"{self._at}: a part of it is what {key!r} names, which is not read",
                        hint="docker compose config prints files with everything in one: give that",
                    )

    def _text(self, node: Node) -> str:
        if not isinstance(node, Scalar):
            raise ProjectError(f"{self._file}:{node.line}: expected text, got a collection")
        return interpolated(node.value, self._variables, at=f"{self._file}:{node.line}")

    def _words(self, key: str) -> tuple[str, ...] | None:
        """The words of a command; ``None`` where it is not given. Of several the last counts."""
        for part in self._levels:
            if (entry := part.get(key)) is None:
                continue
            if not given(part, key):
                return None if isinstance(entry.value, Scalar) and entry.value.value else ()
            node = entry.value
            if not isinstance(node, Sequence):
                return tuple(
                    self._scripts(self._split(self._text(node), line=node.line), node.line)
                )
            texts = [self._text(item) for item in node.items]
            return tuple(self._scripts(texts, node.line))
        return None

    def _scripts(self, words: list[str], line: int) -> Iterator[str]:
        """Words, scripts among them as the words of their shell."""
        for number, word in enumerate(words):
            # A command's script goes to the shell that an entrypoint ends with: known by its lines.
            is_script = "\n" in word.strip() or (number and words[number - 1] in _SHELL_ENDS)
            if not is_script or word.strip().startswith("{"):
                yield word
                continue
            for piece in self._split(word, line=line, script=True):
                name, equals, value = piece.partition("=")
                if equals and name.isidentifier():
                    self._assigned.setdefault(name, set()).add(value)
                yield piece

    def _split(self, text: str, *, line: int, script: bool = False) -> list[str]:
        lexer = shlex.shlex(text, posix=True, punctuation_chars="();|&" if script else False)
        lexer.whitespace_split = True
        lexer.commenters = "#" if script else ""
        try:
            return list(lexer)
        except ValueError as error:
            raise ProjectError(
                f"{self._file}:{line}: cannot be read as words of a shell: {error}"
            ) from error

    def _environment(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in reversed(self._levels):
            for path in self._env_files(part):
                found |= path
        for part in reversed(self._levels):
            found |= self._given_environment(value_of(part, "environment"))
        return found

    def _given_environment(self, node: Node | None) -> Iterator[tuple[str, str]]:
        if isinstance(node, Sequence):
            pairs = [self._text(item).partition("=") for item in node.items]
            texts = [(name, value if equals else None) for name, equals, value in pairs]
        else:
            texts = [
                (entry.key.value, None if _is_null(entry.value) else self._text(entry.value))
                for entry in entries_of(node)
            ]
        for name, value in texts:
            given_value = self._variables.get(name) if value is None else without_unset(value)
            if given_value is not None:
                yield name, given_value

    def _env_files(self, part: MappingNode) -> Iterator[dict[str, str]]:
        node = value_of(part, "env_file")
        for item in node.items if isinstance(node, Sequence) else () if node is None else (node,):
            path = value_of(item, "path") if isinstance(item, MappingNode) else item
            if path is None or _is_null(path):
                continue
            needed = value_of(item, "required") if isinstance(item, MappingNode) else None
            name = self._path(without_unset(self._text(path)))
            data = self._read(name)
            if data is not None:
                yield read_variables(data, self._variables, file=name)
            elif not (isinstance(needed, Scalar) and needed.value.lower() in _OPTIONAL):
                raise ProjectError(f"{self._at}: env_file: {name!r} is not there")

    def _mounts(self) -> Iterator[Mount]:
        seen: set[str] = set()
        for part in self._levels:
            node = value_of(part, "volumes")
            for item in node.items if isinstance(node, Sequence) else ():
                mount = self._long(item) if isinstance(item, MappingNode) else self._short(item)
                if mount.target not in seen:
                    seen.add(mount.target)
                    yield mount
            for key, directory in _PLACES.items():
                node = value_of(part, key)
                for item in node.items if isinstance(node, Sequence) else (node,) if node else ():
                    yield self._other(item, directory)

    def _other(self, node: Node, directory: str) -> Mount:
        """A tmpfs, or a file that Compose itself puts into the container."""
        if isinstance(node, MappingNode):
            at = value_of(node, "target") or value_of(node, "source")
            name = "" if at is None else self._text(at)
        else:
            name = self._text(node)
        target = _normal(posixpath.join(directory, name.partition(":")[0]))
        return Mount(target=target, source="", kind=Kind.OTHER, line=node.line)

    def _short(self, node: Node) -> Mount:
        text = self._text(node)
        source, colon, rest = text.partition(":")
        if not colon:
            return Mount(target=_normal(source), source="", kind=Kind.VOLUME, line=node.line)
        target = rest.partition(":")[0]
        return self._mount(source, target, line=node.line)

    def _long(self, node: MappingNode) -> Mount:
        texts = {
            entry.key.value: self._text(entry.value)
            for entry in entries_of(node)
            if isinstance(entry.value, Scalar)
        }
        kind, source, target = (texts.get(key, "") for key in ("type", "source", "target"))
        if kind == "bind":
            return self._mount(self._path(source), target, line=node.line)
        known = Kind.VOLUME if kind == "volume" else Kind.OTHER
        return Mount(target=_normal(target), source=source, kind=known, line=node.line)

    def _mount(self, source: str, target: str, *, line: int) -> Mount:
        is_path = source.startswith((".", "/", "~")) or bool(unset(source))
        return Mount(
            target=_normal(target),
            source=self._path(source) if is_path else source,
            kind=Kind.BIND if is_path else Kind.VOLUME,
            line=line,
        )

    def _path(self, text: str) -> str:
        if text == "~" or text.startswith("~/"):
            text = self._variables.get("HOME", "~") + text[1:]
        return os.path.normpath(os.path.join(self._directory, text))  # noqa: PTH118 - no Path yet


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and not node.style and node.value in {"", "~", "null", "Null"}


def _normal(target: str) -> str:
    """A path of the container as the engine mounts it. Compose puts nothing for what is not set."""
    path = without_unset(target)
    return f"/{posixpath.normpath(path).lstrip('/')}" if path.startswith("/") else path
