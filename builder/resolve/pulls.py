"""Pull requests: from a number to two commits and the digest of the change between them."""

from dataclasses import replace

from builder.diff import canonical, parse
from builder.digest import Digest, ObjectId
from builder.errors import GoneError, IntegrityError, ProjectError
from builder.lock.model import PullPin
from builder.materials import keep_diff
from builder.ports import Git, Store
from builder.resolve.commits import between
from builder.resolve.found import Resolved
from builder.upstream import Distance, Forge, History, PullFacts

_SHOWN = 5
_NOWHERE = Distance(ahead=(), behind=())


def resolve_pull(
    repository: str,
    number: int,
    *,
    name: str,
    git: Git,
    history: History,
    forge: Forge,
    store: Store,
    now: str,
    before: PullPin | None = None,
) -> Resolved[PullPin]:
    """The pull request as it is now: its head, and where that left the branch that it is for. The
    change between them is made from git's objects, and kept in ``store``: it stays usable when the
    pull request is force-pushed or goes away.

    While the head stays the pin stays, whatever becomes of the branch. That the pull request was
    closed, merged or force-pushed since ``before`` is a remark; ``before``'s root, strip and escrow
    are kept, the escrow only where the change is the same. A pin of a published diff does not move
    here.

    Raises:
        ProjectError: ``before`` is of a published diff; the pull request changes nothing, or is
            merged in a way that leaves no trace of where it began.
        GoneError: There is no such pull request.
        IntegrityError: It has no history in common with the branch that it is for.
    """
    at = f"pull {name!r}"
    head = _head(repository, number, before, history=history, at=at)
    facts, remarks = _facts(repository, number, head, history=history, forge=forge)
    if before is not None and str(before.head) == head:
        merged = None if facts is None else facts.merge_commit
        pin = replace(before, name=name, repository=repository, failing=())
        return Resolved(pin=pin, remarks=remarks, distance=_NOWHERE, merged=merged)
    base, merged, said = _base(repository, head, facts, history=history, at=at)
    data = git.diff(repository, base, head)
    change, unfit = _change(data, base, head, at=at)
    remarks += said + unfit
    pin = PullPin(
        name=name,
        repository=repository,
        pull=number,
        base=ObjectId.parse(base),
        head=ObjectId.parse(head),
        diff=change,
        raw=Digest.of(data),
        locked=now,
    )
    keep_diff(store, pin, data)
    if before is None:
        return Resolved(pin=pin, remarks=remarks, merged=merged)
    pin = _with_ours(pin, before)
    distance, said = _moved(pin, before, history=history)
    return Resolved(pin=pin, remarks=remarks + said, distance=distance, merged=merged)


def _with_ours(pin: PullPin, before: PullPin) -> PullPin:
    """``pin`` with what the project says in ``before``, and its copies while they are of it."""
    escrow = before.escrow if pin.diff == before.diff else ()
    return replace(pin, root=before.root, strip=before.strip, escrow=escrow, at=before.at)


def _head(
    repository: str, number: int, before: PullPin | None, *, history: History, at: str
) -> str:
    if before is not None and before.published is not None:
        raise ProjectError(
            f"{at}: its diff is a file of the source {before.published.source!r}, so that it does"
            " not move with the pull request",
            hint=f"bump source {before.published.source}",
        )
    ref = f"refs/pull/{number}/head"
    head = history.refs(repository).get(ref)
    if head is None:
        raise GoneError(
            f"{at}: {repository} has no {ref}",
            hint="a pin that is locked stays usable while its diff is in the store or in escrow",
        )
    return history.commit(repository, head).id


def _change(data: bytes, base: str, head: str, *, at: str) -> tuple[Digest, tuple[str, ...]]:
    """The digest of the change, and remarks on what of it no step can apply."""
    if not data:
        raise ProjectError(f"{at}: nothing changes from {base} to {head}", hint="leave it out")
    diff = parse(data, at=at)
    unfit = [
        f"{each.path.partition('/')[2]!r} is {each.unfit}"  # git writes a/ and b/ before each
        for each in diff.changes
        if each.unfit
    ]
    more = f" and {len(unfit) - _SHOWN} more" if len(unfit) > _SHOWN else ""
    remark = f"no step can apply all of it: {', '.join(unfit[:_SHOWN])}{more}"
    return canonical(diff), ((remark,) if unfit else ())


def _facts(
    repository: str, number: int, head: str, *, history: History, forge: Forge
) -> tuple[PullFacts | None, tuple[str, ...]]:
    """What the host says; a remark where it says nothing, or something else than git."""
    try:
        facts = forge.pull(repository, number)
        why = "no API of its host is known"
    except GoneError:
        facts, why = None, "the API of its host does not show it, though git has it"
    if facts is None:
        branch = history.default_branch(repository)
        return None, (
            f"{why}: whether it is open is not known, and it is taken to be for {branch}",
        )
    if facts.head != head:
        odd = f"its head is {head[:12]} for git and {facts.head[:12]} for the API"
        return facts, (odd, *_state(facts))
    return facts, _state(facts)


def _state(facts: PullFacts) -> tuple[str, ...]:
    if facts.state == "open":
        return ()
    if facts.state == "closed":
        return ("the pull request was closed without being merged",)
    how = "" if facts.merge_commit is None else f" by {facts.merge_commit[:12]}"
    return (f"the pull request was merged into {facts.base_ref}{how}",)


def _base(
    repository: str, head: str, facts: PullFacts | None, *, history: History, at: str
) -> tuple[str, str | None, tuple[str, ...]]:
    """Where the head left its branch; the commit that merged it, and a remark where only git
    knows that it was."""
    if facts is not None and facts.merge_commit is not None:
        return (
            _before_merge(repository, head, facts.merge_commit, history=history, at=at),
            (facts.merge_commit),
            (),
        )
    branch, tip = _branch(repository, facts, history=history, at=at)
    base = history.merge_base(repository, head, tip)
    if base is None:
        raise IntegrityError(
            f"{at}: {head} has no history in common with {branch} of {repository}",
            hint="the branch was re-rooted, or it is for another; base and head can be written into"
            " the lock",
        )
    if base != head:
        return base, None, ()
    # Merged, and git alone says so: the oldest commit of the branch that has the head as its other
    # parent.
    for commit in reversed(history.distance(repository, head, tip).ahead):
        if head in commit.parents[1:]:
            base = _before_merge(repository, head, commit.id, history=history, at=at)
            return base, commit.id, (f"{branch} has it already, by {commit.id[:12]}",)
    if head == tip:
        return base, None, ()
    raise _no_beginning(repository, head, branch, at=at)


def _branch(
    repository: str, facts: PullFacts | None, *, history: History, at: str
) -> tuple[str, str]:
    """The branch that the pull request is for, and the commit that it names."""
    if facts is None:
        branch = history.default_branch(repository)
    else:
        branch = f"refs/heads/{facts.base_ref}"
    tip = history.refs(repository).get(branch)
    if tip is None:
        raise GoneError(
            f"{at}: it is for {branch}, and {repository} has no such branch any more",
            hint="what is locked stays usable; nobody can say what the change would be now",
        )
    return branch, tip


def _before_merge(repository: str, head: str, merge: str, *, history: History, at: str) -> str:
    """Where the head left the branch, for one that ``merge`` brought in: the branch as it was
    before that has only what was there of the pull request's history."""
    parents = history.commit(repository, merge).parents
    if parents and merge != head:
        base = history.merge_base(repository, head, parents[0])
        if base is not None and base != head:
            return base
    raise _no_beginning(repository, head, merge, at=at)


def _no_beginning(repository: str, head: str, where: str, *, at: str) -> ProjectError:
    return ProjectError(
        f"{at}: {head} is in the history of {where} of {repository}, and nothing there says where"
        " the pull request began",
        hint="the base has it: leave the step out, or write base and head into the lock",
    )


def _moved(
    pin: PullPin, before: PullPin, *, history: History
) -> tuple[Distance | None, tuple[str, ...]]:
    """What lies between the old head and the new one, and what is to be said of it."""
    distance, remarks = between(pin.repository, before.head, str(pin.head), history=history)
    if before.head is not None and (distance is None or distance.behind):
        lost = f"{before.head.short} is not in the history of its new head"
        remarks = (f"the pull request was force-pushed: {lost}", *remarks)
    if before.base is not None and pin.base is not None and before.base != pin.base:
        remarks += (f"its base moved from {before.base.short} to {pin.base.short}",)
    if before.diff == pin.diff:
        remarks += ("the change itself is the same",)
    return distance, remarks
