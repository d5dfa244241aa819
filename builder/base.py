"""The base of a variant: its documents, verified against the lock, and where its layers are.

Nothing of a layer is read here. Index, manifest and config are small and are kept in the store by
digest, so that they are fetched once.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from builder import canonical
from builder.digest import Digest
from builder.errors import IntegrityError, ProjectError
from builder.oci import Descriptor, Index, Manifest, Platform, parse_document
from builder.origin import Origin
from builder.ports import Store
from builder.reference import Reference
from builder.streams import stored
from builder.value import field, value

_CONFIG_LIMIT = 16 << 20
_FIELDS = canonical.spellings(
    *("architecture", "os", "os.version", "os.features", "variant", "created", "author"),
    *("config", "rootfs", "history", "type", "diff_ids"),
)
_SETTINGS = canonical.spellings(
    *("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Volumes", "WorkingDir", "Labels"),
    *("StopSignal", "ArgsEscaped", "Healthcheck", "Shell", "OnBuild"),
)


@value
class Twin:
    """What a base is where the pinned one is gone: the same config, and so the same files, in other
    blobs. Somebody pushed it through a program that packs layers anew.

    ``of`` is the manifest that is pinned, ``place`` where the twin is.
    """

    of: Digest
    place: str

    def __str__(self) -> str:
        return f"a recompressed twin of {self.of}, at {self.place}"


@value
class Base:
    """A base image on one platform.

    ``config`` is the config's exact bytes (see :func:`config_of` for its meaning); ``reference``
    is where the lock says the image lives, ``None`` for a layout on disk; ``copies`` are registries
    of ours that keep it.
    """

    manifest: Manifest
    config: bytes = field(repr=False)
    diff_ids: tuple[Digest, ...]
    origin: Origin = field(repr=False)
    reference: Reference | None = None
    index: Digest | None = None
    files: tuple[Digest | None, ...] = ()
    """What the lock says of the layers' file indexes, bottom first; empty where it says nothing."""
    copies: tuple[Reference, ...] = field(default=(), repr=False)
    twin: Twin | None = None

    @property
    def sources(self) -> tuple[Reference, ...]:
        """The repositories that may have its blobs, for mounts and pulls; no tag is to be asked."""
        own = () if self.reference is None else (self.reference,)
        return (*own, *self.copies)


def obtain(digest: Digest, platform: Platform, *, origin: Origin, store: Store, at: str) -> Base:
    """The base whose manifest, or index, has this digest.

    Raises:
        IntegrityError: The documents contradict each other or the platform.
    """
    found = read_document(digest, origin, store)
    index: Digest | None = None
    if isinstance(found, Index):
        index = found.digest
        found = read_document(found.select(platform, at=at).digest, origin, store)
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
    and with an environment and labels of the types that the specification gives them, if any. No
    key is one of these but for its case: what is shown of an image is what an engine runs.

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
    for fields, known in (
        (value, _FIELDS),
        (value["rootfs"], _FIELDS),
        (settings or {}, _SETTINGS),
    ):
        canonical.refuse_alike(fields, known, at=at)
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


def read_document(digest: Digest, origin: Origin, store: Store) -> Manifest | Index:
    """An index or manifest by digest, fetched once.

    Raises:
        IntegrityError: It is neither.
    """
    if not store.has(digest):
        store.put(origin.document(digest))
    return parse_document(store.read(digest), media_type=None, at=f"document {digest}")


def layer_blob(descriptor: Descriptor, base: Base | None, store: Store) -> Iterator[bytes]:
    """A layer of an image: from the store, where ours are, else from the base's origin."""
    if base is None or store.has(descriptor.digest, size=descriptor.size):
        return stored(descriptor.digest, store)
    return base.origin.blob(descriptor)
