"""Models: from a revision to a commit and the digest of every file."""

from builder.lock.model import ModelPin
from builder.resolve.found import Resolved
from builder.upstream import Hub


def resolve_model(
    repository: str,
    revision: str | None,
    *,
    name: str,
    hub: Hub,
    now: str,
    include: tuple[str, ...] = (),
    before: ModelPin | None = None,
) -> Resolved[ModelPin]:
    """Pin the model at ``revision`` (a branch, tag or commit; ``None`` for what ``before`` follows,
    else ``main``): the files that ``include`` selects, each with digest and size.

    A git blob id is never taken for a sha256: files that the hub does not store by content are
    read and hashed. ``before``'s ``include``, ``require`` and ``forbid`` are kept.
    """
    raise NotImplementedError
