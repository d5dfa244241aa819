"""The header of a safetensors file, read within limits.

safetensors, "Format": eight bytes (little-endian) give the length of a JSON object; it has a dtype,
a shape and the offsets of each tensor in what follows. There are no holes, and nothing is left at
the end. No content is read: what the bytes are is for the digest to say.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, BinaryIO

from builder import canonical
from builder.errors import IntegrityError
from builder.value import value

HEADER_LIMIT = 32 << 20
"""The longest header that is read. The format allows 100 MB; large models have up to 10."""

_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
"""Bits of an element. A dtype that is not among them has no size to check."""


@value
class Header:
    """What a file holds: the dtype of each tensor, by name."""

    dtypes: Mapping[str, str]


def read_header(file: BinaryIO, *, size: int, at: str) -> Header:
    """Read the header at the start of ``file``.

    Args:
        file: The file, at its start.
        size: How many bytes it has.
        at: The file, for messages.

    Raises:
        IntegrityError: It is no safetensors file, or its header does not fit what follows.
    """
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if length > size - 8:
        raise IntegrityError(
            f"{at}: no safetensors file: {size} bytes cannot have a header of {length}"
        )
    if length > HEADER_LIMIT:
        raise IntegrityError(f"{at}: a header of {length} bytes, the limit is {HEADER_LIMIT}")
    document = canonical.decode(file.read(length), at=f"{at}: header", limit=HEADER_LIMIT)
    if not isinstance(document, dict):
        raise IntegrityError(f"{at}: header: expected an object, got {document!r:.100}")
    metadata = document.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(x, str) for x in metadata.values()):
        raise IntegrityError(f"{at}: header: __metadata__ is no object of texts")
    spans = sorted(_span(entry, at=f"{at}: {name!r:.200}") for name, entry in document.items())
    place = 0
    for begin, end in spans:
        if begin != place:
            raise IntegrityError(f"{at}: header: expected a tensor at {place}, got one at {begin}")
        place = end
    if place != size - 8 - length:
        raise IntegrityError(
            f"{at}: the header speaks of {place} bytes, {size - 8 - length} follow it"
        )
    return Header(dtypes={name: entry["dtype"] for name, entry in document.items()})


def _span(entry: Any, *, at: str) -> tuple[int, int]:
    """Where a tensor is, held to what its dtype and shape take."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise IntegrityError(f"{at}: expected dtype, shape and data_offsets, got {entry!r:.200}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or not _counts(shape) or not _counts(offsets, of=2):
        raise IntegrityError(f"{at}: dtype, shape or data_offsets are none: {entry!r:.200}")
    begin, end = offsets
    bits = _BITS.get(dtype)
    if end < begin or (bits is not None and (end - begin) * 8 != prod(shape) * bits):
        raise IntegrityError(
            f"{at}: {dtype} of shape {shape!r:.100} does not take the bytes {begin} to {end}"
        )
    return begin, end


def _counts(values: Any, *, of: int | None = None) -> bool:
    return (
        isinstance(values, list)
        and (len(values) <= 64 if of is None else len(values) == of)
        and all(type(item) is int and 0 <= item < 1 << 63 for item in values)
    )
