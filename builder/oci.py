# budget: the documents of two specifications, which make sense side by side.
"""Descriptors, manifests, indexes: the OCI image and Docker schema 2 documents, as values.

Foreign documents keep their exact bytes (``raw``): what we hash, push and sign is what we were
given. Unknown fields are left alone; fields that we act on are checked.

Sources: OCI image-spec v1.1 (descriptor.md, manifest.md, image-index.md), Docker Registry
"Image Manifest Version 2, Schema 2".
"""

from enum import Enum
from typing import Any, Self

from builder import canonical
from builder.digest import Digest
from builder.errors import IntegrityError, UsageError
from builder.quoting import plain
from builder.value import field, value

MANIFEST_LIMIT = 4 << 20
"""The most bytes a manifest or index may have (distribution-spec, "Pushing Manifests")."""

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_EMPTY = "application/vnd.oci.empty.v1+json"
"""The type of the two bytes ``{}``: a config, or a layer, that says nothing."""
OCI_LAYER_TAR = "application/vnd.oci.image.layer.v1.tar"
OCI_LAYER_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
OCI_LAYER_ZSTD = "application/vnd.oci.image.layer.v1.tar+zstd"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER_GZIP = "application/vnd.docker.image.rootfs.diff.tar.gzip"

FIELDS = canonical.spellings(
    *("schemaVersion", "mediaType", "artifactType", "config", "layers", "manifests", "subject"),
    *("annotations", "digest", "size", "urls", "data", "platform", "os", "architecture"),
    *("variant", "os.version", "os.features", "features"),
)
"""What the fields of documents, descriptors and platforms are called."""
INDEX_TYPES = frozenset({OCI_INDEX, DOCKER_INDEX})
MANIFEST_TYPES = frozenset({OCI_MANIFEST, DOCKER_MANIFEST})


class Family(Enum):
    """The two sets of media types. An image keeps its base's, so that no client sees a mixture."""

    OCI = "oci"
    DOCKER = "docker"

    @property
    def manifest(self) -> str:
        return OCI_MANIFEST if self is Family.OCI else DOCKER_MANIFEST

    @property
    def config(self) -> str:
        return OCI_CONFIG if self is Family.OCI else DOCKER_CONFIG

    @property
    def layer(self) -> str:
        """The media type of a gzip layer."""
        return OCI_LAYER_GZIP if self is Family.OCI else DOCKER_LAYER_GZIP


@value(kw_only=False, order=True)
class Platform:
    """``os/architecture[/variant]``, in Go's names."""

    os: str
    architecture: str
    variant: str | None = None

    @classmethod
    def parse(cls, text: str, *, at: str = "platform") -> Self:
        """Read ``linux/amd64`` or ``linux/arm64/v8``.

        Raises:
            UsageError: Another number of parts, an empty part.
        """
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise UsageError(
                f"{at}: expected os/architecture, got {text!r}", hint="for example linux/amd64"
            )
        return cls(*parts)

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


@value
class Descriptor:
    """A typed, sized reference to content (image-spec, descriptor.md).

    ``extra`` holds the fields that we do not act on (urls, artifactType, those of the platform,
    ...), as they were, so that a base's descriptors go into our manifest unchanged.
    """

    media_type: str
    digest: Digest
    size: int
    platform: Platform | None = None
    annotations: tuple[tuple[str, str], ...] = ()
    extra: tuple[tuple[str, Any], ...] = field(default=(), repr=False, hash=False)

    @classmethod
    def parse(cls, value: object, *, at: str) -> Self:
        """Read one descriptor of a decoded document.

        Raises:
            IntegrityError: A required field is missing or of another type.
        """
        fields = _object(value, at=at)
        size = fields.pop("size", None)
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise IntegrityError(f"{at}.size: expected a count of bytes, got {size!r}")
        media_type = _string(fields.pop("mediaType", None), at=f"{at}.mediaType")
        digest = _digest(fields.pop("digest", None), at=f"{at}.digest")
        annotations = _annotations(fields.pop("annotations", None), at=f"{at}.annotations")
        platform, rest = _platform(fields.pop("platform", None), at=f"{at}.platform")
        if rest:
            fields["platform"] = rest
        return cls(
            media_type=media_type,
            digest=digest,
            size=size,
            platform=platform,
            annotations=annotations,
            extra=tuple(sorted(fields.items())),
        )

    @property
    def artifact_type(self) -> str | None:
        """What kind of artifact the manifest is, in lists that say so (lists of referrers)."""
        kind = dict(self.extra).get("artifactType")
        return kind if isinstance(kind, str) else None

    def record(self) -> dict[str, Any]:
        """The descriptor as a JSON object."""
        value: dict[str, Any] = dict(self.extra)
        value |= {"mediaType": self.media_type, "digest": str(self.digest), "size": self.size}
        rest = value.pop("platform", {})
        if self.platform is not None:
            value["platform"] = (
                rest
                | {
                    "os": self.platform.os,
                    "architecture": self.platform.architecture,
                }
                | ({"variant": self.platform.variant} if self.platform.variant else {})
            )
        if self.annotations:
            value["annotations"] = dict(self.annotations)
        return value


@value
class Manifest:
    """One platform's image: its config and its layers, bottom first, and its exact bytes."""

    raw: bytes = field(repr=False)
    media_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: tuple[tuple[str, str], ...] = ()
    subject: Descriptor | None = None
    """The manifest that this one refers to."""
    artifact_type: str | None = None

    @classmethod
    def parse(cls, raw: bytes, *, media_type: str | None = None, at: str = "manifest") -> Self:
        """Read manifest bytes. ``media_type`` is what the transport said, where it said something.

        Raises:
            IntegrityError: Not a manifest, a schema 1 manifest, or a document that says another
                type of itself than the transport did (image-spec, "mediaType" confusion).
        """
        value, kind = _document(raw, media_type=media_type, at=at)
        if kind not in MANIFEST_TYPES or "manifests" in value:
            raise IntegrityError(f"{at}: expected an image manifest, got {kind!r}")
        layers = value.get("layers")
        if not isinstance(layers, list):
            raise IntegrityError(f"{at}.layers: expected a list, got {layers!r}")
        subject, artifact = value.get("subject"), value.get("artifactType")
        return cls(
            raw=raw,
            media_type=kind,
            config=Descriptor.parse(value.get("config"), at=f"{at}.config"),
            layers=tuple(
                Descriptor.parse(layer, at=f"{at}.layers[{number}]")
                for number, layer in enumerate(layers)
            ),
            annotations=_annotations(value.get("annotations"), at=f"{at}.annotations"),
            subject=None if subject is None else Descriptor.parse(subject, at=f"{at}.subject"),
            artifact_type=None if artifact is None else _string(artifact, at=f"{at}.artifactType"),
        )

    @property
    def digest(self) -> Digest:
        return Digest.of(self.raw)

    @property
    def family(self) -> Family:
        return Family.DOCKER if self.media_type == DOCKER_MANIFEST else Family.OCI

    @property
    def descriptor(self) -> Descriptor:
        return Descriptor(media_type=self.media_type, digest=self.digest, size=len(self.raw))


@value
class Index:
    """Manifests of several platforms, and its exact bytes."""

    raw: bytes = field(repr=False)
    media_type: str
    manifests: tuple[Descriptor, ...]

    @classmethod
    def parse(cls, raw: bytes, *, media_type: str | None = None, at: str = "index") -> Self:
        """Read index bytes.

        Raises:
            IntegrityError: Not an index, or one that says another type than the transport did.
        """
        value, kind = _document(raw, media_type=media_type, at=at)
        if kind not in INDEX_TYPES or "layers" in value or "config" in value:
            raise IntegrityError(f"{at}: expected an image index, got {kind!r}")
        manifests = value.get("manifests")
        if not isinstance(manifests, list):
            raise IntegrityError(f"{at}.manifests: expected a list, got {manifests!r}")
        return cls(
            raw=raw,
            media_type=kind,
            manifests=tuple(
                Descriptor.parse(item, at=f"{at}.manifests[{number}]")
                for number, item in enumerate(manifests)
            ),
        )

    @property
    def digest(self) -> Digest:
        return Digest.of(self.raw)

    @property
    def descriptor(self) -> Descriptor:
        return Descriptor(media_type=self.media_type, digest=self.digest, size=len(self.raw))

    def select(self, platform: Platform, *, at: str) -> Descriptor:
        """The one manifest for ``platform``.

        A platform without a variant matches an entry with any variant only if one entry matches.
        Entries of buildkit attestations (``unknown/unknown``) match nothing a user asks for.

        Raises:
            IntegrityError: No entry, or several; the message lists what there is.
        """
        exact = [item for item in self.manifests if item.platform == platform]
        loose = [
            item
            for item in self.manifests
            if item.platform is not None
            and platform.variant is None
            and (item.platform.os, item.platform.architecture)
            == (platform.os, platform.architecture)
        ]
        found = exact or loose
        if len(found) != 1:
            known = sorted(
                plain(str(item.platform or "one without platform")) for item in self.manifests
            )
            raise IntegrityError(
                f"{at}: {len(found)} manifests for platform {str(platform)!r}, wanted one;"
                f" the index has: {', '.join(known) or 'none'}",
                hint="choose another with --platform",
            )
        return found[0]


def parse_document(raw: bytes, *, media_type: str | None, at: str) -> Manifest | Index:
    """Read bytes that may be either. See the two ``parse`` methods for what is refused."""
    _, kind = _document(raw, media_type=media_type, at=at)
    if kind in INDEX_TYPES:
        return Index.parse(raw, media_type=media_type, at=at)
    return Manifest.parse(raw, media_type=media_type, at=at)


def _document(raw: bytes, *, media_type: str | None, at: str) -> tuple[dict[str, Any], str]:
    value = _object(canonical.decode(raw, at=at, limit=MANIFEST_LIMIT), at=at)
    if value.get("schemaVersion") != 2:
        raise IntegrityError(
            f"{at}: schemaVersion {value.get('schemaVersion')!r} is not supported, wanted 2",
            hint="schema 1 manifests are not content-addressed images: have it pushed again"
            if value.get("schemaVersion") == 1
            else None,
        )
    own = value.get("mediaType")
    said = None if media_type is None else media_type.partition(";")[0].strip()
    if own is not None and said is not None and own != said:
        raise IntegrityError(f"{at}: served as {said!r} but says of itself {own!r}")
    kind = said if own is None else own
    if kind is None:  # OCI 1.0 layouts may leave mediaType out: the fields decide.
        kind = OCI_INDEX if "manifests" in value else OCI_MANIFEST
    return value, _string(kind, at=f"{at}.mediaType")


def _mapping(value: object, *, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise IntegrityError(f"{at}: expected an object, got {value!r}")
    return dict(value)


def _object(value: object, *, at: str) -> dict[str, Any]:
    """An object whose keys are fields, each in the one spelling."""
    fields = _mapping(value, at=at)
    canonical.refuse_alike(fields, FIELDS, at=at)
    return fields


def _string(value: object, *, at: str) -> str:
    if not isinstance(value, str):
        raise IntegrityError(f"{at}: expected a string, got {value!r}")
    return value


def _digest(value: object, *, at: str) -> Digest:
    return Digest.parse(_string(value, at=at), at=at, refusal=IntegrityError)


def _annotations(value: object, *, at: str) -> tuple[tuple[str, str], ...]:
    fields = _mapping({} if value is None else value, at=at)
    return tuple(
        (key, _string(text, at=f"{at}.{plain(key)}")) for key, text in sorted(fields.items())
    )


def _platform(value: object, *, at: str) -> tuple[Platform | None, dict[str, Any]]:
    """The platform, and the fields of it that take no part in a selection (os.version, ...)."""
    if value is None:
        return None, {}
    rest = _object(value, at=at)
    os = _string(rest.pop("os", None), at=f"{at}.os")
    architecture = _string(rest.pop("architecture", None), at=f"{at}.architecture")
    variant = rest.pop("variant", None) or ""
    return Platform(os, architecture, _string(variant, at=f"{at}.variant") or None), rest
