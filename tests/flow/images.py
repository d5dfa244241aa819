"""Base images, made of dictionaries: trees to layers, layers to images, images to registries and
layouts."""

import gzip
import importlib
import io
import json
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.digest import Digest
from builder.oci import (
    DOCKER_LAYER_GZIP,
    OCI_INDEX,
    OCI_LAYER_GZIP,
    OCI_LAYER_TAR,
    OCI_LAYER_ZSTD,
    Family,
    Index,
    Manifest,
)
from builder.reference import Reference
from tests.fakes import File, Link
from tests.standin.registry import StandIn

PACKAGES = "usr/local/lib/python3.12/dist-packages"


@dataclass(frozen=True, slots=True)
class Hard:
    """A hard link to another path of the same layer."""

    target: str


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory that is there in its own right."""

    mode: int = 0o755


Node: TypeAlias = bytes | File | Link | Hard | Directory
Tree: TypeAlias = Mapping[str, Node]
"""Path to what is there, in the order of the archive; ``.wh.NAME`` is a whiteout."""
Packing: TypeAlias = Literal["gzip", "zstd", "tar"]


def tar_of(tree: Tree) -> bytes:
    """A layer's tar, with an entry for every directory above a path."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        seen = set(tree)
        for path, node in tree.items():
            for parent in [str(item) for item in reversed(Path(path).parents) if item.name]:
                if parent not in seen:
                    seen.add(parent)
                    archive.addfile(_member(parent, Directory()))
            data = node if isinstance(node, bytes) else node.data if isinstance(node, File) else b""
            archive.addfile(_member(path, node), io.BytesIO(data))
    return stream.getvalue()


def _member(path: str, node: Node) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.mtime = 1700000000
    match node:
        case bytes():
            member.size = len(node)
        case File(data, mode, uid, gid, xattrs):
            member.size, member.mode, member.uid, member.gid = len(data), mode, uid, gid
            member.pax_headers = {f"SCHILY.xattr.{name}": value.decode() for name, value in xattrs}
        case Link(target):
            member.type, member.linkname, member.mode = tarfile.SYMTYPE, target, 0o777
        case Hard(target):
            member.type, member.linkname = tarfile.LNKTYPE, target
        case Directory(mode):
            member.type, member.mode = tarfile.DIRTYPE, mode
    return member


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of an image to be."""

    tree: Tree
    packing: Packing = "gzip"


@dataclass(frozen=True, kw_only=True)
class MadeImage:
    """An image with all of its bytes."""

    manifest: Manifest
    config: bytes
    layers: tuple[bytes, ...]
    diff_ids: tuple[Digest, ...]

    @property
    def digest(self) -> Digest:
        return self.manifest.digest

    @cached_property
    def blobs(self) -> dict[Digest, bytes]:
        """Layers and config."""
        return {Digest.of(data): data for data in (*self.layers, self.config)}

    def pin(self) -> dict[str, Any]:
        """All that a lock can say of one platform."""
        return {
            "manifest": str(self.digest),
            "config": str(Digest.of(self.config)),
            "layers": [
                {"digest": str(Digest.of(data)), "size": len(data), "diff_id": str(diff_id)}
                for data, diff_id in zip(self.layers, self.diff_ids, strict=True)
            ],
        }


_TYPES: Mapping[Packing, str] = {
    "gzip": OCI_LAYER_GZIP,
    "zstd": OCI_LAYER_ZSTD,
    "tar": OCI_LAYER_TAR,
}


def image(
    *layers: Tree | Layer,
    family: Family = Family.OCI,
    architecture: str = "amd64",
    settings: Mapping[str, Any] | None = None,
    history: Sequence[Mapping[str, Any]] | Literal["aligned"] | None = "aligned",
    annotations: Mapping[str, str] | None = None,
) -> MadeImage:
    """An image of these layers, bottom first."""
    stack = [item if isinstance(item, Layer) else Layer(item) for item in layers]
    tars = [tar_of(item.tree) for item in stack]
    blobs = [_packed(data, item.packing) for data, item in zip(tars, stack, strict=True)]
    diff_ids = tuple(Digest.of(data) for data in tars)
    config: dict[str, Any] = {
        "architecture": architecture,
        "os": "linux",
        "config": dict(settings or {}),
        "rootfs": {"type": "layers", "diff_ids": [str(item) for item in diff_ids]},
    }
    if history == "aligned":
        config["history"] = [{"created_by": f"layer {number}"} for number in range(len(stack))]
    elif history is not None:
        config["history"] = [dict(item) for item in history]
    raw_config = json.dumps(config, indent=1).encode()
    document: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": family.manifest,
        "config": _descriptor(family.config, raw_config),
        "layers": [
            _descriptor(
                DOCKER_LAYER_GZIP if family is Family.DOCKER else _TYPES[item.packing], data
            )
            for item, data in zip(stack, blobs, strict=True)
        ],
    }
    if annotations:
        document["annotations"] = dict(annotations)
    return MadeImage(
        manifest=Manifest.parse(json.dumps(document, indent=3).encode(), at="a test's image"),
        config=raw_config,
        layers=tuple(blobs),
        diff_ids=diff_ids,
    )


def _packed(data: bytes, packing: Packing) -> bytes:
    match packing:
        case "gzip":
            return gzip.compress(data, mtime=0)
        case "zstd":
            # Python 3.14 has its own.
            name = "compression.zstd" if sys.version_info >= (3, 14) else "zstandard"
            return bytes(importlib.import_module(name).compress(data))
        case "tar":
            return data


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": str(Digest.of(data)), "size": len(data)}


def index_of(**images: MadeImage) -> Index:
    """An index of images by architecture, with the attestation that BuildKit puts beside."""
    entries = [
        _descriptor(made.manifest.family.manifest, made.manifest.raw)
        | {"platform": {"os": "linux", "architecture": architecture}}
        for architecture, made in images.items()
    ]
    attestation = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": str(Digest.of(b"an attestation")),
        "size": 14,
        "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
        "platform": {"os": "unknown", "architecture": "unknown"},
    }
    document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [*entries, attestation]}
    return Index.parse(json.dumps(document).encode(), at="a test's index")


def serve(registry: StandIn, made: MadeImage, *, repository: str = "base", tag: str = "t") -> None:
    """Put an image into a stand-in."""
    for data in made.blobs.values():
        registry.add_blob(repository, data)
    manifest = made.manifest
    registry.add_manifest(repository, manifest.raw, media_type=manifest.family.manifest, tag=tag)


def serve_index(registry: StandIn, index: Index, *, repository: str = "base") -> None:
    """Put an index, and nothing that it names, into a stand-in."""
    registry.add_manifest(repository, index.raw, media_type=OCI_INDEX, tag="t")


def push(made: MadeImage, reference: str) -> None:
    """Put an image into a real registry on loopback."""
    target = Reference.parse(reference)
    client = RegistryClient(RegistryConfiguration())
    try:
        for descriptor in (*made.manifest.layers, made.manifest.config):
            client.push_blob(target, descriptor, io.BytesIO(made.blobs[descriptor.digest]))
        client.push_manifest(target, made.manifest)
    finally:
        client.close()


def write_layout(directory: Path, *documents: MadeImage | Index) -> Path:
    """An OCI layout on disk with all of these."""
    blobs = directory / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    entries = []
    for document in documents:
        manifest = document.manifest if isinstance(document, MadeImage) else document
        if isinstance(document, MadeImage):
            for digest, data in document.blobs.items():
                (blobs / digest.hex).write_bytes(data)
        (blobs / manifest.digest.hex).write_bytes(manifest.raw)
        media_type = OCI_INDEX if isinstance(document, Index) else document.manifest.family.manifest
        entries.append(_descriptor(media_type, manifest.raw))
    (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": entries}))
    return directory


def unpacked(blob: bytes) -> tarfile.TarFile:
    """A layer of ours, opened."""
    return tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob)))
