"""The patches that a commit of the patch set knows, from its literal registry."""

import re
from collections.abc import Mapping
from typing import Any, Self

from builder.errors import ProjectError
from builder.genesis.eras import Era
from builder.value import value

REGISTRY = "PATCH_REGISTRY"

ALWAYS = "GENESIS_LEGACY_"
"""How the flags of patches begin that are older than the registry. They are made up for it: no
patch reads its own, and those that are on by default are on whatever the flag says."""

_PULL = re.compile(r"https://github\.com/vllm-project/vllm/pull/([0-9]{1,9})\b.*")


@value
class Patch:
    """One patch, as the registry has it. Keys that are not known here are left out."""

    id: str
    title: str = ""
    flag: str | None = None
    aliases: tuple[str, ...] = ()
    """Other flags that switch it on."""
    default_on: bool = False
    conflicts: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    lifecycle: str | None = None
    """``stable``, ``experimental``, ``legacy``, ``retired``, ..."""
    deprecated: bool = False
    superseded_by: tuple[str, ...] = ()
    """What made it needless, in its own words."""
    versions: tuple[str, ...] = ()
    """The versions of vLLM that it is for, as PEP 440 specifiers; all of them must hold."""
    pulls: tuple[int, ...] = ()
    """The pull requests of vLLM that it brings."""

    @property
    def retired(self) -> bool:
        """Whether the registry calls it retired or deprecated."""
        return self.deprecated or self.lifecycle in ("retired", "deprecated")

    @property
    def always(self) -> bool:
        """Whether it is on, and has no switch."""
        return self.default_on and not self.retired and (self.flag or "").startswith(ALWAYS)

    def record(self) -> dict[str, Any]:
        """As JSON, absent detail left out."""
        record = {name: getattr(self, name) for name in _FIELDS}
        return {
            name: list(item) if isinstance(item, tuple) else item
            for name, item in record.items()
            if item or name == "id"
        }

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`."""
        fields: dict[str, Any] = {
            name: tuple(item) if isinstance(item, list) else item for name, item in value.items()
        }
        return cls(**fields)


_FIELDS = tuple(Patch.__annotations__)


def read_registry(era: Era, files: Mapping[str, bytes]) -> tuple[Patch, ...]:
    """The patches of the payload ``files``, in the registry's order; none where there is no
    registry.

    Raises:
        NotLiteral: The registry is there and is not literal.
        ProjectError: An entry is not what an entry must be.
    """
    from builder.genesis.literals import literals  # noqa: PLC0415 - facts that are kept need no ast

    for path in era.registry:
        at = f"{era.payload}/{path}"
        if path in files:
            found = literals(files[path], (REGISTRY,), file=at)
            if REGISTRY in found:
                return _patches(found[REGISTRY], at=f"{at}: {REGISTRY}")
    return ()


def _patches(registry: object, *, at: str) -> tuple[Patch, ...]:
    if not isinstance(registry, dict):
        raise ProjectError(f"{at}: expected a dict, got {registry!r:.60}")
    return tuple(_patch(name, entry, at=f"{at}[{name!r:.60}]") for name, entry in registry.items())


def _patch(name: object, entry: object, *, at: str) -> Patch:
    if not isinstance(name, str) or not isinstance(entry, dict):
        raise ProjectError(f"{at}: expected a dict with the name of a patch, got {entry!r:.60}")
    keys = _Keys(entry, at)
    applies = keys.one("applies_to", dict) or {}
    return Patch(
        id=name,
        title=keys.one("title", str) or "",
        flag=keys.one("env_flag", str) or None,
        aliases=keys.texts("env_flag_aliases"),
        default_on=keys.one("default_on", bool) or False,
        conflicts=keys.texts("conflicts_with"),
        requires=keys.texts("requires_patches"),
        lifecycle=keys.one("lifecycle", str),
        deprecated=keys.one("deprecated", bool) or False,
        superseded_by=keys.texts("superseded_by"),
        versions=_specifiers(
            keys.texts("vllm_version_range")
            + _Keys(applies, f"{at}['applies_to']").texts("vllm_version_range")
        ),
        pulls=_pulls(entry.get("upstream_pr"), at=f"{at}['upstream_pr']"),
    )


class _Keys:
    """Values of an entry by key; ``None`` is the same as absent."""

    def __init__(self, entry: Mapping[Any, Any], at: str) -> None:
        self._entry = entry
        self._at = at

    def one(self, key: str, kind: type) -> Any:
        """A value of one type."""
        item = self._entry.get(key)
        if item is not None and not isinstance(item, kind):
            raise ProjectError(f"{self._at}[{key!r}]: expected {kind.__name__}, got {item!r:.60}")
        return item

    def texts(self, key: str) -> tuple[str, ...]:
        """One text, or several."""
        item = self._entry.get(key)
        if item is None:
            return ()
        items = item if isinstance(item, tuple | list) else (item,)
        for text in items:
            if not isinstance(text, str):
                raise ProjectError(f"{self._at}[{key!r}]: expected str, got {text!r:.60}")
        return tuple(items)


def _specifiers(ranges: tuple[str, ...]) -> tuple[str, ...]:
    """Single specifiers, each once: ``>=0.20.0,<0.21.0`` are two."""
    single = (part.strip() for text in ranges for part in text.split(","))
    return tuple(dict.fromkeys(part for part in single if part))


def _pulls(upstream: object, *, at: str) -> tuple[int, ...]:
    """The pull request that ``upstream_pr`` names: a number, or an address. An address of
    something else (an issue, a project of others) is none."""
    match upstream:
        case None:
            return ()
        case bool():
            pass
        case int(number):
            return (number,)
        case str(address):
            found = _PULL.fullmatch(address)
            return (int(found[1]),) if found else ()
        case _:
            pass
    raise ProjectError(f"{at}: expected the number of a pull request, got {upstream!r:.60}")
