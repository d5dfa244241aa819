"""A pin as what is kept of it: documents and blobs, in the form in which they are read back."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from builder import artifact
from builder.artifact import Kind
from builder.base import Base, layer_blob, read_document
from builder.digest import CHUNK, Digest
from builder.errors import ProjectError
from builder.lock.model import GenesisPin, ImagePin, PullPin, SourcePin, WheelPin
from builder.oci import Descriptor, Index, Manifest, Platform
from builder.origin import Origin
from builder.ports import Store
from builder.reference import Reference
from builder.steps.request import Materials
from builder.value import field, value

Chunks: TypeAlias = Callable[[], Iterator[bytes]]


@value
class Blob:
    """A blob, and where it comes from when it is asked for. ``sources`` are repositories from which
    it may be mounted instead."""

    descriptor: Descriptor
    chunks: Chunks = field(repr=False)
    sources: tuple[Reference, ...] = ()


@value
class Parcel:
    """What is kept of a pin. ``documents`` come in an order in which each names only what is before
    it; the last one is the one that the place is asked for."""

    documents: tuple[Manifest | Index, ...]
    blobs: tuple[Blob, ...]

    @property
    def top(self) -> Manifest | Index:
        return self.documents[-1]


def of_base(
    pin: ImagePin, base: Base, platform: Platform, *, store: Store, all_platforms: bool
) -> Parcel:
    """A base, byte for byte: its manifest for one platform, or with ``all_platforms`` the pinned
    index with all that it names, which registries take only together.

    Raises:
        ProjectError: The lock does not say which manifest is the platform's, so that without the
            index nobody would know.
        GoneError, NetworkError: A document cannot be had.
    """
    if all_platforms and pin.index is not None and base.twin is None:
        index = read_document(pin.index, base.origin, store)
        documents = tuple(dict.fromkeys(_below(index, base.origin, store)))
    elif pin.platform(platform) is None:
        raise ProjectError(
            f"{pin.at}: no manifest is pinned for platform {str(platform)!r}, and the index alone"
            " is not kept",
            hint=f"write {base.manifest.digest} into the lock as its manifest, or keep all that"
            " the index has: --all-platforms",
        )
    else:
        documents = (base.manifest,)
    found = {
        item.digest: item
        for document in documents
        if isinstance(document, Manifest)
        for item in (document.config, *document.layers)
    }
    blobs = tuple(
        Blob(
            descriptor=item,
            chunks=partial(layer_blob, item, base, store),
            sources=base.sources,
        )
        for item in found.values()
    )
    return Parcel(documents=documents, blobs=blobs)


def _below(document: Manifest | Index, origin: Origin, store: Store) -> Iterator[Manifest | Index]:
    """A document and all that it leads to, the lowest first."""
    if isinstance(document, Index):
        for item in document.manifests:
            yield from _below(read_document(item.digest, origin, store), origin, store)
    yield document


def of_pull(pin: PullPin, materials: Materials) -> Parcel:
    """A pull request: the diff, as it was fetched."""
    files = [(f"{pin.pull}.diff", materials.pull(pin))]
    about = {"org.opencontainers.image.source": pin.repository}
    if pin.head is not None:
        about["org.opencontainers.image.revision"] = str(pin.head)
    return _of_bytes(Kind.PULL, files, about)


def of_source(pin: SourcePin, materials: Materials) -> Parcel:
    """A source: the files that are pinned."""
    files = [(file.path, materials.source(pin, file.path)) for file in pin.files]
    return _of_bytes(Kind.SOURCE, files, _git(pin))


def of_patch_set(pin: GenesisPin, materials: Materials) -> Parcel:
    """A patch set: its payload and its plugin, with modes and links."""
    from builder.git_tree import pack  # noqa: PLC0415 - few variants have a patch set

    files = [("payload", pack(materials.payload(pin).files))]
    if (plugin := materials.plugin(pin)) is not None:
        files.append(("plugin", pack(plugin.files)))
    return _of_bytes(Kind.PATCH_SET, files, _git(pin))


def of_wheel(pin: WheelPin, materials: Materials) -> Parcel:
    """A wheel: its file."""
    path = materials.wheel(pin)
    assert isinstance(path, Path)  # one that the project has unpacked is not kept
    item = artifact.file(Kind.WHEEL, pin.filename, digest=pin.digest, size=path.stat().st_size)
    return _of_files(Kind.WHEEL, [Blob(descriptor=item, chunks=partial(_read, path))], {})


def _git(pin: SourcePin | GenesisPin) -> dict[str, str]:
    """image-spec, annotations.md: for people who find it later."""
    return {
        "org.opencontainers.image.source": pin.repository,
        "org.opencontainers.image.revision": str(pin.commit),
    }


def _of_bytes(kind: Kind, files: list[tuple[str, bytes]], about: dict[str, str]) -> Parcel:
    blobs = [
        Blob(
            descriptor=artifact.file(kind, title, digest=Digest.of(data), size=len(data)),
            chunks=partial(iter, (data,)),
        )
        for title, data in files
    ]
    return _of_files(kind, blobs, about)


def _of_files(kind: Kind, blobs: list[Blob], about: dict[str, str]) -> Parcel:
    manifest = artifact.artifact(kind, [blob.descriptor for blob in blobs], annotations=about)
    empty = Blob(descriptor=artifact.config(), chunks=partial(iter, (artifact.EMPTY,)))
    once = {blob.descriptor.digest: blob for blob in (*blobs, empty)}
    return Parcel(documents=(manifest,), blobs=tuple(once.values()))


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
