"""Files of other repositories: from a commit, a branch or a tag to the digests of the files."""

from builder.lock.model import SourcePin
from builder.ports import Git
from builder.resolve.found import Resolved
from builder.upstream import History


def resolve_source(
    repository: str,
    target: str | None,
    paths: tuple[str, ...],
    *,
    name: str,
    follows: str | None,
    git: Git,
    history: History,
    now: str,
    before: SourcePin | None = None,
) -> Resolved[SourcePin]:
    """Pin ``paths`` at ``target``: a full commit id, a branch or a tag; ``None`` for what
    ``follows`` names now.

    Raises:
        ProjectError: A short id, or a name that is both a branch and a tag.
        GoneError: There is no such commit, branch or tag.
        IntegrityError: A path is not a file there.
    """
    raise NotImplementedError
