"""Files as an OCI artifact: the form in which what is no image is kept in a registry or a layout.

OCI image-spec v1.1, manifest.md, "Guidelines for Artifact Usage": a manifest with an
``artifactType``, the empty config, and a layer for each file, as it is, with its name in
``org.opencontainers.image.title`` (what ``oras pull`` names it by). The same files give the same
bytes on every machine.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from builder import canonical
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import OCI_EMPTY, OCI_MANIFEST, Descriptor, Manifest

_OURS = "application/vnd.vllm-image-builder"
_TITLE = "org.opencontainers.image.title"
EMPTY = b"{}"
"""The content of the empty config."""


class Kind(StrEnum):
    """What is kept. The value is part of the ``artifactType``."""

    WHEEL = "wheel"
    PULL = "pull"
    SOURCE = "source"
    PATCH_SET = "patch-set"

    @property
    def artifact_type(self) -> str:
        return f"{_OURS}.{self.value}.v1"

    @property
    def media_type(self) -> str:
        """That of each file."""
        return {
            Kind.WHEEL: "application/zip",
            Kind.PULL: "text/x-diff",
            Kind.SOURCE: "application/octet-stream",
            # A line of JSON, [[path, mode, size]...], then the files (builder.git_tree.pack).
            Kind.PATCH_SET: f"{_OURS}.git-tree.v1",
        }[self]


def config() -> Descriptor:
    """The descriptor of the empty config."""
    return Descriptor(media_type=OCI_EMPTY, digest=Digest.of(EMPTY), size=len(EMPTY))


def file(kind: Kind, title: str, *, digest: Digest, size: int) -> Descriptor:
    """A file of an artifact."""
    return Descriptor(
        media_type=kind.media_type, digest=digest, size=size, annotations=((_TITLE, title),)
    )


def artifact(
    kind: Kind, files: Sequence[Descriptor], *, annotations: Mapping[str, str]
) -> Manifest:
    """The manifest of these files, sorted by title."""
    document: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": kind.artifact_type,
        "config": config().record(),
        "layers": [item.record() for item in sorted(files, key=title_of)],
    }
    if annotations:
        document["annotations"] = dict(annotations)
    return Manifest.parse(canonical.encode(document), at="our artifact")


def title_of(item: Descriptor) -> str:
    """The name of a file; empty where it has none."""
    return dict(item.annotations).get(_TITLE, "")


def files_of(raw: bytes, kind: Kind, *, at: str) -> tuple[Descriptor, ...]:
    """The files of an artifact, in its order. What they hold is for the lock to say.

    Raises:
        IntegrityError: It is no manifest, or that of something else.
    """
    manifest = Manifest.parse(raw, at=at)
    said = canonical.decode(raw, at=at).get("artifactType")
    if said != kind.artifact_type:
        raise IntegrityError(f"{at}: expected an artifact of {kind.artifact_type!r}, got {said!r}")
    return manifest.layers
