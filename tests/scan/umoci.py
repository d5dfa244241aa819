"""umoci as an oracle: it unpacks and repacks images as the engines do."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from builder.digest import Digest
from builder.oci import OCI_CONFIG, OCI_LAYER_TAR, OCI_MANIFEST

NEEDS_UMOCI = pytest.mark.skipif(
    shutil.which("umoci") is None or os.geteuid() != 0,
    reason="umoci and root are needed to unpack layers",
)


def umoci(*arguments: str) -> None:
    subprocess.run(["umoci", *arguments], check=True, capture_output=True)


def write_layout(place: Path, archives: list[bytes]) -> None:
    """An OCI layout with one image, tagged ``t``."""
    blobs = place / "blobs/sha256"
    blobs.mkdir(parents=True)

    def put(data: bytes, media_type: str) -> dict[str, object]:
        digest = Digest.of(data)
        (blobs / digest.hex).write_bytes(data)
        return {"mediaType": media_type, "digest": str(digest), "size": len(data)}

    config = {
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [str(Digest.of(data)) for data in archives]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": put(json.dumps(config).encode(), OCI_CONFIG),
        "layers": [put(data, OCI_LAYER_TAR) for data in archives],
    }
    entry = put(json.dumps(manifest).encode(), OCI_MANIFEST)
    entry["annotations"] = {"org.opencontainers.image.ref.name": "t"}
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (place / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
