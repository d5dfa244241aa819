"""The Genesis patch set: from a commit, branch or tag to its trees and the refs that lead to it."""

from collections.abc import Mapping
from dataclasses import replace

from builder.digest import ObjectId
from builder.errors import IntegrityError
from builder.genesis.eras import ERAS, Era
from builder.lock.model import GenesisPin, Subtree
from builder.ports import Git, GitEntry
from builder.resolve.commits import between, moved_ref, settled
from builder.resolve.found import Resolved
from builder.resolve.targets import find_target
from builder.upstream import History


def resolve_genesis(
    repository: str,
    target: str | None,
    *,
    name: str,
    follows: str | None,
    git: Git,
    history: History,
    now: str,
    before: GenesisPin | None = None,
) -> Resolved[GenesisPin]:
    """Pin the patch set at ``target``: a full commit id, a branch, a tag, a full ref, ``pull/N``;
    ``None`` for what ``follows`` names now. Payload and plugin are where the era has them
    (:mod:`builder.genesis`). ``reachable`` stays as it was locked while the commit stays.

    A commit that no ref of the repository leads to may come from anybody's fork, and so may one
    that only pull requests lead to: a remark says so.

    Raises:
        ProjectError: A short id (the hint has the full ones that it may mean), an ambiguous name.
        GoneError: There is no such commit, branch or tag.
        IntegrityError: The commit has no payload of an era that is known.
    """
    at = f"genesis {name!r}"
    found = find_target(repository, follows if target is None else target, history=history, at=at)
    tree = git.tree(repository, found.commit)
    listing = git.listing(repository, found.commit)
    era, others = _era(listing, at=f"{at}: {repository} at {found.commit}")
    pin = GenesisPin(
        name=name,
        repository=repository,
        follows=follows,
        commit=ObjectId.parse(found.commit),
        tree=ObjectId.parse(tree),
        payload=_subtree(listing, era.payload),
        plugin=_plugin(listing, era),
        reachable=history.reachable(repository, found.commit),
        locked=now,
    )
    remarks = _origin(pin)
    if others:
        remarks += (f"beside {era.payload} it has {' and '.join(others)}, which is not taken",)
    if before is None:
        return Resolved(pin=pin, remarks=remarks)
    distance, said = between(repository, before.commit, found.commit, history=history)
    remarks += said + moved_ref(pin, before, found, distance, history=history)
    pin, said = _after(pin, before)
    return Resolved(pin=settled(pin, before), remarks=remarks + said, distance=distance)


def _after(pin: GenesisPin, before: GenesisPin) -> tuple[GenesisPin, tuple[str, ...]]:
    """``pin`` with what stays of the old one, and remarks on what does not."""
    remarks: tuple[str, ...] = ()
    if before.commit == pin.commit and before.reachable:
        lost = [ref for ref in before.reachable if ref not in pin.reachable]
        if lost:
            remarks += (f"what led to it when it was locked does not any more: {', '.join(lost)}",)
        pin = replace(pin, reachable=before.reachable)
    if before.tree == pin.tree:
        pin = replace(pin, escrow=before.escrow)
    if before.payload is not None and pin.payload is not None:
        old, new = before.payload.path, pin.payload.path
        remarks += (f"the payload moved from {old} to {new}",) if old != new else ()
    return pin, remarks


def _origin(pin: GenesisPin) -> tuple[str, ...]:
    """A remark where the commit may be somebody else's."""
    if not pin.reachable:
        return (f"no ref of the repository leads to {pin.commit.short}: it may be from any fork",)
    if all(ref.startswith("refs/pull/") for ref in pin.reachable):
        refs = ", ".join(pin.reachable)
        return (f"no branch or tag leads to {pin.commit.short}, only pull requests: {refs}",)
    return ()


def _era(listing: Mapping[str, GitEntry], *, at: str) -> tuple[Era, tuple[str, ...]]:
    """The era of a commit, and where else one of ours would have its payload.

    Commits between two eras have both directories. The new one is taken as soon as it has what
    applies the patches and their registry; before, and behind, the other is only a shim.
    """
    there = [era for era in ERAS if _is_directory(listing, era.payload)]
    if not there:
        raise IntegrityError(
            f"{at} has its payload in none of {', '.join(era.payload for era in ERAS)}",
            hint="this is another repository, or an era that this builder does not know yet",
        )
    whole = [era for era in there if _is_whole(listing, era)]
    era = (whole or there)[-1]
    return era, tuple(other.payload for other in there if other is not era)


def _is_whole(listing: Mapping[str, GitEntry], era: Era) -> bool:
    applied = era.apply.replace(".", "/")
    return any(path in listing for path in (f"{applied}.py", f"{applied}/__main__.py")) and any(
        f"{era.payload}/{path}" in listing for path in era.registry
    )


def _is_directory(listing: Mapping[str, GitEntry], path: str) -> bool:
    return path in listing and listing[path].is_directory


def _subtree(listing: Mapping[str, GitEntry], path: str) -> Subtree:
    return Subtree(path=path, tree=ObjectId.parse(listing[path].id))


def _plugin(listing: Mapping[str, GitEntry], era: Era) -> Subtree | None:
    there = (path for path in era.plugins if _is_directory(listing, path))
    return next((_subtree(listing, path) for path in there), None)
