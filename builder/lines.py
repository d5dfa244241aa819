"""The lines of a file index: how they are written and read. ``builder.files`` searches them."""

import re

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.tree import Entry, Kind

INDEX_LIMIT = 256 << 20
"""The most bytes of an index, against layers made to fill the memory: 100,000 files take 20 MB."""

# Everything up to "!" is written with "!", everything from "~" on with "~", both as two hex digits:
# the escaped forms sort between the blank that ends a path and the characters that stand as they
# are, below and above, in the order of what they stand for.
_UNSAFE = re.compile(rb"[\x00-!~-\xff]")
_ESCAPED = re.compile(rb"[!~](..)")
WHITEOUT = b"whiteout"
OPAQUE = b"opaque"


class Lines:
    """An index under way: one line for each thing that is said of a path."""

    __slots__ = ("_at", "_entries", "_marks", "_size")

    def __init__(self, *, at: str) -> None:
        self._at = at
        self._entries: dict[str, bytes] = {}  # each line without its path, which is the key
        self._marks: set[bytes] = set()
        self._size = 0

    def add(self, entry: Entry, digest: Digest | None = None) -> None:
        """Say what is at a path; ``digest`` is the content's where the entry has none yet.

        Raises:
            IntegrityError: As :meth:`FileIndex.build`.
        """
        path = entry.path
        before = self._entries.get(path)
        if before is not None:
            if before.startswith(b" dir ") and not entry.is_directory:
                raise IntegrityError(
                    f"{self._at}: {path!r} is a directory and then a {entry.kind} in one layer"
                )
            self._size -= len(path) + len(before)
        rest = self._entries[path] = encode(entry, digest or entry.digest)
        self._grow(len(path) + len(rest))

    def whiteout(self, path: str) -> None:
        """Say that ``path`` of lower layers is gone."""
        self._mark(escape(path) + b" whiteout\n")

    def opaque(self, path: str) -> None:
        """Say that lower layers' content of the directory ``path`` is hidden."""
        self._mark(escape(path) + b" opaque\n")

    def raw(self) -> bytes:
        """The bytes of the index; nothing can be added any more.

        Raises:
            IntegrityError: Something lies below a path that is no directory: unpackers would
                follow it, or fail, or replace it, depending on the order.
        """
        checked: set[str] = {""}
        for path in self._entries:
            above = path.rpartition("/")[0]
            while above not in checked:
                rest = self._entries.get(above)
                if rest is not None and not rest.startswith(b" dir "):
                    kind = decode(above, escape(above) + rest[:-1]).kind
                    raise IntegrityError(
                        f"{self._at}: {path!r} lies below {above!r}, which is a {kind}"
                        " in the same layer"
                    )
                checked.add(above)
                above = above.rpartition("/")[0]
        lines = [escape(path) + rest for path, rest in self._entries.items()]
        self._entries.clear()  # a hundred thousand of them are not kept twice
        lines += self._marks
        lines.sort()
        return b"".join(lines)

    def _mark(self, line: bytes) -> None:
        if line not in self._marks:
            self._marks.add(line)
            self._grow(len(line))

    def _grow(self, count: int) -> None:
        self._size += count
        if self._size > INDEX_LIMIT:
            raise IntegrityError(
                f"{self._at}: the file index is over the limit of {INDEX_LIMIT} bytes"
            )


def encode(entry: Entry, digest: Digest | None) -> bytes:
    """The line of an entry behind its path, with its end; ``digest`` is the content's, for a file.

    Raises:
        ValueError: A file without a digest: a bug of the caller.
    """
    kind = entry.kind
    text = f" {kind} {entry.mode:04o} {entry.uid}:{entry.gid}"
    if kind is Kind.FILE:
        if digest is None:
            raise ValueError(f"a file without a digest: {entry.path!r}")
        text = f"{text} {entry.size} {digest.hex}"
    line = text.encode()
    if entry.target is not None:
        line += b" " + escape(entry.target)
    for name, value in entry.xattrs:
        line += b" " + escape(name).replace(b"=", b"!3d") + b"=" + value.hex().encode()
    return line + b"\n"


def decode(path: str, line: bytes) -> Entry:
    """The entry at ``path`` from its line, without its end.

    Raises:
        IntegrityError: Not a line that :func:`encode` writes.
    """
    try:
        _, word, mode, owner, *rest = line.split(b" ")
        kind = Kind(word.decode())
        uid, gid = owner.split(b":")
        size, digest, target = 0, None, None
        if kind is Kind.FILE:
            size, digest = int(rest[0]), _digest(rest[1])
            del rest[:2]
        elif kind in (Kind.SYMLINK, Kind.HARDLINK):
            target = unescape(rest.pop(0))
        pairs = [item.split(b"=") for item in rest]
        return Entry(
            path=path,
            kind=kind,
            mode=int(mode, 8),
            uid=int(uid),
            gid=int(gid),
            size=size,
            digest=digest,
            target=target,
            xattrs=tuple((unescape(name), bytes.fromhex(v.decode())) for name, v in pairs),
        )
    except (ValueError, IndexError) as error:
        raise IntegrityError(f"file index: not a line of an index: {line!r}") from error


def _digest(hexadecimal: bytes) -> Digest:
    return Digest.parse(f"sha256:{hexadecimal.decode()}", at="file index", refusal=IntegrityError)


def escape(text: str) -> bytes:
    """A name as it stands in a line."""
    data = text.encode("utf-8", "surrogateescape")
    if _UNSAFE.search(data) is None:
        return data
    return _UNSAFE.sub(lambda found: b"%c%02x" % (b"!~"[found[0][0] > 0x21], found[0][0]), data)


def unescape(data: bytes) -> str:
    """The name that :func:`escape` was given."""
    if b"!" in data or b"~" in data:
        data = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), data)
    return data.decode("utf-8", "surrogateescape")
