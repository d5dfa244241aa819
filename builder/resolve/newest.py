"""Which of some tags is the newest. Their names have no order; what they name may have."""

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from builder import base as bases
from builder.digest import Digest
from builder.errors import GoneError, ProjectError
from builder.lock.model import ImagePin
from builder.oci import Index, Platform
from builder.origin import RegistryOrigin
from builder.ports import Registry, Store
from builder.reference import Reference
from builder.upstream import History
from builder.value import value

_log = logging.getLogger(__name__)

_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""In full. What an abbreviation stands for changes as the repository grows."""
_FIRST_IMAGES = datetime(2013, 3, 1, tzinfo=UTC)
"""Docker is of that month. Earlier times are what reproducible builds write: none."""
_SHOWN = 3


@value
class _Dated:
    """A tag, and when what it names was made. ``identity`` is equal for two names of one thing."""

    tag: str
    time: float
    identity: str


def newest_tag(
    pin: ImagePin,
    *,
    platform: Platform,
    registry: Registry,
    store: Store,
    history: History,
) -> Reference:
    """The newest of the tags that ``pin.tags`` matches and that have an image for ``platform``.
    Names have no order: the commits that they are named by have (``pin.commits``), or the times at
    which the images were made.

    The list is asked for once. By commits, the candidates are looked at from the newest down, until
    one is for ``platform``; by time, each is asked for by HEAD, and documents that are in the store
    are not fetched again. What has to be left out is a warning of the log: a tag that is gone by
    then or names no commit that the repository has, an image that lacks the platform.

    Raises:
        ProjectError: The pin follows no tags; none matches; or nothing says which is the newest.
        GoneError, AuthError, RateLimitError, NetworkError, OfflineError.
    """
    dated = _dated(pin, platform=platform, registry=registry, store=store, history=history)
    while dated:
        first = [item for item in dated if item.time == dated[0].time]
        chosen = _one(first, pin, history)
        reference = replace(pin.follows, tag=chosen.tag, digest=None)
        if pin.commits is None or _is_for(reference, platform, registry, store):
            return reference
        dated = [item for item in dated if item is not chosen]
    raise ProjectError(f"{_at(pin)}: none of the tags {pin.tags!r} has an image for {platform}")


def ordered_tags(
    pin: ImagePin,
    *,
    platform: Platform,
    registry: Registry,
    store: Store,
    history: History,
) -> tuple[str, ...]:
    """The tags that ``pin.tags`` matches, newest first, as far as they have a place in the order:
    see :func:`newest_tag` for where it comes from and what is left out. Ordered by commits, no
    image is asked for, and so none is left out for its platforms. Tags of one time are in the order
    of their names.

    Raises:
        As :func:`newest_tag`, except that it is no error where two tags have one time.
    """
    dated = _dated(pin, platform=platform, registry=registry, store=store, history=history)
    return tuple(item.tag for item in dated)


def _dated(
    pin: ImagePin, *, platform: Platform, registry: Registry, store: Store, history: History
) -> list[_Dated]:
    """Newest first, at least one."""
    candidates = _candidates(pin, registry.tags(pin.follows))
    if pin.commits is not None:
        dated = _by_commit(candidates, pin, history)
    else:
        dated = _by_creation(candidates.keys(), pin, platform, registry, store)
    return sorted(dated, key=lambda item: (-item.time, item.tag))


def _candidates(pin: ImagePin, tags: Iterable[str]) -> dict[str, str]:
    """The tags that match, and what stands for the ``*`` in each."""
    if pin.tags is None:
        raise ProjectError(
            f"{_at(pin)}: follows the one tag {pin.follows.tag!r}, so that there is no newest",
            hint="name the tag, or write tags: 'nightly-*' under follows",
        )
    start, _, end = pin.tags.partition("*")
    found = {
        tag: tag[len(start) : len(tag) - len(end)]
        for tag in tags
        if tag.startswith(start) and tag.endswith(end) and len(tag) > len(start) + len(end)
    }
    if not found:
        raise ProjectError(
            f"{_at(pin)}: {pin.follows.name} has no tag {pin.tags!r}",
            hint="look at its tags: skopeo list-tags docker://" + pin.follows.name,
        )
    return found


def _by_commit(candidates: dict[str, str], pin: ImagePin, history: History) -> list[_Dated]:
    assert pin.commits is not None
    _fetch_history(pin.commits, history)
    dated: list[_Dated] = []
    strange, unknown = [], []
    for tag, part in candidates.items():
        if not _ID.fullmatch(part):
            strange.append(tag)
            continue
        try:
            commit = history.commit(pin.commits, part)
        except GoneError:
            unknown.append(tag)
            continue
        dated.append(_Dated(tag=tag, time=commit.time, identity=commit.id))
    _leave_out(pin, strange, "not named by a commit in full")
    _leave_out(pin, unknown, f"of a commit that {pin.commits} does not have")
    if not dated:
        raise ProjectError(
            f"{_at(pin)}: none of the {len(candidates)} tags {pin.tags!r} is named by a commit of"
            f" {pin.commits}, in full",
            hint="correct 'commits' under follows, or leave it out to go by when images were made",
        )
    return dated


def _fetch_history(repository: str, history: History) -> None:
    """Have the default branch at hand: one fetch instead of one for each tag."""
    head = history.refs(repository).get("HEAD")
    if head is not None:
        try:
            history.commit(repository, head)
        except GoneError as error:  # a mirror that is behind; each commit is asked for below
            _log.debug("no default branch: %s", error.message)


def _by_creation(
    tags: Iterable[str], pin: ImagePin, platform: Platform, registry: Registry, store: Store
) -> list[_Dated]:
    dated: list[_Dated] = []
    gone, lacking, undated = [], [], []
    for tag in tags:
        reference = replace(pin.follows, tag=tag, digest=None)
        try:
            digest = registry.resolve(reference).digest
            config = _config(digest, reference, platform, registry, store)
        except GoneError:
            gone.append(tag)
            continue
        if config is None:
            lacking.append(tag)
        elif (time := creation(config, at=str(reference))) is None:
            undated.append(tag)
        else:
            dated.append(_Dated(tag=tag, time=time.timestamp(), identity=str(digest)))
    _leave_out(pin, gone, "gone, or not whole")
    _leave_out(pin, lacking, f"no image for {platform}")
    if undated:
        raise _guess(pin, undated, "no time at which it was made")
    if not dated:
        raise ProjectError(f"{_at(pin)}: none of the tags {pin.tags!r} has an image for {platform}")
    return dated


def _config(
    digest: Digest, reference: Reference, platform: Platform, registry: Registry, store: Store
) -> bytes | None:
    """The config of an image on a platform, ``None`` where it is not for it."""
    origin = RegistryOrigin(lambda: registry, reference)
    document = bases.read_document(digest, origin, store)
    if isinstance(document, Index):
        if not any(
            item.platform is not None
            and platform in (item.platform, Platform(item.platform.os, item.platform.architecture))
            for item in document.manifests
        ):
            return None
        return bases.obtain(digest, platform, origin=origin, store=store, at=str(reference)).config
    raw = bases.raw_config(document, origin=origin, store=store, at=str(reference))
    value = bases.config_of(raw, at=f"{reference}: config {document.config.digest}")
    same = (value.get("os"), value.get("architecture")) == (platform.os, platform.architecture)
    return raw if same else None


def _is_for(reference: Reference, platform: Platform, registry: Registry, store: Store) -> bool:
    try:
        digest = registry.resolve(reference).digest
        if _config(digest, reference, platform, registry, store) is not None:
            return True
    except GoneError as error:
        _log.warning("%s is left out: %s", reference, error.message)
        return False
    _log.warning("%s is left out: it has no image for %s", reference, platform)
    return False


def creation(config: bytes, *, at: str) -> datetime | None:
    """When an image was made, by its config (image-spec, config.md: RFC 3339, optional)."""
    text = bases.config_of(config, at=f"{at}: config").get("created")
    try:
        time = datetime.fromisoformat(str(text).upper())
    except ValueError:
        return None
    if time.tzinfo is None or time < _FIRST_IMAGES:
        return None
    return time


def _one(first: list[_Dated], pin: ImagePin, history: History) -> _Dated:
    """The newest of those of one time: they must be one thing, or each other's history."""
    for item in first:
        others = [other for other in first if other.identity != item.identity]
        if all(
            pin.commits is not None
            and history.is_ancestor(pin.commits, other.identity, item.identity)
            for other in others
        ):
            return item
    raise _guess(pin, [item.tag for item in first], "of one time")


def _guess(pin: ImagePin, tags: list[str], what: str) -> ProjectError:
    return ProjectError(
        f"{_at(pin)}: nothing says which of the tags {pin.tags!r} is the newest;"
        f" {what}: {_listed(tags)}",
        hint="name the tag; or write commits: REPOSITORY under follows, where the tags are named by"
        " its commits",
    )


def _leave_out(pin: ImagePin, tags: list[str], what: str) -> None:
    if tags:
        _log.warning("%s: left out, %s: %s", _at(pin), what, _listed(tags))


def _listed(tags: list[str]) -> str:
    shown = ", ".join(tags[:_SHOWN])
    return f"{shown} and {len(tags) - _SHOWN} more" if len(tags) > _SHOWN else shown


def _at(pin: ImagePin) -> str:
    return pin.at or pin.name
