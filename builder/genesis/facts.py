"""All that the builder wants to know of a commit of the patch set, read from its payload.

Reading takes some ten milliseconds and the payload; the facts themselves are small and belong to
the payload's tree for good, so that they can be kept beside it.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Self

from builder.errors import ProjectError
from builder.genesis.allowlist import Allowlist, read_allowlist
from builder.genesis.eras import ERAS, Era, era_of
from builder.genesis.registry import Patch, read_registry
from builder.value import field, value

FORMAT = 1
"""Of :meth:`Facts.record`; facts of another format are read anew."""

# Each begins with a literal, for which a source is searched many times faster.
_NAMES = tuple(
    re.compile(rb"%b_[A-Za-z0-9_]*[A-Za-z0-9]" % prefix) for prefix in (b"GENESIS", b"SNDR")
)
_QUOTES = frozenset(b"\"'")
_CLOSING = re.compile(rb"\\?[\"']\s*(:?)")
_STEM_READ = re.compile(rb"get_sndr_env(?:_[a-z]+)?\(\s*[\"']([A-Z0-9_]+)[\"']")
_FLAG_READS = tuple(
    re.compile(rb"%b\(\s*[\"']([A-Za-z0-9_]+)[\"']" % reader)
    for reader in (b"is_enabled", b"is_disabled")
)
_FLAG_NAME = re.compile(
    rb"^ +[A-Z][A-Z0-9_a-z]* *(?::[^=\n]*)?= *[\"']([A-Za-z0-9_]+)[\"']", re.MULTILINE
)
_PREFIXES = ("SNDR_", "GENESIS_")


@value
class Reading:
    """How the patch set turns its variables into decisions."""

    opt_in: bool = False
    """Whether ``default_on`` is advice only: nothing is on that no flag switches on."""
    disabling: bool = False
    """Whether ``..._DISABLE_X`` switches off what ``..._ENABLE_X`` names."""
    twins: bool = False
    """Whether ``SNDR_X`` is read for ``GENESIS_X``, and before it."""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {"opt_in": self.opt_in, "disabling": self.disabling, "twins": self.twins}


@value
class Facts:
    """What a commit of the patch set says of itself."""

    payload: str
    """The directory of the payload in the repository."""
    allowlist: Allowlist
    patches: tuple[Patch, ...] = field(default=(), repr=False)
    names: frozenset[str] = field(default=frozenset(), repr=False)
    """The variables that its source reads or mentions as a text of its own. A name in prose, in a
    test, or as the key of a dict (where it is being set) does not count."""
    reading: Reading = Reading()

    @property
    def era(self) -> Era:
        """The layout of the commit."""
        return _known(self.payload)

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "format": FORMAT,
            "payload": self.payload,
            "allowlist": self.allowlist.record(),
            "patches": [patch.record() for patch in self.patches],
            "names": sorted(self.names),
            "reading": self.reading.record(),
        }

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`.

        Raises:
            ValueError, KeyError, TypeError: It is of another form or format.
        """
        if value["format"] != FORMAT:
            raise ValueError(f"format {value['format']!r}, wanted {FORMAT}")
        return cls(
            payload=value["payload"],
            allowlist=Allowlist.parse(value["allowlist"]),
            patches=tuple(Patch.parse(patch) for patch in value["patches"]),
            names=frozenset(value["names"]),
            reading=Reading(**value["reading"]),
        )


def read_facts(payload: str, files: Mapping[str, bytes]) -> Facts:
    """Read a payload.

    Args:
        payload: Its directory in the repository.
        files: Its files, by path relative to that.

    Raises:
        NotLiteral: The allowlist or the registry is there and is not literal.
        ProjectError: No era keeps its payload there, or the allowlist or the registry is not what
            it must be.
    """
    era = _known(payload)
    return Facts(
        payload=era.payload,
        allowlist=read_allowlist(era, files),
        patches=read_registry(era, files),
        names=frozenset(_names(era, files)),
        reading=_reading(era, files),
    )


def _known(payload: str) -> Era:
    era = era_of(payload)
    if era is None:
        raise ProjectError(
            f"a patch set has its payload in {' or '.join(era.payload for era in ERAS)}, "
            f"got {payload!r}",
            hint="this is another patch set, or an era that this builder does not know yet",
        )
    return era


def _reading(era: Era, files: Mapping[str, bytes]) -> Reading:
    """Told by the names in the module that decides: the commits that changed how it decides
    (2026-05-14 and 2026-05-17) brought them."""
    source = files.get(era.deciding, b"")
    return Reading(
        opt_in=b"GENESIS_LEGACY_DEFAULT_ON" in source,
        disabling=b"is_disabled" in source,
        twins=era.twins,
    )


def _names(era: Era, files: Mapping[str, bytes]) -> Iterator[str]:
    for path, source in files.items():
        if path.endswith(".py") and "tests/" not in path:
            yield from _quoted(source)
            if era.twins:
                yield from _stems(source)
    if era.flags is not None:
        for found in _FLAG_NAME.finditer(files.get(era.flags, b"")):
            yield from _switches(found[1].decode())


def _quoted(source: bytes) -> Iterator[str]:
    """The names that stand in quotes of their own, or in ``${...}`` of a shell command.

    What is found is judged by what is around it: a pattern that began with the quote would take
    four times as long.
    """
    for found in chain.from_iterable(name.finditer(source) for name in _NAMES):
        start, end = found.span()
        if source.endswith(b"${", 0, start):
            yield found[0].decode()
        elif start and source[start - 1] in _QUOTES:
            closing = _CLOSING.match(source, end)
            if closing is not None and not closing[1]:
                yield found[0].decode()


def _stems(source: bytes) -> Iterator[str]:
    """The names that are put together from a prefix and what a reader of variables is given."""
    for found in _STEM_READ.finditer(source):
        yield from (prefix + found[1].decode() for prefix in _PREFIXES)
    for found in chain.from_iterable(read.finditer(source) for read in _FLAG_READS):
        yield from _switches(found[1].decode())


def _switches(stem: str) -> Iterator[str]:
    for prefix in _PREFIXES:
        yield f"{prefix}ENABLE_{stem}"
        yield f"{prefix}DISABLE_{stem}"
