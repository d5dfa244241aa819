"""File contents kept from a layer: one pack of deflated files, and a table that finds them.

The table is records of 48 bytes, sorted: the file's sha256, the offset in the pack, the length
there (both big-endian). It is bisected as it is, so it may be a memory map.
"""

import mmap
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Protocol, Self, TypeAlias, cast

from builder.digest import Digest, Hasher
from builder.errors import IntegrityError
from builder.ports import BlobWriter
from builder.tree import Entry
from builder.value import field, value

TEXT_LIMIT = 1 << 20
"""The largest file that the default rule keeps."""
ETC_LIMIT = 64 << 10
"""The largest file below ``etc/`` that the default rule keeps."""
CONTENT_LIMIT = 1 << 30
"""The largest content that is unpacked."""

_RECORD = struct.Struct(">32sQQ")
_SHIFT = 40  # a place as one number: the offset above, below it the length, which is under 1 TiB
_MASK = (1 << _SHIFT) - 1
_WHOLE = 4 << 20
_LEVEL = 0  # isal's fastest: for files of 4 kB twice as fast as its level 1, and 10 % larger
_PACKAGES = ("/site-packages/", "/dist-packages/")
_SUFFIXES = frozenset(
    "py pyi jinja json txt md toml cfg yaml yml typed pth".split()  # noqa: SIM905 - a list of words
)
_NAMES = frozenset(
    {"METADATA", "RECORD", "WHEEL", "INSTALLER", "entry_points.txt", "top_level.txt"}
    | {"direct_url.json"}
)

Raw: TypeAlias = bytes | mmap.mmap


def python_text(entry: Entry) -> bool:
    """The default rule for what to keep: the text of Python packages, and small files of ``etc``.

    That is what patches change and what tells which packages an image has; native objects,
    compiled files and data stay out.
    """
    path = entry.path
    if not entry.is_file or entry.size > TEXT_LIMIT:
        return False
    if path.startswith("etc/"):
        return entry.size <= ETC_LIMIT
    if "-packages/" not in path or not any(part in f"/{path}" for part in _PACKAGES):
        return False
    name = path.rpartition("/")[2]
    _, dot, suffix = name.rpartition(".")
    return (dot == "." and suffix in _SUFFIXES) or name in _NAMES


@value
class Kept:
    """What was kept of one layer: the table's bytes, and the size of the pack they point into."""

    table: bytes = field(repr=False)
    size: int


class KeptTable:
    """Where in a pack each file is, over the table's raw bytes."""

    __slots__ = ("_count", "raw")

    def __init__(self, raw: Raw) -> None:
        self._count, rest = divmod(len(raw), _RECORD.size)
        if rest:
            raise IntegrityError(
                f"kept table: {len(raw)} bytes, wanted a multiple of {_RECORD.size}"
            )
        self.raw = raw

    @classmethod
    def build(cls, places: Mapping[Digest, tuple[int, int]]) -> Self:
        """A table of contents that stand in some blob at these offsets, with these lengths."""
        packed = (_RECORD.pack(bytes.fromhex(key.hex), *place) for key, place in places.items())
        return cls(b"".join(sorted(packed)))

    def __len__(self) -> int:
        return self._count

    def find(self, digest: Digest) -> tuple[int, int] | None:
        """Offset and length of the content with this digest, or ``None``."""
        key = bytes.fromhex(digest.hex)
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            start = middle * _RECORD.size
            if self.raw[start : start + len(key)] < key:
                low = middle + 1
            else:
                high = middle
        if low == self._count:
            return None
        found, offset, length = _RECORD.unpack_from(self.raw, low * _RECORD.size)
        return (offset, length) if found == key else None


class Pack:
    """A pack under way. Equal contents are written once."""

    __slots__ = ("_out", "_places", "_size")

    def __init__(self, out: BlobWriter) -> None:
        self._out = out
        self._size = 0
        self._places: dict[bytes, int] = {}  # flat: there may be a hundred thousand

    def keep(self, pieces: Iterable[memoryview], *, size: int) -> Digest:
        """Append a content of ``size`` bytes, and return its digest."""
        from isal import isal_zlib  # noqa: PLC0415 - reading a pack does not need it

        if size <= _WHOLE:
            data = b"".join(pieces)
            digest = Digest.of(data)
            key = bytes.fromhex(digest.hex)
            if key not in self._places:
                start = self._size
                self._write(isal_zlib.compress(data, _LEVEL))
                self._note(key, start)
            return digest
        # Whether the pack has it already is known at the end only: rare, and harmless.
        start = self._size
        hasher = Hasher()
        deflater = isal_zlib.compressobj(_LEVEL)
        for piece in pieces:
            hasher.update(piece)
            self._write(deflater.compress(piece))
        self._write(deflater.flush())
        digest = hasher.digest()
        self._note(bytes.fromhex(digest.hex), start)
        return digest

    def finish(self) -> Kept:
        """The table of what was kept. Committing the pack is left to its owner."""
        places = self._places
        records = (
            _RECORD.pack(key, places[key] >> _SHIFT, places[key] & _MASK) for key in sorted(places)
        )
        return Kept(table=b"".join(records), size=self._size)

    def _note(self, key: bytes, start: int) -> None:
        self._places[key] = start << _SHIFT | (self._size - start)

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._size += len(data)


def unpack(data: bytes, digest: Digest) -> bytes:
    """The content that ``data``, cut from a pack, holds.

    Raises:
        IntegrityError: It is not what ``digest`` names.
    """
    return _content(zlib.decompressobj(), data, digest, zlib.error)


def unpack_quickly(data: bytes, digest: Digest) -> bytes:
    """As :func:`unpack`, in half the time; loading what it takes pays from some hundred files."""
    from isal import isal_zlib  # noqa: PLC0415 - see above

    return _content(
        isal_zlib.decompressobj(), data, digest, cast("type[Exception]", isal_zlib.error)
    )


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _content(inflater: _Inflater, data: bytes, digest: Digest, refusal: type[Exception]) -> bytes:
    at = f"kept file {digest.short}"
    try:
        content = inflater.decompress(data, CONTENT_LIMIT)
    except refusal as error:
        raise IntegrityError(f"{at}: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise IntegrityError(f"{at}: {len(data)} bytes are not one zlib stream")
    return digest.check(content, at=at)
