"""Tar headers: POSIX pax interchange format (IEEE 1003.1, ``pax``), written byte by byte.

The bytes are the product, so no library's taste may show in them. A header is a ustar block; what
does not fit it goes into an extended header (``x``) before it, and only then:

- ``path`` and ``linkpath`` where the name is longer than 100 bytes or not ASCII. The ``prefix``
  field is never used: one rule, and readers disagree about where to split;
- ``size``, ``uid``, ``gid`` where the octal field is too small;
- ``SCHILY.xattr.NAME``, values as they are (binary, as every reader of image layers takes them);
- ``hdrcharset=BINARY`` first, where a name is not UTF-8; its bytes are carried unchanged.

User and group names are empty, the mtime is :data:`builder.tree.EPOCH`, device numbers are zero.
"""

import struct

from builder.errors import IntegrityError
from builder.tree import EPOCH, Entry, Kind

BLOCK = 512
END = bytes(2 * BLOCK)
"""The end of an archive: two zero blocks. POSIX would have the file filled up to a record of
10240 bytes; no reader of layers wants that, and it is left out."""

_TYPES = {Kind.FILE: b"0", Kind.SYMLINK: b"2", Kind.DIRECTORY: b"5"}
_NAME = 100
_EXTENDED = b"././@PaxHeader"
_USTAR = struct.Struct("100s 8s 8s 8s 12s 12s 8s c 100s 6s 2s 32s 32s 8s 8s 155s 12x")


def raw(text: str) -> bytes:
    """The bytes of a path or of a link's target. They do not depend on the locale.

    Raises:
        UnicodeEncodeError: A surrogate that does not stand for a byte.
    """
    return text.encode("utf-8", "surrogateescape")


def padding(size: int) -> bytes:
    """The zeros that fill ``size`` bytes of content up to whole blocks."""
    return bytes(-size % BLOCK)


def header(entry: Entry) -> bytes:
    """Everything that stands before the content of ``entry``: the one place that sets a field.

    Raises:
        IntegrityError: An xattr whose name a pax record cannot hold.
        ValueError: A kind that our layers do not have (hard links, devices), or a mode or number
            out of range: a bug of the caller.
    """
    if entry.kind not in _TYPES:
        raise ValueError(f"{entry.path!r}: a layer of ours has no {entry.kind} entries")
    if not 0 <= entry.mode <= 0o7777:
        raise ValueError(f"{entry.path!r}: mode {entry.mode:#o} has more than permission bits")
    records: dict[bytes, bytes] = {}
    name = raw(entry.path) + (b"/" if entry.is_directory else b"")
    target = raw(entry.target or "") if entry.kind is Kind.SYMLINK else b""
    block = _ustar(
        name=_text(b"path", name, records),
        mode=entry.mode,
        uid=_number(b"uid", entry.uid, 7, records),
        gid=_number(b"gid", entry.gid, 7, records),
        size=_number(b"size", entry.size if entry.is_file else 0, 11, records),
        kind=_TYPES[entry.kind],
        target=_text(b"linkpath", target, records),
    )
    for attribute, value in entry.xattrs:
        records[_attribute(entry.path, attribute)] = value
    return _extended(records) + block if records else block


def _ustar(
    *,
    name: bytes,
    kind: bytes,
    size: int,
    mode: int = 0o644,
    uid: int = 0,
    gid: int = 0,
    target: bytes = b"",
) -> bytes:
    def block(checksum: bytes) -> bytes:
        return _USTAR.pack(
            name,
            b"%07o" % mode,
            b"%07o" % uid,
            b"%07o" % gid,
            b"%011o" % size,
            b"%011o" % EPOCH,
            checksum,
            kind,
            target,
            b"ustar",
            b"00",
            b"",
            b"",
            b"%07o" % 0,
            b"%07o" % 0,
            b"",
        )

    # The checksum is the sum of the block with its own field blank; it ends in NUL and a blank.
    return block(b"%06o\0 " % sum(block(b" " * 8)))


def _number(key: bytes, value: int, digits: int, records: dict[bytes, bytes]) -> int:
    """What the octal field holds: the value, or 0 where a record has to hold it."""
    if value < 0:
        raise ValueError(f"{key.decode()} {value} is negative")
    if value < 8**digits:
        return value
    records[key] = b"%d" % value
    return 0


def _text(key: bytes, value: bytes, records: dict[bytes, bytes]) -> bytes:
    """What the name field holds: the value, or the start of it where a record has to hold it."""
    if len(value) <= _NAME and value.isascii():
        return value
    records[key] = value
    ascii_only = value.decode("ascii", "replace").encode("ascii", "replace")
    # Not ending in a slash: that makes a directory of a file for readers of the oldest format.
    return ascii_only[:_NAME].rstrip(b"/")


def _attribute(path: str, name: str) -> bytes:
    key = raw(name)
    # A record is split at its first "=". GNU tar escapes it, others would not undo that.
    if not key or b"=" in key or b"\0" in key:
        raise IntegrityError(
            f"{path!r}: the name of xattr {name!r} cannot be written to a layer",
            hint="remove the file and add it anew in the same step, which drops its xattrs",
        )
    return b"SCHILY.xattr." + key


def _extended(records: dict[bytes, bytes]) -> bytes:
    """The extended header that holds ``records``: in the order of their keys, the charset first."""
    body = b"".join(_record(key, records[key]) for key in sorted(records))
    if not all(_is_utf8(records.get(key, b"")) for key in (b"path", b"linkpath")):
        body = _record(b"hdrcharset", b"BINARY") + body
    return _ustar(name=_EXTENDED, kind=b"x", size=len(body)) + body + padding(len(body))


def _record(key: bytes, value: bytes) -> bytes:
    """Encode one record: ``LENGTH KEY=VALUE``, newline. The length counts its own digits."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
