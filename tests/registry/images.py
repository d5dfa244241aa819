"""Images so small that they can be written by hand."""

import gzip
import io
import json
import tarfile
from dataclasses import dataclass

from builder.digest import Digest
from builder.oci import (
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER_GZIP,
    OCI_MANIFEST,
    Descriptor,
    Index,
    Manifest,
)


@dataclass(frozen=True, kw_only=True)
class TinyImage:
    """One file, one layer."""

    manifest: Manifest
    config: bytes
    layer: bytes


def describe(data: bytes, *, media_type: str = "application/octet-stream") -> Descriptor:
    """The descriptor of some bytes."""
    return Descriptor(media_type=media_type, digest=Digest.of(data), size=len(data))


def tiny_image(text: bytes = b"hello\n", *, architecture: str = "amd64") -> TinyImage:
    """An image whose only file says ``text``."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        entry = tarfile.TarInfo("greeting")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    layer = gzip.compress(tar.getvalue(), mtime=0)
    config = json.dumps(
        {
            "architecture": architecture,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [str(Digest.of(tar.getvalue()))]},
            "history": [{"created_by": "by hand"}],
        }
    ).encode()
    raw = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": describe(config, media_type=OCI_CONFIG).record(),
            "layers": [describe(layer, media_type=OCI_LAYER_GZIP).record()],
        }
    ).encode()
    return TinyImage(manifest=Manifest.parse(raw), config=config, layer=layer)


def with_config_of(other: TinyImage, image: TinyImage) -> TinyImage:
    """``image`` with a config that is not of its layer."""
    config = describe(other.config, media_type=OCI_CONFIG).record()
    raw = json.dumps(json.loads(image.manifest.raw) | {"config": config}).encode()
    return TinyImage(manifest=Manifest.parse(raw), config=other.config, layer=image.layer)


def index_of(*entries: tuple[Manifest, str, str]) -> Index:
    """An index of (manifest, os, architecture)."""
    manifests = [
        manifest.descriptor.record() | {"platform": {"os": system, "architecture": architecture}}
        for manifest, system, architecture in entries
    ]
    raw = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests}).encode()
    return Index.parse(raw)
