"""Which patches an environment switches on, by the patch set's own reading.

In every era a flag is on for ``1``, ``true``, ``yes`` and ``on``, whatever the case, and off for
all else. A patch that is on by default stays on whatever its flag says, until 2026-05-14, when a
second variable to switch it off came; from 2026-05-17 on nothing is on by default. Patches that
are older than the registry are on in every era, and have no switch.
"""

from collections.abc import Mapping

from builder.genesis.facts import Facts
from builder.genesis.registry import Patch
from builder.value import field, value

ON = frozenset({"1", "true", "yes", "on"})
OFF = frozenset({"", "0", "false", "no", "off"})
LEGACY_DEFAULTS = "GENESIS_LEGACY_DEFAULT_ON"
"""Brings the defaults back, where they are advice."""
_ENABLE = ("GENESIS_ENABLE_", "SNDR_ENABLE_")


def is_on(text: str) -> bool:
    """Whether a value switches on."""
    return text.strip().lower() in ON


@value
class Switched:
    """What an environment comes to. Mappings are by the id of a patch, in the registry's order."""

    on: Mapping[str, str | None] = field(default_factory=dict)
    """The patches that are on, each with the variable that switched it on: ``None`` for one that
    is on by default."""
    stubborn: Mapping[str, str] = field(default_factory=dict)
    """Patches that are on although a variable says off: they do not listen to it."""


def switched(environment: Mapping[str, str], facts: Facts) -> Switched:
    """Work out what is on."""
    defaults = not facts.reading.opt_in or is_on(environment.get(LEGACY_DEFAULTS, ""))
    off = {name for name, text in environment.items() if "_DISABLE_" in name and is_on(text)}
    on: dict[str, str | None] = {}
    stubborn: dict[str, str] = {}
    for patch in facts.patches:
        if off and not off.isdisjoint(disabling(patch, facts)):
            continue
        by = None if patch.always else _switch(patch, environment, facts)
        if by is not None:
            on[patch.id] = by
        elif patch.always or (defaults and patch.default_on and not patch.retired):
            on[patch.id] = None
            if set_off := _set(patch.flag, environment, facts):
                stubborn[patch.id] = set_off
    return Switched(on=on, stubborn=stubborn)


def spellings(flag: str, facts: Facts) -> tuple[str, ...]:
    """The variables that are read for a flag, the first one that is set winning."""
    stem = _stem(flag) if facts.reading.twins else None
    if stem is None:
        return (flag,)
    return (f"SNDR_ENABLE_{stem}", f"GENESIS_ENABLE_{stem}")


def disabling(patch: Patch, facts: Facts) -> tuple[str, ...]:
    """The variables that switch a patch off: by the module that decides, or because its own source
    reads one."""
    stem = _stem(patch.flag or "")
    by_rule = () if stem is None or not facts.reading.disabling else _disables(stem)
    by_name = (*(_disables(stem) if stem else ()), *_disables(patch.id))
    return (*by_rule, *(name for name in by_name if name in facts.names and name not in by_rule))


def _disables(word: str) -> tuple[str, str]:
    return (f"SNDR_DISABLE_{word}", f"GENESIS_DISABLE_{word}")


def _stem(flag: str) -> str | None:
    """What a switch is called without its prefix; ``None`` for a flag that is no such switch."""
    return next((flag.removeprefix(item) for item in _ENABLE if flag.startswith(item)), None)


def _switch(patch: Patch, environment: Mapping[str, str], facts: Facts) -> str | None:
    for flag in (patch.flag, *patch.aliases):
        name = _set(flag, environment, facts)
        if name is not None and is_on(environment[name]):
            return name
    return None


def _set(flag: str | None, environment: Mapping[str, str], facts: Facts) -> str | None:
    names = () if flag is None else spellings(flag, facts)
    return next((name for name in names if name in environment), None)
