"""What pins that are commits have in common when they move."""

from dataclasses import replace
from typing import TypeVar

from builder.digest import ObjectId
from builder.errors import GoneError
from builder.lock.model import GenesisPin, PullPin, SourcePin
from builder.resolve.targets import Target
from builder.upstream import Distance, History

_PinT = TypeVar("_PinT", PullPin, SourcePin, GenesisPin)


def settled(pin: _PinT, before: _PinT | None) -> _PinT:
    """``pin``, with the time of ``before`` where nothing else differs. What failed to bake under
    the old pin says nothing of a new one: ``failing`` is left for a trial to fill."""
    if before is None:
        return pin
    pin = replace(pin, failing=(), at=before.at)
    unmoved = replace(before, failing=())
    return unmoved if replace(pin, locked=before.locked) == unmoved else pin


def between(
    repository: str, old: ObjectId | None, new: str, *, history: History
) -> tuple[Distance | None, tuple[str, ...]]:
    """What lies between two commits, or ``None`` and a remark where the old one is gone."""
    if old is None:
        return None, ()
    try:
        return history.distance(repository, str(old), new), ()
    except GoneError:
        return None, (f"{old.short} is gone: nobody can say what lies between it and the new one",)


def moved_ref(
    pin: SourcePin | GenesisPin,
    before: SourcePin | GenesisPin,
    target: Target,
    distance: Distance | None,
    *,
    history: History,
) -> tuple[str, ...]:
    """A remark where a ref went elsewhere than forward: a tag that moved, a branch whose history
    was rewritten."""
    old = before.commit
    if target.ref is None or str(old) == target.commit:
        return ()
    if target.is_tag and before.follows in (target.ref, target.ref.removeprefix("refs/tags/")):
        return (f"the tag {target.ref} was moved from {old.short} to {target.commit[:12]}",)
    if distance is None or not distance.behind:
        return ()
    if history.merge_base(pin.repository, str(old), target.commit) is None:
        return (f"{target.ref} was re-rooted: its history has nothing in common with {old.short}",)
    if target.is_branch:
        return (f"{target.ref} does not have {old.short} in its history",)
    return (f"{old.short} is not in the history of {target.ref}",)
