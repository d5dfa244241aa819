"""A base image as an OCI layout on disk, out of a tar made here."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from builder.digest import Digest

PACKAGES = "usr/lib/python3.12/site-packages"
FILES = {
    f"{PACKAGES}/engine/__init__.py": "",
    f"{PACKAGES}/engine/config.py": "LIMIT = 4\n",
    f"{PACKAGES}/engine/other.py": "OTHER = 1\n",
    "usr/bin/python3.12": "",
    "etc/engine.conf": "quiet\n",
}
LINKS = {"lib": "usr/lib", "etc/engine.link": "engine.conf"}


def write_base(directory: Path) -> Digest:
    """Write the layout; returns the digest of its manifest."""
    layer = _layer()
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [str(Digest.of(layer))]},
            "config": {},
        }
    )
    media = "application/vnd.oci.image"
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{media}.manifest.v1+json",
            "config": _descriptor(f"{media}.config.v1+json", config),
            "layers": [_descriptor(f"{media}.layer.v1.tar", layer)],
        }
    )
    blobs = directory / "blobs/sha256"
    blobs.mkdir(parents=True)
    for data in (layer, config, manifest):
        (blobs / Digest.of(data).hex).write_bytes(data)
    (directory / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    index = {
        "schemaVersion": 2,
        "manifests": [_descriptor(f"{media}.manifest.v1+json", manifest)],
    }
    (directory / "index.json").write_bytes(_json(index))
    return Digest.of(manifest)


def _layer() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in LINKS.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return buffer.getvalue()


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": str(Digest.of(data)), "size": len(data)}


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
