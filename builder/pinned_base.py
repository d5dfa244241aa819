"""The base that a lock entry pins: from where it is followed, else from a copy of ours, and held to
all that the lock says of it."""

import logging
from collections.abc import Callable
from dataclasses import replace

from builder.base import Base, Twin, obtain, read_document
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError, NetworkError, OfflineError, ProjectError
from builder.lock.model import ImagePin, LayerPin, PlatformPin
from builder.oci import Index, Platform
from builder.origin import (
    Absent,
    Copies,
    KeptOrigin,
    OpenCopy,
    Origin,
    RegistryOrigin,
    offline_hint,
    place_of,
    with_copies,
)
from builder.ports import Registry, Store

_log = logging.getLogger(__name__)


def obtain_pinned(
    pin: ImagePin,
    platform: Platform,
    *,
    store: Store,
    registry: Callable[[], Registry],
    open_copy: OpenCopy,
) -> Base:
    """The base that a lock entry pins: from where it is followed, or from the copies in the lock
    once that says *gone*, or may not be asked.

    Where no copy has the pinned manifest, one that has a twin of it will do: the lock's ``escrow``
    names its digest, and the config is the pinned one.

    Raises:
        IntegrityError: What was fetched contradicts the lock: another config, other layers or
            diff_ids, a manifest that is not a member of the pinned index.
        ProjectError: The lock has neither an index nor this platform.
        GoneError, NetworkError: A document is not in the store and cannot be had; the message
            names the pin, the hint whoever keeps its bytes.
    """
    copies = Copies(pin.escrow, open_copy=open_copy, at=pin.at)
    origin = KeptOrigin(RegistryOrigin(registry, pin.follows), copies)
    try:
        try:
            return _obtain_pinned(pin, platform, origin, store)
        except (GoneError, OfflineError) as absent:
            return _twin(pin, platform, absent, copies, store)
    except GoneError as error:
        raise GoneError(f"{pin.at}: {error.message}", hint=_kept(pin, error)) from error
    except OfflineError as error:  # what was asked instead is told
        hint = error.hint if pin.escrow else offline_hint(error.hint, ())
        raise OfflineError(f"{pin.at}: {error.message}", hint=hint) from error
    except NetworkError as error:
        hint = error.hint
        if hint == NetworkError.usual_hint:  # others know better
            hint = _asked_again(pin.follows.registry)
        raise type(error)(
            f"{pin.at}: {error.message}", hint=with_copies(hint, pin.escrow)
        ) from error


def _asked_again(registry: str) -> str:
    """What helps where a registry does not answer. Of a name that nobody can have, nothing does."""
    if registry.endswith(".invalid"):
        return (
            f"{registry} stands for a registry of yours: BUILDER_MIRRORS={registry}=HOST, or"
            " registries in builder.yaml, says which"
        )
    return "try again"


def _kept(pin: ImagePin, error: GoneError) -> str | None:
    """What helps once upstream has deleted a base."""
    if pin.escrow:
        return error.hint
    return (
        f"nobody keeps a copy of {pin.name!r}: name a place that still has it as a mirror of"
        f" {pin.follows.registry} in builder.yaml, then: builder escrow"
    )


def _twin(pin: ImagePin, platform: Platform, absent: Absent, copies: Copies, store: Store) -> Base:
    known = pin.platform(platform)
    if known is None or known.config is None:
        raise absent  # nothing to know a twin by
    others = Copies(
        [item for item in copies.copies if item.digest not in (pin.index, known.manifest)],
        open_copy=copies.open_copy,
        at=pin.at,
    )
    base, copy = others.instead(
        absent,
        lambda copy, origin: (
            obtain(copy.digest, platform, origin=origin, store=store, at=pin.at),
            copy,
        ),
    )
    _compare(base, known.config, known.layers, at=f"{pin.at}: {place_of(copy)}", as_twin=True)
    _log.warning(
        "%s: manifest %s is a recompressed twin of %s: the same config %s, other blobs; images on"
        " it have the same files and another digest",
        pin.at,
        base.manifest.digest,
        known.manifest,
        known.config,
    )
    twin = Twin(of=known.manifest, place=place_of(copy))
    return replace(base, reference=copy.registry, index=None, files=_files(known), twin=twin)


def _obtain_pinned(pin: ImagePin, platform: Platform, origin: Origin, store: Store) -> Base:
    known = pin.platform(platform)
    manifest_digest = None if known is None else known.manifest
    if pin.index is not None:
        member = _member(pin, platform, origin, store)
        if manifest_digest is not None and member not in (None, manifest_digest):
            raise IntegrityError(
                f"{pin.at}: the lock pins manifest {manifest_digest} for {platform}, the pinned"
                f" index has {member}"
            )
        manifest_digest = manifest_digest or member
    if manifest_digest is None:
        have = ", ".join(str(item) for item, _ in pin.platforms)
        raise ProjectError(
            f"{pin.at}: no manifest is pinned for platform {str(platform)!r}, it has: {have}",
            hint="choose another with --platform, or lock this one",
        )
    base = obtain(manifest_digest, platform, origin=origin, store=store, at=pin.at)
    if known is not None:
        _compare(base, known.config, known.layers, at=pin.at)
    registries = (item.registry for item in pin.escrow if item.registry is not None)
    return replace(
        base,
        reference=pin.follows,
        index=pin.index,
        files=_files(known),
        copies=tuple(dict.fromkeys(registries)),
    )


def _files(known: PlatformPin | None) -> tuple[Digest | None, ...]:
    return () if known is None else tuple(layer.files for layer in known.layers)


def _member(pin: ImagePin, platform: Platform, origin: Origin, store: Store) -> Digest | None:
    """What the pinned index has for a platform; ``None`` where it cannot be had and the lock can do
    without it."""
    assert pin.index is not None
    try:
        index = read_document(pin.index, origin, store)
    except (GoneError, OfflineError) as error:
        if pin.platform(platform) is None:
            raise
        why = "out of reach" if isinstance(error, OfflineError) else "gone"
        _log.warning("%s: the pinned index is %s (%s), going by the manifest", pin.at, why, error)
        return None
    if isinstance(index, Index):
        return index.select(platform, at=f"{pin.at}: index {pin.index}").digest
    return index.digest


def _compare(
    base: Base,
    config: Digest | None,
    layers: tuple[LayerPin, ...],
    *,
    at: str,
    as_twin: bool = False,
) -> None:
    """Hold a base to the lock; ``as_twin``: but for how its layers are packed."""
    if config is not None and config != base.manifest.config.digest:
        raise IntegrityError(
            f"{at}: the lock pins config {config}, the manifest has {base.manifest.config.digest}"
        )
    if not layers:
        return
    found = list(zip(base.manifest.layers, base.diff_ids, strict=True))
    if len(found) != len(layers):
        raise IntegrityError(
            f"{at}: the lock pins {len(layers)} layers, the manifest has {len(found)}"
        )
    for number, (pin, (layer, diff_id)) in enumerate(zip(layers, found, strict=True)):
        wanted = (pin.digest, pin.size, pin.diff_id or diff_id)
        got = (pin.digest, pin.size, diff_id) if as_twin else (layer.digest, layer.size, diff_id)
        if wanted != got:
            raise IntegrityError(
                f"{at}: layer {number}: the lock pins {pin.digest} ({pin.size} bytes, diff_id"
                f" {pin.diff_id}), the image has {layer.digest} ({layer.size} bytes, diff_id"
                f" {diff_id})"
            )
