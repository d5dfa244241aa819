"""Where two images differ: the first layer, the first file in it, and how."""

import tarfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from builder import canonical
from builder.digest import Digest

_FIELDS = (
    *("name", "type", "mode", "uid", "gid", "uname", "gname", "mtime"),
    *("size", "linkname", "pax_headers"),
)


def first_difference(one: Path, other: Path, digests: tuple[Digest, Digest]) -> str:
    """What a person should look at first, of two images that stand in two OCI layouts.

    Only the layers that both layouts hold are opened, so that a base's are passed over.
    """
    manifests = [
        _document(layout, digest) for layout, digest in zip((one, other), digests, strict=True)
    ]
    layers = [[layer["digest"] for layer in manifest["layers"]] for manifest in manifests]
    for number, pair in enumerate(zip_longest(*layers), 1):
        if pair[0] != pair[1]:
            if None in pair:
                return f"layer {number}: only one image has it"
            blobs = [
                _blob(layout, Digest.parse(name))
                for layout, name in zip((one, other), pair, strict=True)
            ]
            return f"layer {number}: {_in_layers(*blobs)}"
    configs = [
        _document(layout, Digest.parse(manifest["config"]["digest"]))
        for layout, manifest in zip((one, other), manifests, strict=True)
    ]
    for key in sorted(set(configs[0]) | set(configs[1])):
        if configs[0].get(key) != configs[1].get(key):
            return f"config: {key}: {configs[0].get(key)!r} against {configs[1].get(key)!r}"
    return "the manifests differ, layers and configs do not"


def _in_layers(one: Path, other: Path) -> str:
    for left, right in zip_longest(_members(one), _members(other)):
        if left is None or right is None:
            there = left or right
            return f"{'' if there is None else there[0].name!r}: only one layer has it"
        for field in _FIELDS:
            values = getattr(left[0], field), getattr(right[0], field)
            if values[0] != values[1]:
                return f"{left[0].name!r}: {field} {values[0]!r} against {values[1]!r}"
        if left[1] != right[1]:
            at = next(
                i
                for i, pair in enumerate(zip(left[1], right[1], strict=True))
                if pair[0] != pair[1]
            )
            return f"{left[0].name!r}: its content, from byte {at}"
    return "the same files, packed differently"


def _members(path: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            yield member, b"" if content is None else content.read()


def _document(layout: Path, digest: Digest) -> dict[str, Any]:
    value = canonical.decode(_blob(layout, digest).read_bytes(), at=str(digest))
    assert isinstance(value, dict)
    return value


def _blob(layout: Path, digest: Digest) -> Path:
    return layout / "blobs" / "sha256" / digest.hex
