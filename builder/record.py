"""``RECORD`` of wheels and of installed Python projects.

Source: packaging.python.org, "Recording installed projects", "The RECORD file": CSV of path, hash,
size; paths relative to the directory that holds the ``.dist-info``; the hash is
``sha256=`` and urlsafe base64 without padding; ``RECORD`` itself and bytecode have neither.
"""

import base64
import binascii
import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from builder.digest import Digest
from builder.errors import IntegrityError

_DIGITS = 18
"""The most digits of a size. Python reads no number of thousands of them."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a ``RECORD``. ``digest`` and ``size`` are ``None`` where the line has none."""

    path: str
    digest: Digest | None = None
    size: int | None = None

    @classmethod
    def parse(cls, line: str, *, at: str) -> "Row":
        """Read one line.

        Raises:
            IntegrityError: Not three fields, a hash that is not sha256, a size that is no count.
        """
        try:
            fields = next(csv.reader([line], strict=True)) if '"' in line else line.split(",")
        except csv.Error:
            fields = []
        if len(fields) != 3 or not fields[0]:
            raise IntegrityError(f"{at}: expected path,hash,size, got {line!r}")
        path, encoded, size = fields
        if size and not (size.isascii() and size.isdigit() and len(size) <= _DIGITS):
            raise IntegrityError(f"{at}: {path!r}: size: expected a count of bytes, got {size!r}")
        return cls(
            path,
            _decoded(encoded, at=f"{at}: {path!r}") if encoded else None,
            int(size) if size else None,
        )

    def line(self) -> str:
        """The row as it stands in a file, quoted where it must be, without an end of line."""
        digest = f"sha256={encoded(self.digest)}" if self.digest is not None else ""
        text = io.StringIO()
        size = "" if self.size is None else str(self.size)
        csv.writer(text, lineterminator="").writerow((self.path, digest, size))
        return text.getvalue()


def encoded(digest: Digest) -> str:
    """The digest as RECORD spells it, without the algorithm."""
    return base64.urlsafe_b64encode(bytes.fromhex(digest.hex)).rstrip(b"=").decode()


def _decoded(text: str, *, at: str) -> Digest:
    algorithm, _, value = text.partition("=")
    if algorithm != "sha256":
        raise IntegrityError(f"{at}: hash: expected sha256, got {text!r}")
    try:
        raw = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) != 32:
        raise IntegrityError(f"{at}: hash: expected 32 bytes in urlsafe base64, got {text!r}")
    return Digest(raw.hex())


def lines(data: bytes, *, at: str) -> Iterator[tuple[str, str]]:
    """The lines of a RECORD, each with its end (LF or CR LF), blank ones left out. A file name with
    a line break in it is not read.

    Raises:
        IntegrityError: Not UTF-8.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise IntegrityError(f"{at}: not UTF-8: {error}") from error
    for line in text.split("\n"):
        stripped = line.removesuffix("\r")
        if stripped:
            yield stripped, "\r\n" if stripped != line else "\n"


def parse(data: bytes, *, at: str) -> tuple[Row, ...]:
    """All rows, in order.

    Raises:
        IntegrityError: Not UTF-8, not a RECORD line, a path twice.
    """
    rows = tuple(
        Row.parse(line, at=f"{at}:{number}")
        for number, (line, _) in enumerate(lines(data, at=at), start=1)
    )
    seen: set[str] = set()
    for row in rows:
        if row.path in seen:
            raise IntegrityError(f"{at}: {row.path!r} stands there twice")
        seen.add(row.path)
    return rows


def encode(rows: Iterable[Row]) -> bytes:
    """The file: rows sorted by path, lines ended by a line feed."""
    return "".join(row.line() + "\n" for row in sorted(rows, key=lambda row: row.path)).encode()
