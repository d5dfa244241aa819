"""Models and the digests that somebody publishes of their files."""

import re
from dataclasses import replace

from builder.digest import ObjectId
from builder.errors import GoneError, OfflineError
from builder.lock.model import ModelPin
from builder.models.published import Published, pinned_by
from builder.resolve.found import Resolved
from builder.resolve.models import resolve_model
from builder.upstream import Hub

_COMMIT = re.compile(r"[0-9a-f]{40}")


def resolve_with_sums(
    repository: str,
    revision: str | None,
    published: Published,
    *,
    name: str,
    hub: Hub,
    now: str,
    include: tuple[str, ...] = (),
    before: ModelPin | None = None,
) -> Resolved[ModelPin]:
    """As :func:`builder.resolve.models.resolve_model`, with the digests that are published.

    They are all there is of a commit that the hub may not be asked about, or that was pinned
    (``before``) and is gone; that is said.

    Raises:
        ProjectError: Such a commit has files without a published digest, or none is selected.
        IntegrityError: What is published is not what the hub has, or what is pinned.
    """
    try:
        return resolve_model(
            repository,
            revision,
            name=name,
            hub=hub,
            now=now,
            include=include,
            before=before,
            published=published,
        )
    except (GoneError, OfflineError) as error:
        known = before is not None or isinstance(error, OfflineError)
        if not known:
            raise
        if revision is None or not _COMMIT.fullmatch(revision):
            if isinstance(error, OfflineError):
                raise _unnamed(error, revision) from error
            raise
        pin = before or ModelPin(
            name=name, repository=repository, commit=ObjectId.parse(revision), include=include
        )
        return _by_sums(pin, published, without=error, now=now)


def _unnamed(error: OfflineError, revision: str | None) -> OfflineError:
    got = "no --revision" if revision is None else f"--revision {revision!r:.100}"
    return OfflineError(
        f"{error.message}; without it a commit is wanted, in full, got {got}",
        hint="give --revision with 40 hex digits: then the digests of --sums are taken; or run it"
        " once without --offline",
    )


def _by_sums(
    pin: ModelPin, published: Published, *, without: GoneError | OfflineError, now: str
) -> Resolved[ModelPin]:
    """Complete a pin by checksums alone: nobody has seen that they are of its commit."""
    whole = pinned_by(published, pin)
    before = {file.path for file in pin.files if file.digest is not None}
    taken = sum(file.path not in before for file in whole.files)
    why = "is not asked" if isinstance(without, OfflineError) else "has it no more"
    alone = (
        f"the hub {why}: the digests of {taken} files are {published.at}'s alone, and nobody has"
        f" seen that they are those of commit {pin.commit.short}; sizes, and which shards there"
        " must be, are not known"
    )
    return Resolved(
        pin=replace(whole, locked=now) if whole != pin else pin,
        remarks=(published.agree(whole), alone),
    )
