"""A service to what its container gets: words of a command line, environment, mounts.

As Docker Compose resolves them. What stands elsewhere than in the files that were given, and those
that they include, is refused, because an answer without it would be a guess.
"""

import posixpath
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from builder.compose.composition import Composed, Level, Source
from builder.compose.document import Document, Node, Scalar, Sequence
from builder.compose.document import Mapping as MappingNode
from builder.compose.env_file import read_variables
from builder.compose.include import Read, compose
from builder.compose.interpolation import unset, without_unset
from builder.compose.service import entries_of, given, is_null, value_of
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
    file: str


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


def container(
    document: Document,
    name: str,
    *,
    variables: Mapping[str, str],
    directory: str,
    read: Read,
) -> Container:
    """What the container of a service of one file gets: see :func:`contained`.

    Args:
        document: The compose file.
        name: A service of it.
        variables: The environment over ``.env``.
        directory: The directory of the compose file, which relative paths start from.
        read: Reads what it includes, and the service's ``env_file``.
    """
    source = Source(document=document, directory=directory, variables=variables)
    return contained(compose([source], read=read).services[name], read=read)


def contained(service: Composed, *, read: Read) -> Container:
    """What the container of a service gets.

    Raises:
        ProjectError: Compose would refuse it, it cannot be read as shell words, or a part of it
            stands in another file or service.
    """
    return _Reader(service, read).container()


class _Reader:
    def __init__(self, service: Composed, read: Read) -> None:
        self._service = service
        self._at = f"{service.file}:{service.line}: service {service.name!r}"
        self._read = read
        self._assigned: dict[str, set[str]] = {}

    def container(self) -> Container:
        self._check_whole()
        environment = self._environment()
        entrypoint, command = self._words("entrypoint"), self._words("command")
        return Container(
            name=self._service.name,
            line=self._service.line,
            words=(*(entrypoint or ()), *(command or ())),
            has_entrypoint=bool(entrypoint),
            has_command=command is not None,
            assigned={name: frozenset(values) for name, values in self._assigned.items()},
            environment=environment,
            mounts=tuple(self._mounts()),
        )

    def _check_whole(self) -> None:
        for key in ("extends", "volumes_from"):
            for level in self._service.levels(key):
                node = value_of(level.part, key)
                elsewhere = key == "volumes_from" or (
                    isinstance(node, MappingNode) and value_of(node, "file") is not None
                )
                if node is not None and elsewhere and given(level.part, key):
                    raise ProjectError(
                        f"{self._at}: a part of it is what {key!r} names, which is not read",
                        hint="docker compose config prints files with everything in one: give that",
                    )

    def _words(self, key: str) -> tuple[str, ...] | None:
        """The words of a command; ``None`` where it is not given. Of several the last counts."""
        for level in self._service.levels(key):
            if (entry := level.part.get(key)) is None:
                continue
            node, source = entry.value, level.source
            if is_null(node):
                return None
            if not isinstance(node, Sequence):
                text = source.text(node)
                words = self._split(text, at=f"{source.file}:{node.line}")
            else:
                words = [source.text(item) for item in node.items]
            return tuple(self._scripts(words, f"{source.file}:{node.line}"))
        return None

    def _scripts(self, words: list[str], at: str) -> Iterator[str]:
        """Words, scripts among them as the words of their shell."""
        for number, word in enumerate(words):
            # A command's script goes to the shell that an entrypoint ends with: known by its lines.
            is_script = "\n" in word.strip() or (number and words[number - 1] in _SHELL_ENDS)
            if not is_script or word.strip().startswith("{"):
                yield word
                continue
            for piece in self._split(word, at=at, script=True):
                name, equals, value = piece.partition("=")
                if equals and name.isidentifier():
                    self._assigned.setdefault(name, set()).add(value)
                yield piece

    def _split(self, text: str, *, at: str, script: bool = False) -> list[str]:
        lexer = shlex.shlex(text, posix=True, punctuation_chars="();|&" if script else False)
        lexer.whitespace_split = True
        lexer.commenters = "#" if script else ""
        try:
            return list(lexer)
        except ValueError as error:
            raise ProjectError(f"{at}: cannot be read as words of a shell: {error}") from error

    def _environment(self) -> dict[str, str]:
        """What overrides comes last. A name alone that has no value takes an earlier one away."""
        found: dict[str, str | None] = {}
        files: dict[str, dict[str, str]] = {}
        for level in reversed(list(self._service.levels("env_file"))):
            files |= self._env_files(level)  # one that is named again keeps its place
        for variables in files.values():
            found |= variables
        for level in reversed(list(self._service.levels("environment"))):
            found |= self._given_environment(level)
        return {name: value for name, value in found.items() if value is not None}

    def _given_environment(self, level: Level) -> Iterator[tuple[str, str | None]]:
        node, source = value_of(level.part, "environment"), level.source
        if isinstance(node, Sequence):
            pairs = [source.text(item).partition("=") for item in node.items]
            texts = [(name, value if equals else None) for name, equals, value in pairs]
        else:
            texts = [
                (entry.key.value, None if is_null(entry.value) else source.text(entry.value))
                for entry in entries_of(node)
            ]
        for name, value in texts:
            yield name, source.variables.get(name) if value is None else without_unset(value)

    def _env_files(self, level: Level) -> Iterator[tuple[str, dict[str, str]]]:
        node, source = value_of(level.part, "env_file"), level.source
        for item in node.items if isinstance(node, Sequence) else () if node is None else (node,):
            path = value_of(item, "path") if isinstance(item, MappingNode) else item
            if path is None or is_null(path):
                continue
            needed = value_of(item, "required") if isinstance(item, MappingNode) else None
            name = source.path(without_unset(source.text(path)))
            data = self._read(name)
            if data is not None:
                yield name, read_variables(data, source.variables, file=name)
            elif not (isinstance(needed, Scalar) and needed.value.lower() in _OPTIONAL):
                raise ProjectError(f"{self._at}: env_file: {name!r} is not there")

    def _mounts(self) -> Iterator[Mount]:
        """What is mounted, by its target: the last one of a list, the first one of the levels."""
        spelt: dict[str, str] = {}
        seen: set[str] = set()
        for level in self._service.levels("volumes"):
            node, own = value_of(level.part, "volumes"), dict[str, Mount]()
            for item in node.items if isinstance(node, Sequence) else ():
                read = _long if isinstance(item, MappingNode) else _short
                target, mount = read(item, level.source)
                if spelt.setdefault(mount.target, target) != target:
                    raise ProjectError(
                        f"{self._at}: volumes: {mount.target!r} is written in two ways, and only"
                        " Compose knows which of them counts",
                        hint="write it in one way",
                    )
                own[mount.target] = mount
            yield from (mount for target, mount in own.items() if target not in seen)
            seen |= own.keys()
        for key, directory in _PLACES.items():
            for level in self._service.levels(key):
                node = value_of(level.part, key)
                one = () if node is None or is_null(node) else (node,)
                for item in node.items if isinstance(node, Sequence) else one:
                    yield _other(item, level.source, directory)


def _short(node: Node, source: Source) -> tuple[str, Mount]:
    text = source.text(node)
    place, colon, rest = text.partition(":")
    if not colon:
        return text, _mount("", text, source, kind=Kind.VOLUME, line=node.line)
    is_path = place.startswith((".", "/", "~")) or bool(unset(place))
    kind = Kind.BIND if is_path else Kind.VOLUME
    target = rest.partition(":")[0]
    return target, _mount(place, target, source, kind=kind, line=node.line)


def _long(node: Node, source: Source) -> tuple[str, Mount]:
    texts = {
        entry.key.value: source.text(entry.value)
        for entry in entries_of(node)
        if isinstance(entry.value, Scalar)
    }
    place, target = texts.get("source", ""), texts.get("target", "")
    known = {"bind": Kind.BIND, "volume": Kind.VOLUME}
    kind = known.get(texts.get("type", ""), Kind.OTHER)
    return target, _mount(place, target, source, kind=kind, line=node.line)


def _mount(place: str, target: str, source: Source, *, kind: Kind, line: int) -> Mount:
    return Mount(
        target=_normal(target),
        source=source.path(place) if kind is Kind.BIND else place,
        kind=kind,
        line=line,
        file=source.file,
    )


def _other(node: Node, source: Source, directory: str) -> Mount:
    """A tmpfs, or a file that Compose itself puts into the container."""
    if isinstance(node, MappingNode):
        at = value_of(node, "target") or value_of(node, "source")
        name = "" if at is None else source.text(at)
    else:
        name = source.text(node)
    target = posixpath.join(directory, name.partition(":")[0])
    return _mount("", target, source, kind=Kind.OTHER, line=node.line)


def _normal(target: str) -> str:
    """A path of the container as the engine mounts it. Compose puts nothing for what is not set."""
    path = without_unset(target)
    return f"/{posixpath.normpath(path).lstrip('/')}" if path.startswith("/") else path
