"""What the hub says of the pinned models now: part of what ``check --upstream`` asks."""

from collections.abc import Callable, Iterable, Iterator

from builder.check.finding import Finding, error_at, warning_at
from builder.digest import Digest
from builder.errors import AuthError, BuilderError, GoneError, IntegrityError, NetworkError
from builder.lock.model import ModelFile, ModelPin
from builder.models.standing import Standing, standing
from builder.upstream import Hub

_PROBE_LIMIT = 1 << 20
"""The largest file that is read to see whether files of a model can be had."""
_AT_HAND = "files that are here still verify: builder models verify"


def hub_models(pins: Iterable[ModelPin], make_hub: Callable[[], Hub]) -> Iterator[Finding]:
    """Models that were renamed, commits that are gone, branches that moved, and files that this
    user may not read. A hub that cannot be reached is not tried again for the next pin."""
    down: NetworkError | None = None
    for pin in pins:
        try:
            if down is not None:
                raise down
            yield from _told(pin, make_hub())
        except BuilderError as error:
            if isinstance(error, NetworkError) and not isinstance(error, AuthError):
                down = error
            yield error_at(pin.at, error)


def _told(pin: ModelPin, hub: Hub) -> Iterator[Finding]:
    found = standing(pin, hub=hub)
    if found.repository != pin.repository:
        yield warning_at(
            pin.at,
            found.renamed,
            hint=f"the lock keeps the old name; to take the new one: remove the pin, then builder"
            f" add model {found.repository} --name {pin.name}",
        )
    if found.gone:
        yield _gone(pin, found)
    else:
        yield from _moved(pin, hub)
    yield from _readable(pin, found, hub)


def _gone(pin: ModelPin, found: Standing) -> Finding:
    hint = f"{_AT_HAND}; to take what is there now: builder bump model {pin.name}"
    if found.differing or not pin.files:
        return error_at(pin.at, GoneError(f"{pin.at}: {found.squashed}", hint=hint))
    return warning_at(pin.at, found.squashed, hint=hint)


def _moved(pin: ModelPin, hub: Hub) -> Iterator[Finding]:
    """What the pin follows, where its commit is still there."""
    if pin.follows is None or pin.follows == pin.commit.hex:
        return
    try:
        now = hub.revision(pin.repository, pin.follows)
    except GoneError:
        yield warning_at(
            pin.at,
            f"the hub has no revision {pin.follows!r} any more; the commit is still there",
            hint="name another one: builder bump model " + pin.name + " REVISION",
        )
        return
    if now.commit != pin.commit.hex:
        yield warning_at(
            pin.at,
            f"{pin.follows!r} moved: it is at {now.commit[:12]} now, the lock pins"
            f" {pin.commit.short}",
            hint=f"fetches go by the lock; to follow it: builder bump model {pin.name}",
        )


def _readable(pin: ModelPin, found: Standing, hub: Hub) -> Iterator[Finding]:
    """Whether files can be had: the hub tells everybody of a gated model, and hands out nothing.
    The smallest file is read, and held to the lock."""
    file = _smallest(pin, found)
    if file is None:
        return
    data = hub.read(pin.repository, found.commit, file.path, limit=_PROBE_LIMIT)
    if (got := Digest.of(data)) != file.digest:
        yield error_at(
            pin.at,
            IntegrityError(
                f"{pin.at}: {file.path}: expected {file.digest}, the hub has {got} under the same"
                " commit"
            ),
        )


def _smallest(pin: ModelPin, found: Standing) -> ModelFile | None:
    sizes = {
        file.path: file
        for file in pin.files
        if file.digest is not None
        and file.size is not None
        and file.size <= _PROBE_LIMIT
        and file.path not in found.differing
    }
    return min(sizes.values(), key=lambda file: (file.size or 0, file.path), default=None)
