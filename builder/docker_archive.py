"""The docker-archive that ``docker load`` takes, with the layers left out that the engine has.

moby, image/tarexport/load.go, ``Load``: for each diff_id it first asks its layer store for the
chain id, and opens the layer's file only where the store has none. The containerd image store of
newer engines opens all of them: it needs the full archive.
"""

import json
import tarfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol

from builder import canonical
from builder.digest import CHUNK, Digest
from builder.errors import IntegrityError


class Blob(Protocol):
    """A layer's tar, plain or compressed: a size that is known before, and a stream."""

    @property
    def size(self) -> int: ...

    def open(self) -> BinaryIO:
        """A fresh stream from the first byte."""


def archive(
    config: bytes, layers: Sequence[tuple[Digest, Blob | None]], name: str | None = None
) -> Iterator[bytes]:
    """The archive, piece by piece, in constant memory. The same input gives the same bytes.

    Args:
        config: The image's config, byte for byte: its digest becomes the image id.
        layers: The diff_id of each layer, bottom first, and its blob; ``None`` leaves it out.
        name: ``repository:tag`` that the image gets, or ``None`` for none.

    Raises:
        IntegrityError: The diff_ids are not those of the config, or a blob has another size than
            it says; an archive that ended like this must not be used.
    """
    listed = [str(diff_id) for diff_id, _ in layers]
    own = canonical.decode(config, at="config").get("rootfs", {}).get("diff_ids")
    if own != listed:
        raise IntegrityError(f"config: rootfs.diff_ids are {own}, the layers are {listed}")
    document = f"{Digest.of(config).hex}.json"
    paths = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": document, "RepoTags": [name] if name else None, "Layers": paths}]
    yield from _small("manifest.json", json.dumps(manifest).encode())
    yield from _small(document, config)
    for path, (diff_id, blob) in zip(paths, layers, strict=True):
        if blob is not None:
            yield from _streamed(path, diff_id, blob)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _small(path: str, data: bytes) -> Iterator[bytes]:
    yield _header(path, len(data))
    yield data + _padding(len(data))


def _streamed(path: str, diff_id: Digest, blob: Blob) -> Iterator[bytes]:
    yield _header(path, blob.size)
    seen = 0
    with blob.open() as stream:
        while chunk := stream.read(CHUNK):
            seen += len(chunk)
            if seen > blob.size:
                break
            yield chunk
    if seen != blob.size:
        more = " or more" if seen > blob.size else ""
        raise IntegrityError(f"layer {diff_id}: expected {blob.size} bytes, got {seen}{more}")
    yield _padding(seen)


def _header(path: str, size: int) -> bytes:
    info = tarfile.TarInfo(path)
    info.size = size
    info.mode = 0o644
    return info.tobuf(tarfile.GNU_FORMAT)  # layers may be over 8 GiB


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
