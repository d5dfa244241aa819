"""Pull requests whose diff somebody publishes as a file: from a source pin to the digest of the
change."""

from dataclasses import replace

from builder import diff
from builder.digest import Digest
from builder.lock.model import PullPin, SourceDiff, SourcePin
from builder.ports import Git
from builder.resolve.found import Resolved


def resolve_published(
    repository: str,
    number: int,
    published: SourceDiff,
    source: SourcePin,
    *,
    name: str,
    git: Git,
    now: str,
    before: PullPin | None = None,
) -> Resolved[PullPin]:
    """The pull request as ``source`` publishes it. It moves with its source, never alone.

    Args:
        source: The pin that has the file, as it will be locked.
        before: The pin as it is locked. The same change leaves it as it is; its root, strip and
            escrow are kept, the escrow only where the bytes are the same.

    Raises:
        PatchError: The file is no diff.
        GoneError, IntegrityError, NetworkError: The file cannot be had.
    """
    (file,) = git.files(source.repository, str(source.commit), (published.path,))
    change = diff.canonical(diff.parse(file.data, at=f"{name}: {published.path!r}"))
    raw = Digest.of(file.data)
    if before is None:
        pin = PullPin(
            name=name,
            repository=repository,
            pull=number,
            published=published,
            diff=change,
            raw=raw,
            locked=now,
        )
        return Resolved(pin=pin)
    if (before.diff, before.raw) == (change, raw):
        return Resolved(pin=before)
    remarks = ("the change is the same, the file is not",) if before.diff == change else ()
    moved = replace(before, diff=change, raw=raw, escrow=(), failing=(), locked=now)
    return Resolved(pin=moved, remarks=remarks)
