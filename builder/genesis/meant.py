"""What somebody meant who wrote a variable that nothing reads."""

import re
from collections.abc import Collection

from builder.genesis.facts import Facts
from builder.genesis.switches import disabling

_NAME = re.compile(r"(?:GENESIS|SNDR)_((?:ENABLE_|DISABLE_|LEGACY_)?)(.*)")
_CLOSE = 0.7
"""How much of a name must be right, by :mod:`difflib`."""


def meant(name: str, facts: Facts, known: Collection[str]) -> str:
    """What to do about ``name``, as a hint.

    Patches are asked for by their ids first, then the names that ``name`` begins, then those that
    look like it. A switch is never taken for its opposite.
    """
    parts = _NAME.fullmatch(name)
    kind, stem = (parts[1], parts[2]) if parts else ("", name)
    if kind == "ENABLE_" and (hint := _by_id(stem, facts)):
        return hint
    alike = sorted(other for other in known if _is_of(kind, other))
    longer = next((other for other in alike if other.startswith(f"{name}_")), None)
    near = longer or _nearest(stem, kind, alike)
    return "leave it out" if near is None else f"did you mean {near!r}?"


def _by_id(stem: str, facts: Facts) -> str | None:
    patch = next((patch for patch in facts.patches if patch.id.lower() == stem.lower()), None)
    if patch is None or patch.flag is None:
        return None
    if not patch.always:
        return f"did you mean {patch.flag!r}?"
    off = next(iter(disabling(patch, facts)), None)
    way = f"only {off}=1 switches it off" if off else "has no switch"
    return f"leave it out: {patch.id} is always applied, and {way}"


def _is_of(kind: str, name: str) -> bool:
    parts = _NAME.fullmatch(name)
    return parts is not None and (not kind or parts[1] == kind)


def _nearest(stem: str, kind: str, known: Collection[str]) -> str | None:
    import difflib  # noqa: PLC0415 - only slips need it, and it takes time

    # What all names begin with says nothing of which one is meant.
    stems = {name.partition("_")[2].removeprefix(kind or "ENABLE_"): name for name in known}
    close = difflib.get_close_matches(stem, stems, n=1, cutoff=_CLOSE)
    return stems[close[0]] if close else None
