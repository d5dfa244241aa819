"""Small images, and ways to do harm to a store."""

import json
from pathlib import Path
from typing import TypeAlias

from builder import canonical
from builder.adapters.store import FileStore
from builder.digest import Digest
from builder.oci import (
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER_TAR,
    OCI_MANIFEST,
    Descriptor,
    Platform,
)
from tests.memory_store import MemoryStore

AnyStore: TypeAlias = FileStore | MemoryStore

NOWHERE = Digest.of(b"nowhere")


def image(
    store: AnyStore, *, layers: tuple[bytes, ...], base: tuple[bytes, ...] = (), note: str = ""
) -> Descriptor:
    """Put an image whose ``base`` layers are only named; returns its manifest's descriptor."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": {"note": note}},
        "rootfs": {"type": "layers", "diff_ids": [str(Digest.of(data)) for data in base + layers]},
    }
    raw = canonical.encode(config)
    for data in (raw, *layers):
        store.put(data)
    manifest = canonical.encode(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": _descriptor(OCI_CONFIG, raw).record(),
            "layers": [_descriptor(OCI_LAYER_TAR, data).record() for data in base + layers],
        }
    )
    store.put(manifest)
    return _descriptor(OCI_MANIFEST, manifest)


def index_of(store: AnyStore, *manifests: Descriptor) -> Descriptor:
    """Put an image index; returns its descriptor."""
    raw = canonical.encode(
        {
            "schemaVersion": 2,
            "mediaType": OCI_INDEX,
            "manifests": [manifest.record() for manifest in manifests],
        }
    )
    store.put(raw)
    return _descriptor(OCI_INDEX, raw)


def elsewhere(architecture: str) -> Descriptor:
    """A manifest that no store has."""
    raw = architecture.encode()
    return Descriptor(
        media_type=OCI_MANIFEST,
        digest=Digest.of(raw),
        size=len(raw),
        platform=Platform("linux", architecture),
    )


def spoil(store: AnyStore, digest: Digest, data: bytes) -> None:
    """Put other bytes in the place of a blob, behind the store's back."""
    if isinstance(store, MemoryStore):
        store.blobs[digest] = data
    else:
        blob_file(store, digest).write_bytes(data)


def blob_file(store: FileStore, digest: Digest) -> Path:
    return store.paths.root / "blobs" / "sha256" / digest.hex


def index_file(store: FileStore) -> Path:
    return store.paths.root / "index.json"


def add_entry(store: FileStore, entry: object) -> None:
    """Add an entry to index.json as another tool would."""
    document = json.loads(index_file(store).read_bytes())
    document["manifests"].append(entry)
    index_file(store).write_text(json.dumps(document, indent=2))


def _descriptor(media_type: str, data: bytes) -> Descriptor:
    return Descriptor(media_type=media_type, digest=Digest.of(data), size=len(data))
