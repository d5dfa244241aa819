"""The Genesis patch set: from a commit, branch or tag to its trees and the refs that lead to it."""

from builder.lock.model import GenesisPin
from builder.ports import Git
from builder.resolve.found import Resolved
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
    """Pin the patch set at ``target``: a full commit id, a branch, a tag; ``None`` for what
    ``follows`` names now. Payload and plugin are where the era has them (:mod:`builder.genesis`).

    A commit that no ref of the repository leads to may come from anybody's fork: a remark says so.

    Raises:
        ProjectError: A short id (the hint has the full ones that it may mean), an ambiguous name.
        GoneError: There is no such commit, branch or tag.
        IntegrityError: The commit has no payload of an era that is known.
    """
    raise NotImplementedError
