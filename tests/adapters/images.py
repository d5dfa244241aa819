"""Images of one-file layers."""

import gzip
import json
import tarfile
from io import BytesIO

from builder.changes import Inline
from builder.digest import Digest
from builder.oci import DOCKER_CONFIG, DOCKER_LAYER_GZIP, DOCKER_MANIFEST


def layer(path: str, data: bytes) -> Inline:
    """A layer's tar with one file in it."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo(path)
        info.size = len(data)
        tar.addfile(info, BytesIO(data))
    return Inline(buffer.getvalue())


def config(*layers: Inline) -> bytes:
    """The config of an image of these layers."""
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [str(item.digest) for item in layers]},
        }
    ).encode()


def served(*layers: Inline) -> tuple[bytes, dict[str, bytes]]:
    """A manifest and the blobs that a registry would serve for it, by digest."""
    blobs = [gzip.compress(item.data, mtime=0) for item in layers]
    own = config(*layers)
    manifest = {
        "schemaVersion": 2,
        "mediaType": DOCKER_MANIFEST,
        "config": _descriptor(DOCKER_CONFIG, own),
        "layers": [_descriptor(DOCKER_LAYER_GZIP, blob) for blob in blobs],
    }
    return json.dumps(manifest).encode(), {str(Digest.of(blob)): blob for blob in (own, *blobs)}


def _descriptor(media_type: str, data: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": str(Digest.of(data)), "size": len(data)}
