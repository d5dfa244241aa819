"""From a base and our layers to the exact bytes of config and manifest. Pure.

The base's own descriptors go in unchanged, below ours; the family of media types is the base's.
Everything of the base's config that we do not set is kept, also what we do not know.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from builder import canonical
from builder.base import Base, config_of
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Descriptor, Family, Manifest, Platform
from builder.outcome import LayerOutput
from builder.value import field, value
from builder.variant import ImageSettings

CREATED = "1980-01-01T00:00:00Z"
"""The ``created`` of everything that is ours (:data:`builder.tree.EPOCH`): an image is what went
into it, not when."""


@value
class Image:
    """An image and its encoding, made once. ``layers`` are all layers, the base's first;
    ``own`` are ours."""

    manifest: Manifest
    config: bytes = field(repr=False)
    platform: Platform
    own: tuple[Descriptor, ...]

    @property
    def digest(self) -> Digest:
        return self.manifest.digest

    @property
    def base_layers(self) -> tuple[Descriptor, ...]:
        """The layers that are the base's."""
        return self.manifest.layers[: len(self.manifest.layers) - len(self.own)]


def assemble(
    base: Base | None,
    layers: Sequence[tuple[str, LayerOutput]],
    *,
    settings: ImageSettings,
    platform: Platform,
) -> Image:
    """Put layers on top of a base.

    Args:
        base: ``None`` for ``scratch``.
        layers: For each layer of ours what made it (for the history) and the layer, bottom first.
    """
    family = Family.OCI if base is None else base.manifest.family
    own = tuple(
        Descriptor(media_type=family.layer, digest=layer.digest, size=layer.size)
        for _, layer in layers
    )
    config = _config(base, layers, settings=settings, platform=platform)
    descriptors = (() if base is None else base.manifest.layers) + own
    document: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": family.manifest,
        "config": {
            "mediaType": family.config,
            "digest": str(Digest.of(config)),
            "size": len(config),
        },
        "layers": [descriptor.record() for descriptor in descriptors],
    }
    if annotations := _annotations(base, family):
        document["annotations"] = annotations
    raw = _encoded(document, at="the base's manifest")
    return Image(
        manifest=Manifest.parse(raw, at="our manifest"), config=config, platform=platform, own=own
    )


def _annotations(base: Base | None, family: Family) -> dict[str, str]:
    """The base's annotations and where it came from (image-spec, annotations.md). Schema 2 has
    no annotations."""
    if base is None or family is Family.DOCKER:
        return {}
    annotations = dict(base.manifest.annotations)
    annotations["org.opencontainers.image.base.digest"] = str(base.index or base.manifest.digest)
    if base.reference is not None:
        annotations["org.opencontainers.image.base.name"] = str(base.reference)
    return annotations


def _config(
    base: Base | None,
    layers: Sequence[tuple[str, LayerOutput]],
    *,
    settings: ImageSettings,
    platform: Platform,
) -> bytes:
    if base is None:
        value: dict[str, Any] = {
            "architecture": platform.architecture,
            "os": platform.os,
            "created": CREATED,
            "rootfs": {"type": "layers", "diff_ids": []},
            "history": [],
        }
        if platform.variant:
            value["variant"] = platform.variant
    else:
        value = config_of(base.config, at="the base's config")
    rootfs = dict(value["rootfs"])
    before = list(rootfs["diff_ids"])
    rootfs["diff_ids"] = before + [str(layer.diff_id) for _, layer in layers]
    value["rootfs"] = rootfs
    history = value.get("history")
    if _aligned(history, len(before)):
        value["history"] = [
            *(history or []),
            *({"created": CREATED, "created_by": made_by} for made_by, _ in layers),
        ]
    value["config"] = _settings(value.get("config") or {}, settings)
    return _encoded(value, at="the base's config")


def _aligned(history: object, layers: int) -> bool:
    """Whether a base's history has one entry per layer (image-spec, config.md: entries that are
    not ``empty_layer``). Where it has not, more entries would blame the wrong layers."""
    if not isinstance(history, list):
        return layers == 0 and history is None
    filled = [item for item in history if not (isinstance(item, dict) and item.get("empty_layer"))]
    return len(filled) == layers


def _settings(current: Mapping[str, Any], settings: ImageSettings) -> dict[str, Any]:
    value = dict(current)
    if settings.env:
        value["Env"] = _merged_env(value.get("Env") or (), dict(settings.env))
    if settings.labels:
        labels = dict(value.get("Labels") or {}) | dict(settings.labels)
        value["Labels"] = {name: text for name, text in labels.items() if text is not None}
    if settings.entrypoint is not None:
        value["Entrypoint"] = list(settings.entrypoint)
    if settings.command is not None:
        value["Cmd"] = list(settings.command)
    if settings.workdir is not None:
        value["WorkingDir"] = settings.workdir
    if settings.user is not None:
        value["User"] = settings.user
    return value


def _merged_env(current: Sequence[str], ours: Mapping[str, str | None]) -> list[str]:
    """The base's order, ours in place where the name is the same, new names after, sorted."""
    names = [item.partition("=")[0] for item in current]
    merged = [
        item if name not in ours else f"{name}={ours[name]}"
        for name, item in zip(names, current, strict=True)
        if name not in ours or ours[name] is not None
    ]
    added = (
        f"{name}={text}"
        for name, text in sorted(ours.items())
        if name not in names and text is not None
    )
    return [*merged, *added]


def _encoded(value: Any, *, at: str) -> bytes:
    """The bytes of a document that has parts of a foreign one.

    Raises:
        IntegrityError: The foreign part has a number with a fraction, or is not Unicode.
    """
    return canonical.encode(_exact(value, at=at))


def _exact(value: Any, *, at: str) -> Any:
    """Foreign numbers that JSON has and we do not: a float that is whole becomes an integer."""
    if isinstance(value, dict):
        return {key: _exact(item, at=at) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item, at=at) for item in value]
    if isinstance(value, float):
        if not value.is_integer():
            raise IntegrityError(f"{at}: the number {value!r} has no one spelling")
        return int(value)
    return value
