"""Tiny layers for the tests: archives from values, archives from raw headers, layers in memory."""

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.kept import KeptTable, unpack
from builder.scan import scan
from builder.tree import Entry, Kind
from builder.untar import read

END = bytes(1024)
_TYPES = {
    Kind.FILE: tarfile.REGTYPE,
    Kind.DIRECTORY: tarfile.DIRTYPE,
    Kind.SYMLINK: tarfile.SYMTYPE,
    Kind.HARDLINK: tarfile.LNKTYPE,
    Kind.CHARACTER: tarfile.CHRTYPE,
    Kind.BLOCK: tarfile.BLKTYPE,
    Kind.FIFO: tarfile.FIFOTYPE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One member to be written."""

    name: str
    kind: Kind = Kind.FILE
    data: bytes = b""
    target: str = ""
    mode: int = 0o644


def file(name: str, data: bytes = b"", *, mode: int = 0o644) -> Item:
    return Item(name=name, data=data, mode=mode)


def directory(name: str, *, mode: int = 0o755) -> Item:
    return Item(name=name, kind=Kind.DIRECTORY, mode=mode)


def symlink(name: str, target: str) -> Item:
    return Item(name=name, kind=Kind.SYMLINK, target=target, mode=0o777)


def hardlink(name: str, target: str) -> Item:
    return Item(name=name, kind=Kind.HARDLINK, target=target)


def archive(items: Iterable[Item]) -> bytes:
    """A pax archive as Python writes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for item in items:
            info = tarfile.TarInfo(item.name)
            info.type = _TYPES[item.kind]
            info.mode = item.mode
            info.linkname = item.target
            info.size = len(item.data)
            tar.addfile(info, io.BytesIO(item.data))
    return out.getvalue()


def header(
    name: bytes,
    *,
    flag: bytes = b"0",
    size: bytes = b"0",
    link: bytes = b"",
    magic: bytes = b"ustar\x0000",
    mode: bytes = b"644",
    uid: bytes = b"0",
    device: bytes = b"",
    prefix: bytes = b"",
) -> bytes:
    """One header block, its fields as given, with a right checksum."""
    block = b"".join(
        (
            name.ljust(100, b"\0"),
            mode.ljust(8, b"\0"),
            uid.ljust(8, b"\0"),
            b"0".ljust(8, b"\0"),
            size.ljust(12, b"\0"),
            b"0".ljust(12, b"\0"),
            b" " * 8,
            flag,
            link.ljust(100, b"\0"),
            magic.ljust(8, b"\0"),
            bytes(64),
            device.ljust(16, b"\0"),
            prefix.ljust(167, b"\0"),
        )
    )
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def pax(*records: tuple[bytes, bytes], flag: bytes = b"x") -> bytes:
    """An extended header with these records."""
    data = b""
    for key, value in records:
        length = len(key) + len(value) + 3
        while len(b"%d" % length) + len(key) + len(value) + 3 != length:
            length += 1
        data += b"%d %s=%s\n" % (length, key, value)
    return header(b"pax", flag=flag, size=b"%o" % len(data)) + padded(data)


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def members(data: bytes, *, size: int = 1 << 20) -> list[tuple[Entry, bytes]]:
    """All entries of an archive with their contents."""
    return [
        (member.entry, b"".join(member.chunks())) for member in read(in_pieces(data, size), at="t")
    ]


class MemoryWriter:
    """A BlobWriter that keeps its bytes at hand."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, chunk: bytes | bytearray | memoryview) -> int:
        self.data += chunk
        return len(chunk)

    def commit(self, expected: Digest | None = None, *, size: int | None = None) -> Digest:
        digest = Digest.of(bytes(self.data))
        if expected not in (None, digest) or size not in (None, len(self.data)):
            raise IntegrityError(f"blob: expected {expected}, got {digest}")
        return digest


def everything(entry: Entry) -> bool:
    return entry.is_file


@dataclass
class MemoryLayer:
    """A layer in memory that counts what it is asked for."""

    data: bytes = field(repr=False)
    keep: Callable[[Entry], bool] = everything
    streamed: int = 0
    wanted: list[str] = field(default_factory=list)
    _index: FileIndex | None = None
    _pack: bytes = b""
    _table: KeptTable = field(default_factory=lambda: KeptTable(b""))

    @property
    def index(self) -> FileIndex:
        if self._index is None:
            self.streamed += 1
            writer = MemoryWriter()
            result = scan([self.data], keep=self.keep, kept=writer)
            self._index = result.index
            self._pack = bytes(writer.data)
            self._table = KeptTable(result.kept.table)
        return self._index

    def read(self, entry: Entry) -> bytes:
        assert entry.digest is not None
        place = self._table.find(entry.digest)
        assert place is not None
        return unpack(self._pack[place[0] : place[0] + place[1]], entry.digest)

    def read_many(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
        return ((entry, self.read(entry)) for entry in entries)

    def prefetch(self, paths: Iterable[str]) -> None:
        self.wanted += paths


def layer(*items: Item) -> MemoryLayer:
    return MemoryLayer(archive(items))
