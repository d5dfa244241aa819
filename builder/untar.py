"""A strict streaming reader of tar: what unpackers disagree on is refused rather than guessed.

Reads ustar, pax, GNU and v7 archives (POSIX.1-2017 pax, "ustar Interchange Format"; GNU tar
manual, "Basic Tar Format") as they come, without seeking and in constant memory. Nothing is
extracted: a member is a value, and its content passes by once.

Where readers differ, the rule is that of Go's archive/tar, which every container engine unpacks
with; where even that would hide something (global records that rename, sparse files, data after
the end), the archive is refused.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import NoReturn, TypeAlias

from builder.blocks import BLOCK, Blocks, checksum, signed_checksum
from builder.digest import Digest, Hasher
from builder.errors import IntegrityError
from builder.pax import Extended
from builder.tree import Entry, Kind, normal

EXTENDED_LIMIT = 1 << 20
"""The most bytes of one extended header, as in Go's archive/tar."""
PATH_LIMIT = 4096
"""The most bytes of a path or link target: PATH_MAX, beyond which no kernel would open it."""
ENTRY_LIMIT = 1_000_000
"""The most members of one archive. The largest images in use have about 150,000."""
SIZE_LIMIT = 1 << 43
"""The most bytes that a header may claim for one member."""
ID_LIMIT = 0xFFFF_FFFE
"""The largest user or group id (the next one means "none" to the kernel)."""

_HEADER = struct.Struct("100s24s12s12x8sc100s8s64x8s8s155s12s")
_OWNERS = 1000
_Owner: TypeAlias = tuple[int, int, int]
_ZEROS = bytes(BLOCK)
_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,  # "contiguous": a regular file, to readers that take it at all
    b"1": Kind.HARDLINK,
    b"2": Kind.SYMLINK,
    b"3": Kind.CHARACTER,
    b"4": Kind.BLOCK,
    b"5": Kind.DIRECTORY,
    b"6": Kind.FIFO,
}
_USTAR = b"ustar\0"
_GNU = b"ustar  \0"
_PLAIN = frozenset({Kind.FILE, Kind.DIRECTORY})  # most entries by far, and none has a target


class Member:
    """One member of an archive: its entry (without digest), and its content while it passes."""

    __slots__ = ("_stream", "entry")

    def __init__(self, entry: Entry, stream: Blocks) -> None:
        self.entry = entry
        self._stream = stream

    def chunks(self) -> Iterator[memoryview]:
        """The content, once, while this member is the current one. A view is valid as long as
        it is held; what is not taken before the next member is skipped.

        Raises:
            IntegrityError: The archive ends inside the content.
            RuntimeError: Another member is the current one.
        """
        return self._current().content()

    def digest(self) -> Digest:
        """Take the content only to hash it. Raises as :meth:`chunks`."""
        stream = self._current()
        if (whole := stream.whole()) is not None:
            return Digest.of(whole)
        hasher = Hasher()
        for piece in stream.content():
            hasher.update(piece)
        return hasher.digest()

    def _current(self) -> Blocks:
        if self._stream.current is not self:
            raise RuntimeError(f"the content of {self.entry.path!r} has passed")
        return self._stream


def read(chunks: Iterable[bytes], *, at: str) -> Iterator[Member]:
    """Read an archive from its uncompressed bytes, however they are cut into chunks.

    Paths come out relative to the root, without ``./`` and trailing slashes; the root's own entry
    is left out. A path may appear twice: unpackers let the last one win. The chunks are read to
    their end, and after the end mark only zeros may follow.

    Args:
        chunks: The bytes.
        at: What they are, for messages.

    Raises:
        IntegrityError: Not a tar, a wrong checksum, a truncated archive, a limit exceeded, a path
            that leaves the root, a record or member kind that unpackers disagree on.
    """
    stream = Blocks(chunks, at=at)
    reader = _Reader(stream, at=at)
    while (header := stream.header()) != _ZEROS:
        if (entry := reader.entry(header)) is not None:
            stream.current = member = Member(entry, stream)
            yield member
    stream.current = None
    reader.finish()


class _Reader:
    """Headers to entries; holds the extended headers that wait for their member."""

    __slots__ = ("_at", "_count", "_extended", "_owners", "_stream")

    def __init__(self, stream: Blocks, *, at: str) -> None:
        self._stream = stream
        self._at = at
        self._count = 0
        self._owners: dict[bytes, _Owner] = {}
        self._extended: Extended | None = None

    def entry(self, header: bytes) -> Entry | None:
        """The entry that a header begins; ``None`` for extended headers and the root itself."""
        name, owner, size, stated, flag, link, magic, major, minor, prefix, tail = _HEADER.unpack(
            header
        )
        wanted = self._number(stated, "checksum")
        if wanted != (got := checksum(header)) and wanted != signed_checksum(header):
            self._refuse(f"not a tar header: its checksum is {got}, its field says {wanted}")
        length = self._number(size, "size")
        kind = _KINDS.get(flag)
        if kind is None:
            self._extend(flag, length)
            return None
        self._count += 1
        if self._count > ENTRY_LIMIT:
            self._refuse(f"more than {ENTRY_LIMIT} members")
        name = name.partition(b"\0")[0]
        if prefix[0] or prefix[12]:
            name = self._prefixed(name, magic, prefix, tail)
        if kind is Kind.CHARACTER and not (
            (magic[:6] == _USTAR or magic == _GNU)  # v7 has no numbers of devices
            # The kernel has 12 and 20 bits of them.
            and (self._number(major, "device") & 0xFFF or self._number(minor, "device") & 0xF_FFFF)
        ):
            self._refuse(f"{name!r} is the character device 0:0, which overlayfs takes as deleted")
        return self._made(
            kind=kind,
            v7=flag == b"\0",
            name=name,
            link=link.partition(b"\0")[0],
            size=length,
            owner=self._owners.get(owner) or self._owner(owner),
        )

    def _prefixed(self, name: bytes, magic: bytes, prefix: bytes, tail: bytes) -> bytes:
        """A name with what stands before it in another field, whatever the version says: no reader
        looks at that."""
        if magic[:6] == _USTAR:
            # Old star writes atime and ctime behind a shorter prefix and signs with "tar".
            part = prefix[:131] if tail[8:] == b"tar\0" else prefix
            return part.partition(b"\0")[0] + b"/" + name if part[0] else name
        if magic == _GNU:  # atime and ctime; where they are no numbers, Go takes them for a prefix
            for start in (0, 12):
                if prefix[start] and self._number(prefix[start : start + 12], "time") >> 63:
                    self._refuse(f"{name!r}: a time that is out of range")
        return name

    def _made(
        self, *, kind: Kind, v7: bool, name: bytes, link: bytes, size: int, owner: _Owner
    ) -> Entry | None:
        """The entry of these fields, as far as no extended header overrides them."""
        extended, self._extended = self._extended, None
        xattrs: tuple[tuple[str, bytes], ...] = ()
        mode, uid, gid = owner
        if extended is not None:
            name = name if extended.path is None else extended.path
            link = link if extended.link is None else extended.link
            size = size if extended.size is None else extended.size
            uid = uid if extended.uid is None else extended.uid
            gid = gid if extended.gid is None else extended.gid
            xattrs = tuple(sorted(extended.xattrs.items()))
        if size > SIZE_LIMIT or uid > ID_LIMIT or gid > ID_LIMIT:
            self._refuse(f"{name!r}: size {size} or owner {uid}:{gid} is out of range")
        if kind is Kind.FILE and name.endswith(b"/"):  # how v7 writes a directory
            kind = Kind.DIRECTORY
            if not v7:
                self._refuse(f"{name!r}: a file to some unpackers, and a directory to others")
            if size:
                self._refuse(f"the directory {name!r} has {size} bytes of content")
        if kind is not Kind.FILE:  # Go: such a header has no data, whatever its size says
            size = 0
        self._stream.body(size)
        path = self._path(name)
        if path is None:
            if kind is not Kind.DIRECTORY:
                self._refuse(f"the root itself is a {kind}, wanted a directory")
            return None
        return Entry(
            path=path,
            kind=kind,
            mode=mode,
            uid=uid,
            gid=gid,
            size=size,
            target=None if kind in _PLAIN else self._target(kind, link, path),
            xattrs=xattrs,
        )

    def _target(self, kind: Kind, link: bytes, path: str) -> str | None:
        if kind is Kind.SYMLINK:
            return self._text(link, path)
        if kind is Kind.HARDLINK:
            return normal(self._text(link, path), at=f"{self._at}: link target of {path!r}")
        return None

    def finish(self) -> None:
        """Check that nothing but zeros follows the end mark."""
        if self._extended is not None:
            self._refuse("the archive ends after an extended header, wanted its member")
        for piece in self._stream.rest():
            if piece.nbytes and bytes(piece).strip(b"\0"):
                raise IntegrityError(f"{self._at}: data other than zeros after the end mark")

    def _path(self, name: bytes) -> str | None:
        if len(name) > PATH_LIMIT:
            self._refuse(f"a path of {len(name)} bytes, the limit is {PATH_LIMIT}")
        path = name.decode("utf-8", "surrogateescape")
        if path[:1] not in "/." and "/." not in path and "//" not in path and "\0" not in path:
            return path[:-1] if path[-1] == "/" else path  # as nearly all are: nothing to mend
        if not path.strip("/.") and path and ".." not in path:
            return None
        return normal(path, at=self._at)

    def _text(self, link: bytes, path: str) -> str:
        if not link or len(link) > PATH_LIMIT:  # a NUL ends it, or was refused, before
            self._refuse(f"{path!r}: a link target must have 1 to {PATH_LIMIT} bytes, got {link!r}")
        return link.decode("utf-8", "surrogateescape")

    def _extend(self, flag: bytes, length: int) -> None:
        """Take an extended header: pax ``x`` and ``g``, GNU ``L`` and ``K``."""
        if flag not in b"xgLK":
            self._refuse(
                f"a member of type {flag!r}"
                + (" (sparse), which is not supported" if flag == b"S" else ", which is unknown")
            )
        if length > EXTENDED_LIMIT:
            self._refuse(f"an extended header of {length} bytes, the limit is {EXTENDED_LIMIT}")
        if flag == b"g" and self._extended is not None:
            self._refuse("a global header between an extended header and its member")
        place = f"{self._at}: byte {self._stream.position}"
        self._stream.body(length)
        data = self._stream.exactly(length)
        self._stream.left = 0
        if flag == b"g":
            Extended.check_global(data, at=place)
            return
        if self._extended is None:
            self._extended = Extended()
        self._extended.take(flag, data, at=place)

    def _owner(self, fields: bytes) -> _Owner:
        """Mode, uid and gid, which are the same few for most members."""
        mode, uid, gid = (
            self._number(fields[start : start + 8], what)
            for start, what in ((0, "mode"), (8, "uid"), (16, "gid"))
        )
        if len(self._owners) < _OWNERS:
            self._owners[fields] = (mode & 0o7777, uid, gid)
        return mode & 0o7777, uid, gid

    def _number(self, field: bytes, what: str) -> int:
        """A numeric field: octal digits, or GNU's base-256 where the first bit is set."""
        if 0x80 <= field[0] < 0xC0:  # from 0xC0 on it is negative
            return int.from_bytes(field, "big") ^ (0x80 << 8 * (len(field) - 1))
        digits = field.partition(b"\0")[0].strip()
        try:
            # isdigit, because int() would take signs, underscores and 0o as well
            if digits.isdigit():
                return int(digits, 8)
        except ValueError:
            digits = field
        if digits or field.strip(b"\0 "):  # behind a NUL: Go reads it, others do not
            self._refuse(f"{what}: expected an octal number, got {field!r}")
        return 0

    def _refuse(self, what: str) -> NoReturn:
        position = max(0, self._stream.position - BLOCK)
        raise IntegrityError(f"{self._at}: byte {position}: {what}")
