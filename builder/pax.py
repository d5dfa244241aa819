"""Extended tar headers: pax records (POSIX.1-2017, "pax Extended Header") and GNU long names."""

from collections.abc import Iterator

from builder.errors import IntegrityError

_XATTR = b"SCHILY.xattr."
_CHARSETS = frozenset({b"BINARY", b"ISO-IR 10646 2000 UTF-8"})
_DECISIVE = frozenset({b"path", b"linkpath", b"size", b"uid", b"gid", b"hdrcharset"})
_DIGITS_LIMIT = 20


class Extended:
    """What extended headers say of the next member; ``None`` where they say nothing."""

    __slots__ = ("_flags", "gid", "link", "path", "size", "uid", "xattrs")

    def __init__(self) -> None:
        self._flags = b""
        self.path: bytes | None = None
        self.link: bytes | None = None
        self.size: int | None = None
        self.uid: int | None = None
        self.gid: int | None = None
        self.xattrs: dict[str, bytes] = {}

    def take(self, flag: bytes, data: bytes, *, at: str) -> None:
        """Add one header: ``x`` records, an ``L`` long name, a ``K`` long link target.

        Raises:
            IntegrityError: Malformed, or two headers that readers would weigh differently.
        """
        if flag in self._flags or (self._flags and b"x" in self._flags + flag):
            raise IntegrityError(f"{at}: several extended headers for one member")
        self._flags += flag
        if flag == b"L":
            self.path = data.partition(b"\0")[0]
        elif flag == b"K":
            self.link = data.partition(b"\0")[0]
        else:
            for key, value in records(data, at=at):
                self._record(key, value, at=at)

    @staticmethod
    def check_global(data: bytes, *, at: str) -> None:
        """Let a global header pass if it says nothing of what we read.

        POSIX applies its records to all members that follow; the engines skip them.

        Raises:
            IntegrityError: It would change what the two see.
        """
        for key, _ in records(data, at=at):
            if key in _DECISIVE or key.startswith((_XATTR, b"GNU.sparse.")):
                raise IntegrityError(
                    f"{at}: the global pax record {key!r}, which unpackers disagree on"
                )

    def _record(self, key: bytes, value: bytes, *, at: str) -> None:
        if key.startswith(_XATTR):
            name = key[len(_XATTR) :].decode("utf-8", "surrogateescape")
            if not name or "\0" in name:
                raise IntegrityError(f"{at}: a pax record for an xattr named {name!r}")
            self.xattrs[name] = value
        elif key.startswith(b"GNU.sparse."):
            raise IntegrityError(f"{at}: a sparse member ({key!r}), which is not supported")
        elif key == b"hdrcharset" and value and value not in _CHARSETS:
            raise IntegrityError(f"{at}: pax hdrcharset {value!r} is not supported")
        # POSIX: of two records the last counts, and an empty value leaves the header's own field.
        elif key == b"path":
            self.path = _name(value, at=at)
        elif key == b"linkpath":
            self.link = _name(value, at=at)
        elif key == b"size":
            self.size = _number(key, value, at=at)
        elif key == b"uid":
            self.uid = _number(key, value, at=at)
        elif key == b"gid":
            self.gid = _number(key, value, at=at)


def records(data: bytes, *, at: str) -> Iterator[tuple[bytes, bytes]]:
    """The (keyword, value) pairs of a pax header, binary and in order.

    Raises:
        IntegrityError: A length that lies, no ``=``, no newline.
    """
    position = 0
    while position < len(data):
        blank = data.find(b" ", position, position + _DIGITS_LIMIT)
        digits = data[position:blank] if blank > 0 else b""
        end = position + int(digits) if digits.isdigit() else 0
        key, equals, value = data[blank + 1 : end - 1].partition(b"=")
        if not 0 < blank < end <= len(data) or data[end - 1] != 0x0A or not equals or not key:
            raise IntegrityError(
                f"{at}: a malformed pax record: {data[position : position + 40]!r}"
            )
        yield key, value
        position = end


def _name(value: bytes, *, at: str) -> bytes | None:
    if b"\0" in value:
        raise IntegrityError(f"{at}: a pax path with a NUL byte: {value!r}")
    return value or None


def _number(key: bytes, value: bytes, *, at: str) -> int | None:
    if not value:
        return None
    if not value.isdigit() or len(value) > _DIGITS_LIMIT:
        raise IntegrityError(f"{at}: pax {key.decode()}: expected digits, got {value!r}")
    return int(value)
