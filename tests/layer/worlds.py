"""Tiny worlds for the tests of layers: a writer in memory, trees on disk, images on disk."""

import io
import json
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from builder import layer
from builder.changes import Change
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.tree import View
from tests.fakes import File, Link, Node, TreeView


def _interpreters() -> dict[str, str]:
    found: dict[str, str] = {}
    ask = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
    for name in (sys.executable, *(f"python3.{minor}" for minor in range(11, 15))):
        if shutil.which(name):
            command = [name, "-c", ask]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            version, _, executable = done.stdout.strip().partition(" ")
            found.setdefault(version, executable)
    return {version: executable for version, executable in found.items() if version}


INTERPRETERS = _interpreters()
"""Every Python on this machine that the project supports, by its version: our own first."""


class MemoryWriter:
    """A ``builder.ports.BlobWriter`` that keeps the blob; nothing is committed until it is."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self.committed: bytes | None = None

    def write(self, chunk: bytes | bytearray | memoryview) -> int:
        return self._buffer.write(chunk)

    def commit(self, expected: Digest | None = None, *, size: int | None = None) -> Digest:
        blob = self._buffer.getvalue()
        if size is not None and size != len(blob):
            raise IntegrityError(f"expected {size} bytes, got {len(blob)}")
        if expected is not None:
            expected.check(blob, at="blob")
        self.committed = blob
        return Digest.of(blob)

    @property
    def blob(self) -> bytes:
        assert self.committed is not None
        return self.committed


def written(entries: Iterable[layer.LayerEntry]) -> tuple[layer.Layer, bytes]:
    """The layer of these entries, and its blob."""
    writer = MemoryWriter()
    return layer.write(entries, writer), writer.blob


def made(changes: Iterable[Change], view: View) -> tuple[layer.Layer, bytes]:
    """The layer of these changes, and its blob."""
    return written(layer.compose(changes, view))


def unframed(blob: bytes) -> bytes:
    """The tar in a layer's blob."""
    return zlib.decompress(blob, wbits=31)


def view_of(root: Path) -> TreeView:
    """The tree that stands on disk below ``root``."""
    tree: dict[str, Node] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            tree[name] = Link(str(path.readlink()))
        elif path.is_file():
            tree[name] = File(path.read_bytes(), mode=path.stat().st_mode & 0o7777)
    return TreeView(tree)


def extract(blob: bytes, onto: Path, *flags: str) -> None:
    """Apply a layer with GNU tar: what its whiteouts name first, then all other entries."""
    data = unframed(blob)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = archive.getnames()
    for name in (Path(name) for name in names):
        if name.name.startswith(".wh."):
            (onto / name.with_name(name.name.removeprefix(".wh."))).unlink()
    command = ["tar", *flags, "-xpf", "-", "--exclude=.wh.*", "-C", str(onto)]
    subprocess.run(command, input=data, check=True)


def oci_layout(directory: Path, blobs: Iterable[bytes]) -> Path:
    """An image of these gzip layers, bottom first, under the name ``it``."""
    layers = list(blobs)
    (directory / "blobs/sha256").mkdir(parents=True)

    def put(data: bytes, media: str) -> dict[str, object]:
        digest = Digest.of(data)
        (directory / "blobs/sha256" / digest.hex).write_bytes(data)
        return {
            "mediaType": f"application/vnd.oci.image.{media}",
            "digest": str(digest),
            "size": len(data),
        }

    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {},
        "rootfs": {
            "type": "layers",
            "diff_ids": [str(Digest.of(unframed(blob))) for blob in layers],
        },
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": put(json.dumps(config).encode(), "config.v1+json"),
        "layers": [put(blob, "layer.v1.tar+gzip") for blob in layers],
    }
    entry = put(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": "it"}
    (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    return directory
