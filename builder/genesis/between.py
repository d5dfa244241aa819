"""What a patch set says of itself at two commits, and where that differs."""

from collections.abc import Iterable, Iterator

from builder.genesis.allowlist import Presence
from builder.genesis.facts import Facts

_SHOWN = 10


def differences(old: Facts, new: Facts) -> tuple[str, ...]:
    """Sentences, without a full stop: about the allowlist always, then about the patches."""
    return (*_lists(old, new), *_patches(old, new))


def _lists(old: Facts, new: Facts) -> Iterator[str]:
    before, after = old.allowlist, new.allowlist
    if after.presence is not Presence.PRESENT or before.presence is not Presence.PRESENT:
        yield f"allowlist: {before.presence} before, {after.presence} now"
        return
    if (before.good, before.pending) == (after.good, after.pending):
        yield f"the same allowlist: {', '.join(after.good) or 'empty'}"
        return
    yield from _few("the allowlist has", set(after.good) - set(before.good))
    yield from _few("the allowlist has no longer", set(before.good) - set(after.good))
    yield from _few("pending is", set(after.pending) - set(before.pending))
    yield from _few("pending is no longer", set(before.pending) - set(after.pending))


def _patches(old: Facts, new: Facts) -> Iterator[str]:
    before = {patch.id: patch for patch in old.patches}
    after = {patch.id: patch for patch in new.patches}
    yield from _few("new patches", set(after) - set(before))
    yield from _few("patches that are gone", set(before) - set(after))
    both = sorted(set(before) & set(after))
    yield from _few(
        "flags that are called otherwise",
        (
            f"{before[name].flag} -> {after[name].flag}"
            for name in both
            if before[name].flag != after[name].flag
        ),
    )
    yield from _few(
        "on by default now", (n for n in both if after[n].default_on and not before[n].default_on)
    )
    yield from _few(
        "no longer on by default",
        (n for n in both if before[n].default_on and not after[n].default_on),
    )


def _few(what: str, items: Iterable[str]) -> Iterator[str]:
    found = sorted(items)
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        yield f"{what}: {', '.join(found[:_SHOWN])}{more}"
