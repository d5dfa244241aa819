"""``RECORD`` of wheels and of installed Python projects.

Source: packaging.python.org, "Recording installed projects", "The RECORD file": CSV of path, hash,
size; paths relative to the directory that holds the ``.dist-info``; the hash is
``sha256=`` and urlsafe base64 without padding; ``RECORD`` itself and bytecode have neither.
"""

import base64
import binascii
import csv
import io
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from builder.changes import Content, Inline, Put
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.python_layout import PythonLayout, project_of
from builder.tree import View


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
        if size and not (size.isascii() and size.isdigit()):
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


def update_record(
    view: View, layout: PythonLayout, changed: Mapping[str, Content | None]
) -> tuple[Put, ...]:
    """The ``RECORD`` files that must change with ``changed`` (``None``: the file is removed).

    The row of each replaced file gets its new hash and size, that of a removed file goes away;
    all other lines stay byte for byte, with their line ends. A file that no project lists, and a
    file that is new, get no row: they are not part of any project's installation.

    Only what is below the packages directory is looked up. The project named like the file's top
    directory is read first, the others only while a file without an owner is left.

    Raises:
        IntegrityError: A RECORD that cannot be read.
    """
    below = f"{layout.packages}/"
    wanted = {
        path: content
        for path, content in changed.items()
        if path.startswith(below) and view.stat(path) is not None
    }
    tops = {path.removeprefix(below).split("/", 1)[0].lower() for path in wanted}
    infos = [name for name in view.children(layout.packages) if name.endswith(".dist-info")]
    infos.sort(key=lambda name: ((project_of(name) or "").replace("-", "_") not in tops, name))
    puts: list[Put] = []
    for info in infos:
        if not wanted:
            break
        path = f"{below}{info}/RECORD"
        entry = view.stat(path)
        if entry is None or not entry.is_file:
            continue
        before = view.read(path)
        after = _updated(before, layout.packages, own=path, wanted=wanted)
        if after != before:
            puts.append(Put(path=path, content=Inline(after)))
    return tuple(sorted(puts, key=lambda put: put.path))


def _updated(data: bytes, packages: str, *, own: str, wanted: dict[str, Content | None]) -> bytes:
    """``data`` with the rows of ``wanted`` replaced; what is found is taken out of ``wanted``."""
    written: list[str] = []
    for number, (line, end) in enumerate(lines(data, at=own), start=1):
        # Most of several thousand lines are none of ours: no CSV, no path arithmetic for them.
        plain = line[0] not in '"./'
        if plain and f"{packages}/{line.rsplit(',', 2)[0]}" not in wanted:
            written.append(line + end)
            continue
        row = Row.parse(line, at=f"{own}:{number}")
        path = posixpath.normpath(posixpath.join("/", packages, row.path)).lstrip("/")
        if path not in wanted or path == own:
            written.append(line + end)
            continue
        content = wanted.pop(path)
        if content is None:
            continue
        bare = row.digest is None and row.size is None  # bytecode: RECORD leaves it open
        fresh = row if bare else Row(row.path, content.digest, content.size)
        written.append(fresh.line() + end)
    text = "".join(written)
    if written and not data.endswith(b"\n"):
        text = text.removesuffix("\n").removesuffix("\r")
    return text.encode()
