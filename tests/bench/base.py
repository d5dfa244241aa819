"""A large base image out of what pip installed here: real files, as many as asked for."""

import io
import sysconfig
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isal import igzip

from builder import canonical
from builder.digest import Digest, Hasher
from builder.oci import Descriptor, Manifest

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

PACKAGES = "usr/local/lib/python3.12/dist-packages"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseImage:
    """Documents and the files of the layers, bottom first."""

    manifest: Manifest
    config: bytes
    layers: tuple[tuple[Path, Descriptor], ...]
    diff_ids: tuple[Digest, ...]
    inflated: tuple[int, ...]
    """The layers' sizes as tars."""

    @property
    def size(self) -> int:
        return sum(descriptor.size for _, descriptor in self.layers)


def make_base(directory: Path, *, sizes: list[int], files: Mapping[str, bytes]) -> BaseImage:
    """A base of layers that have about these compressed sizes.

    Args:
        files: What the last layer has, too.
    """
    layers = []
    for number, size in enumerate(sizes):
        extra = files if number == len(sizes) - 1 else {}
        path = directory / f"layer-{number}"
        layers.append((path, *_layer(path, f"layer{number}", size, extra)))
    config = canonical.encode(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin"]},
            "history": [{"created_by": f"layer {number}"} for number in range(len(layers))],
            "rootfs": {"type": "layers", "diff_ids": [str(item[2]) for item in layers]},
        }
    )
    raw = canonical.encode(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _described(Digest.of(config), len(config), _CONFIG),
            "layers": [_described(item[1].digest, item[1].size, _LAYER) for item in layers],
        }
    )
    return BaseImage(
        manifest=Manifest.parse(raw, at="base"),
        config=config,
        layers=tuple((path, descriptor) for path, descriptor, _, _ in layers),
        diff_ids=tuple(item[2] for item in layers),
        inflated=tuple(item[3] for item in layers),
    )


class _Counting(io.RawIOBase):
    """Hashes and counts on the way to a file."""

    def __init__(self, file: "SupportsWrite[bytes]") -> None:
        self._file = file
        self._hasher = Hasher()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # takes bytes alone
        self._hasher.update(data)
        self.size += len(data)
        self._file.write(data)
        return len(data)

    def digest(self) -> Digest:
        return self._hasher.digest()


def _layer(
    path: Path, name: str, size: int, extra: Mapping[str, bytes]
) -> tuple[Descriptor, Digest, int]:
    with path.open("wb") as file:
        packed = _Counting(file)
        # isal's compressor has no types, and is four times as fast as zlib's.
        with igzip.open(packed, "wb", compresslevel=1) as squeezed:  # type: ignore[no-untyped-call]  # isal has no types here
            plain = _Counting(squeezed)
            with tarfile.open(fileobj=plain, mode="w|", bufsize=1 << 20) as archive:
                for member, data in _members(name, extra):
                    archive.addfile(member, io.BytesIO(data))
                    if packed.size >= size:
                        break
    descriptor = Descriptor(media_type=_LAYER, digest=packed.digest(), size=packed.size)
    return descriptor, plain.digest(), plain.size


def _members(name: str, extra: Mapping[str, bytes]) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for path, data in extra.items():
        yield _file(f"{PACKAGES}/{path}", data)
    installed = Path(sysconfig.get_path("purelib"))
    files = [
        (file.relative_to(installed).as_posix(), file)
        for file in sorted(installed.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    ]
    copy = 0
    while True:
        for place, file in files:
            # No content stands in the image twice: it would be read, hashed and kept only once.
            mark = f"\n# {name} {copy}\n".encode()
            yield _file(f"{PACKAGES}/{name}_{copy}/{place}", file.read_bytes() + mark)
        copy += 1


def _file(path: str, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(path)
    member.size = len(data)
    member.mode = 0o644
    member.mtime = 1_700_000_000
    return member, data


def _described(digest: Digest, size: int, media_type: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": str(digest), "size": size}
