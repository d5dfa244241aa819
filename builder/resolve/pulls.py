"""Pull requests: from a number to two commits and the digest of the change between them."""

from builder.lock.model import PullPin
from builder.ports import Git
from builder.resolve.found import Resolved
from builder.upstream import Forge, History


def resolve_pull(
    repository: str,
    number: int,
    *,
    name: str,
    git: Git,
    history: History,
    forge: Forge,
    now: str,
    before: PullPin | None = None,
) -> Resolved[PullPin]:
    """The pull request as it is now: its head, and where that left the branch that it is for.

    That it was closed, merged or force-pushed since ``before`` is a remark; ``before``'s root,
    strip and escrow are kept, the escrow only where the change is the same. A pin of a published
    diff does not move here.

    Raises:
        ProjectError: ``before`` is of a published diff.
        GoneError: There is no such pull request.
    """
    raise NotImplementedError
