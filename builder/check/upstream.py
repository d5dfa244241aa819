"""What upstream says of the pinned bases now: with :mod:`builder.check.hub`, the part of ``check``
that asks the network."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, cast

from builder.check.finding import Finding, error_at, warning_at
from builder.errors import AuthError, BuilderError, GoneError, NetworkError, PolicyError
from builder.lock.model import ImagePin
from builder.oci import Descriptor, Index
from builder.origin import places_of
from builder.ports import Registry
from builder.settings.model import ExpiryPolicy
from builder.upstream import Hub
from builder.value import value


@value
class Upstream:
    """Whom to ask. ``order`` gives the tags that a pin's pattern matches, newest first; ``created``
    when its image was made, as far as that is known. They get a registry that asks once. The hub is
    made where a model is pinned."""

    registry: Registry
    make_hub: Callable[[], Hub]
    order: Callable[[ImagePin, Registry], tuple[str, ...]]
    created: Callable[[ImagePin, Registry], datetime | None]
    now: datetime


def upstream(pins: Iterable[ImagePin], asked: Upstream, policy: ExpiryPolicy) -> Iterator[Finding]:
    """Tags that moved or went, manifests that are gone, and what upstream is about to drop while
    nobody keeps it. Each tag is asked for once, by HEAD. A registry that cannot be reached is not
    tried again for the next pin."""
    asked = replace(asked, registry=_once(asked.registry))
    down: dict[str, NetworkError] = {}
    for pin in pins:
        try:
            if pin.follows.registry in down:
                raise down[pin.follows.registry]
            findings = tuple(_named(pin, asked.registry))
            yield from findings
            if not any(item.exit_status for item in findings):
                yield from _expiring(pin, asked, policy)
        except BuilderError as error:
            if isinstance(error, NetworkError) and not isinstance(error, AuthError):
                down.setdefault(pin.follows.registry, error)
            yield error_at(pin.at, error)


def _named(pin: ImagePin, registry: Registry) -> Iterator[Finding]:
    """What the tag names; what is still there by digest, where it names something else."""
    tag = pin.follows.tag
    named = None if tag is None else _tag(pin, registry)
    if named is not None:
        if _is_pinned(named, pin, registry):
            return
        yield warning_at(
            pin.at,
            f"the tag {tag!r} moved: it names {named.digest} now, the lock pins {_pinned(pin)[0]}",
            hint=f"builds go by the lock; to follow the tag: builder bump vllm {pin.name}",
        )
    for digest in _pinned(pin):
        try:
            registry.resolve(pin.follows.at(digest))
        except GoneError as error:
            yield _gone(pin, error)
            return
    if tag is not None and named is None:
        yield warning_at(
            pin.at,
            f"upstream has deleted the tag {tag!r}; the image is still there by its digest",
            hint=None if pin.escrow else "keep its bytes while they can be had: builder escrow",
        )


def _tag(pin: ImagePin, registry: Registry) -> Descriptor | None:
    try:
        return registry.resolve(replace(pin.follows, digest=None))
    except GoneError:
        return None


def _pinned(pin: ImagePin) -> tuple[Any, ...]:
    return (pin.index,) if pin.index is not None else tuple(p.manifest for _, p in pin.platforms)


def _is_pinned(named: Descriptor, pin: ImagePin, registry: Registry) -> bool:
    pinned = {*_pinned(pin), *(item.manifest for _, item in pin.platforms)}
    if named.digest in pinned:
        return True
    if pin.index is not None:
        return False
    document = registry.manifest(pin.follows.at(named.digest))
    return isinstance(document, Index) and any(item.digest in pinned for item in document.manifests)


def _gone(pin: ImagePin, error: GoneError) -> Finding:
    if not pin.escrow:
        return error_at(pin.at, error)
    kept = places_of(pin.escrow)
    return warning_at(pin.at, f"upstream has deleted it; a copy is kept at {kept}")


def _expiring(pin: ImagePin, asked: Upstream, policy: ExpiryPolicy) -> Iterator[Finding]:
    tag = pin.follows.tag
    if pin.tags is None or tag is None or pin.escrow:
        return
    tags = asked.order(pin, asked.registry)
    if tag in tags:
        place = tags.index(tag) + 1
        what = f"{tag} is number {place} of {pin.tags!r}, newest first, and upstream keeps"
        yield from _near(pin, place, policy.newest, f"{what} {policy.newest}")
    if policy.days is not None and (created := asked.created(pin, asked.registry)) is not None:
        days = (asked.now - created).days
        what = f"{tag} was made {days} days ago, and upstream keeps images for"
        yield from _near(pin, days, policy.days, f"{what} {policy.days} days")


def _near(pin: ImagePin, place: int, last: int, what: str) -> Iterator[Finding]:
    hint = f"keep its bytes: builder escrow VARIANT; or move on: builder bump vllm {pin.name}"
    if place > last:
        message = f"{pin.at}: {what}: nobody keeps its bytes, and it may be gone any day"
        yield error_at(pin.at, PolicyError(message, hint=hint))
    elif 2 * place > last:
        yield warning_at(pin.at, f"{what}: nobody keeps its bytes", hint=hint)


class _Once:
    """A registry that is asked everything once, as far as it is asked here. What it answers with an
    error may be asked again."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.resolve = cache(registry.resolve)
        self.tags = cache(registry.tags)
        self.manifest = cache(registry.manifest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)


def _once(registry: Registry) -> Registry:
    return cast("Registry", _Once(registry))
