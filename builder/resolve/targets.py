"""From what a person writes for a commit to the commit: a full id, a branch, a tag, a pull."""

import difflib
import re
from collections.abc import Mapping

from builder.errors import GoneError, ProjectError
from builder.upstream import History
from builder.value import value

_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HEX = re.compile(r"[0-9a-fA-F]{4,64}")
_PULL = re.compile(r"(?:refs/)?pull/([1-9][0-9]*)(?:/head)?")
_SHOWN = 5


@value
class Target:
    """A commit, and the full name of the ref that led to it; ``None`` where its id was given."""

    commit: str
    ref: str | None = None

    @property
    def is_branch(self) -> bool:
        return self.ref is not None and self.ref.startswith("refs/heads/")

    @property
    def is_tag(self) -> bool:
        return self.ref is not None and self.ref.startswith("refs/tags/")


def find_target(repository: str, target: str | None, *, history: History, at: str) -> Target:
    """The commit that ``target`` means in a repository now.

    A full id, a branch, a tag (the commit behind it), a full ref, ``HEAD``, ``pull/N``. Nothing is
    guessed: a short id, and a name that stands for more than one ref, are refused.

    Args:
        repository: The repository.
        target: What a person wrote, or what a pin follows; ``None`` for nothing.
        history: Its refs and commits.
        at: The pin, for messages.

    Raises:
        ProjectError: No target, a short id, an ambiguous name.
        GoneError: The remote answers, and has no such commit, branch or tag.
        IntegrityError: It stands for something that is not a commit.
    """
    if target is None:
        raise ProjectError(
            f"{at}: follows no ref, so that nothing is newer",
            hint="say which commit, branch or tag",
        )
    if _FULL_ID.fullmatch(target):
        return Target(commit=history.commit(repository, target).id)
    refs = history.refs(repository)
    names = [name for name in _candidates(target) if name in refs]
    if len(names) > 1:
        raise ProjectError(
            f"{at}: {target!r} is more than one ref of {repository}",
            hint=f"write {' or '.join(names)}",
        )
    if names:
        return Target(commit=history.commit(repository, refs[names[0]]).id, ref=names[0])
    if _HEX.fullmatch(target):
        raise _short(repository, target, refs, at=at)
    raise GoneError(
        f"{at}: {repository} has no branch, tag or pull request {target!r}",
        hint=_nearest(target, refs),
    )


def _candidates(target: str) -> tuple[str, ...]:
    if target == "HEAD":
        return (target,)
    pull = _PULL.fullmatch(target)
    named = (f"refs/pull/{pull[1]}/head",) if pull else ()
    if target.startswith("refs/"):
        return named or (target,)
    return (f"refs/heads/{target}", f"refs/tags/{target}", *named)


def _short(repository: str, target: str, refs: Mapping[str, str], *, at: str) -> ProjectError:
    if len(target) in (40, 64):
        return ProjectError(
            f"{at}: {target!r} is not how git writes an id", hint=f"write {target.lower()}"
        )
    fit: dict[str, str] = {}
    for name, commit in refs.items():
        if name != "HEAD" and commit.startswith(target.lower()):
            fit.setdefault(commit, name)
    may = [f"{commit} ({name})" for commit, name in list(fit.items())[:_SHOWN]]
    more = f" and {len(fit) - _SHOWN} more" if len(fit) > _SHOWN else ""
    return ProjectError(
        f"{at}: {target!r} is a short id, which can change its meaning; wanted all 40 digits",
        hint=f"of the refs of {repository} it may mean {', '.join(may)}{more}"
        if may
        else f"no ref of {repository} is at such a commit; its page or git rev-parse has the full"
        " id",
    )


def _nearest(target: str, refs: Mapping[str, str]) -> str:
    short = {re.sub(r"^refs/(heads|tags)/|^refs/(?=pull/)", "", name): name for name in refs}
    near = difflib.get_close_matches(target, short, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "git ls-remote shows what there is"
