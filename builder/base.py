"""The base of a variant: its documents, verified against the lock, and where its layers are.

Nothing of a layer is read here. Index, manifest and config are small and are kept in the store by
digest, so that they are fetched once.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from builder import canonical
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError, NetworkError, ProjectError
from builder.lock.model import ImagePin
from builder.oci import Descriptor, Index, Manifest, Platform, parse_document
from builder.ports import Registry, Store
from builder.reference import Reference
from builder.value import field, value

_log = logging.getLogger(__name__)
_CONFIG_LIMIT = 16 << 20


class Origin(Protocol):
    """Where the blobs of a base come from."""

    def document(self, digest: Digest) -> bytes:
        """An index or manifest by digest, verified."""

    def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
        """A blob as a stream, verified at its end (see ``Registry.blob``)."""


@value(kw_only=False)
class RegistryOrigin:
    """A repository of a registry. ``registry`` is called when something is really fetched, so
    that a build that fetches nothing does not load a client."""

    registry: Callable[[], Registry]
    reference: Reference

    def document(self, digest: Digest) -> bytes:
        return self.registry().manifest(self.reference.at(digest)).raw

    def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
        return self.registry().blob(self.reference, descriptor)


@value
class Base:
    """A base image on one platform.

    ``config`` is the config's exact bytes (see :func:`config_of` for its meaning); ``reference``
    is where the lock says the image lives, ``None`` for a layout on disk.
    """

    manifest: Manifest
    config: bytes = field(repr=False)
    diff_ids: tuple[Digest, ...]
    origin: Origin = field(repr=False)
    reference: Reference | None = None
    index: Digest | None = None
    files: tuple[Digest | None, ...] = ()
    """What the lock says of the layers' file indexes, bottom first; empty where it says nothing."""


def obtain_pinned(
    pin: ImagePin, platform: Platform, *, store: Store, registry: Callable[[], Registry]
) -> Base:
    """The base that a lock entry pins.

    Raises:
        IntegrityError: What was fetched contradicts the lock: another config, other layers or
            diff_ids, a manifest that is not a member of the pinned index.
        ProjectError: The lock has neither an index nor this platform.
        GoneError, NetworkError: A document is not in the store and cannot be had; the message
            names the pin, the hint whoever keeps its bytes.
    """
    try:
        return _obtain_pinned(pin, platform, RegistryOrigin(registry, pin.follows), store)
    except GoneError as error:
        raise GoneError(f"{pin.at}: {error.message}", hint=_copies(pin)) from error
    except NetworkError as error:
        hint = error.hint
        if hint == NetworkError.usual_hint:  # others know better
            hint = f"try again; {_copies(pin)}"
        raise type(error)(f"{pin.at}: {error.message}", hint=hint) from error


def _copies(pin: ImagePin) -> str:
    """Where else the bytes of a base may be, which is what helps once upstream has deleted it."""
    mirror = f"name it as a mirror of {pin.follows.registry} in builder.yaml"
    if pin.escrow:
        places = ", ".join(str(item.registry or item.layout) for item in pin.escrow)
        return f"a copy is kept at {places}: {mirror}"
    return (
        f"the lock names no copy ('escrow' of {pin.name!r}): from a place that still has the image,"
        f" skopeo copy --all --preserve-digests it to a registry, and {mirror}"
    )


def _obtain_pinned(pin: ImagePin, platform: Platform, origin: RegistryOrigin, store: Store) -> Base:
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
    files = () if known is None else tuple(layer.files for layer in known.layers)
    return replace(base, reference=pin.follows, index=pin.index, files=files)


def _member(
    pin: ImagePin, platform: Platform, origin: RegistryOrigin, store: Store
) -> Digest | None:
    """What the pinned index has for a platform; ``None`` where upstream has deleted the index and
    the lock can do without it."""
    assert pin.index is not None
    try:
        index = document(pin.index, origin, store)
    except GoneError as error:
        if pin.platform(platform) is None:
            raise
        _log.warning("%s: the pinned index is gone (%s), going by the manifest", pin.at, error)
        return None
    if isinstance(index, Index):
        return index.select(platform, at=f"{pin.at}: index {pin.index}").digest
    return index.digest


def obtain(digest: Digest, platform: Platform, *, origin: Origin, store: Store, at: str) -> Base:
    """The base whose manifest, or index, has this digest.

    Raises:
        IntegrityError: The documents contradict each other or the platform.
    """
    found = document(digest, origin, store)
    index: Digest | None = None
    if isinstance(found, Index):
        index = found.digest
        found = document(found.select(platform, at=at).digest, origin, store)
    if not isinstance(found, Manifest):
        raise IntegrityError(f"{at}: an index inside an index")
    config = raw_config(found, origin=origin, store=store, at=at)
    value = config_of(config, at=f"{at}: config {found.config.digest}")
    declared = (value.get("os"), value.get("architecture"))
    if declared != (platform.os, platform.architecture):
        raise IntegrityError(
            f"{at}: the image is for platform {'/'.join(map(str, declared))!r}, wanted"
            f" {str(platform)!r}",
            hint="choose the image's with --platform",
        )
    diff_ids = _diff_ids(value, at=f"{at}: config {found.config.digest}: rootfs.diff_ids")
    if len(diff_ids) != len(found.layers):
        raise IntegrityError(
            f"{at}: the manifest has {len(found.layers)} layers, the config"
            f" {len(diff_ids)} diff_ids"
        )
    return Base(manifest=found, config=config, diff_ids=diff_ids, origin=origin, index=index)


def raw_config(manifest: Manifest, *, origin: Origin, store: Store, at: str) -> bytes:
    """The bytes of a manifest's config, fetched once.

    Raises:
        IntegrityError: It is too large.
    """
    config = manifest.config
    if config.size > _CONFIG_LIMIT:
        raise IntegrityError(f"{at}: a config of {config.size} bytes, the limit is {_CONFIG_LIMIT}")
    if not store.has(config.digest):
        store.put(b"".join(origin.blob(config)))
    return store.read(config.digest, limit=_CONFIG_LIMIT)


def _diff_ids(config: dict[str, Any], *, at: str) -> tuple[Digest, ...]:
    try:
        return tuple(Digest.parse(item, at=at) for item in config["rootfs"]["diff_ids"])
    except ProjectError as error:  # the same spelling rule, but not a file of the user's
        raise IntegrityError(error.message) from error


def config_of(raw: bytes, *, at: str) -> dict[str, Any]:
    """An image config as a JSON object with a ``rootfs.diff_ids`` list (image-spec, config.md),
    and with an environment and labels of the types that the specification gives them, if any.

    Raises:
        IntegrityError: It is something else.
    """
    value = canonical.decode(raw, at=at)
    rootfs = value.get("rootfs") if isinstance(value, dict) else None
    diff_ids = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
    if not isinstance(diff_ids, list) or not all(isinstance(item, str) for item in diff_ids):
        raise IntegrityError(f"{at}: not an image config: no rootfs.diff_ids")
    settings = value.get("config")
    if settings is not None and not isinstance(settings, dict):
        raise IntegrityError(f"{at}: not an image config: 'config' is {settings!r}")
    _check_settings(settings or {}, at=at)
    return dict(value)


def _check_settings(settings: Mapping[str, Any], *, at: str) -> None:
    """What we read or add to; the rest goes through as it is."""
    environment, labels = settings.get("Env"), settings.get("Labels")
    if environment is not None and not (
        isinstance(environment, list) and all(isinstance(item, str) for item in environment)
    ):
        raise IntegrityError(f"{at}: config.Env: expected a list of strings, got {environment!r}")
    if labels is not None and not (
        isinstance(labels, dict) and all(isinstance(text, str) for text in labels.values())
    ):
        raise IntegrityError(f"{at}: config.Labels: expected an object of strings, got {labels!r}")


def environment(config: bytes) -> dict[str, str]:
    """The environment that an image's config sets."""
    settings = config_of(config, at="config").get("config") or {}
    pairs = (item.partition("=") for item in settings.get("Env") or ())
    return {name: value for name, _, value in pairs}


def labels_of(config: bytes) -> dict[str, str]:
    """The labels that an image's config sets."""
    settings = config_of(config, at="config").get("config") or {}
    return dict(settings.get("Labels") or {})


def document(digest: Digest, origin: Origin, store: Store) -> Manifest | Index:
    """An index or manifest by digest, fetched once.

    Raises:
        IntegrityError: It is neither.
    """
    if not store.has(digest):
        store.put(origin.document(digest))
    return parse_document(store.read(digest), media_type=None, at=f"document {digest}")


def _compare(base: Base, config: Digest | None, layers: tuple[Any, ...], *, at: str) -> None:
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
        if wanted != (layer.digest, layer.size, diff_id):
            raise IntegrityError(
                f"{at}: layer {number}: the lock pins {pin.digest} ({pin.size} bytes, diff_id"
                f" {pin.diff_id}), the image has {layer.digest} ({layer.size} bytes, diff_id"
                f" {diff_id})"
            )
