"""A wheel file, read and verified in full before anything of it is used.

Source: packaging.python.org, "Binary distribution format". The checks of ``installer``'s
``validate_record`` are a part of these: it takes any hash that OpenSSL knows, files that RECORD
names and the archive lacks, and two members of one name.
"""

import errno
import posixpath
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

from packaging.tags import Tag
from packaging.utils import (
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.version import Version

from builder import record
from builder.digest import Digest
from builder.errors import IntegrityError, ProjectError

MEMBERS_LIMIT = 100_000
SIZE_LIMIT = 16 << 30
"""The most bytes that a wheel may hold, unpacked."""
RATIO_LIMIT = 250
RATIO_FREE = 1 << 20
"""A member of more than ``RATIO_FREE`` bytes may be at most ``RATIO_LIMIT`` times its packed size.
Deflate reaches 1032; the sparsest real files (tables of kernels) stay below 60."""
TEXT_LIMIT = 16 << 20
"""The most bytes of a member that is read into memory (metadata, scripts)."""

_SIGNATURES = ("RECORD.jws", "RECORD.p7s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file of a wheel, its content verified. Streams from the archive, in constant memory."""

    path: str
    size: int
    digest: Digest
    executable: bool
    archive: zipfile.ZipFile

    def open(self) -> BinaryIO:
        """A fresh stream from the first byte."""
        return cast(BinaryIO, self.archive.open(self.path))

    def read(self) -> bytes:
        """The content, of a file that is small by its nature.

        Raises:
            IntegrityError: It is over ``TEXT_LIMIT``.
        """
        if self.size > TEXT_LIMIT:
            raise IntegrityError(
                f"{self.path!r}: {self.size} bytes, the limit for text is {TEXT_LIMIT}"
            )
        with self.open() as stream:
            return stream.read()


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelName:
    """What a wheel's file name says."""

    project: str
    """Normalised."""
    version: Version
    tags: frozenset[Tag]

    @classmethod
    def parse(cls, filename: str) -> "WheelName":
        """Read ``NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl``.

        Raises:
            ProjectError: It is not spelt like that.
        """
        try:
            project, version, _, tags = parse_wheel_filename(filename)
        except ValueError as error:  # packaging's own, and more digits than Python reads
            raise ProjectError(
                f"{filename!r:.200}: not the file name of a wheel: {error}"
            ) from error
        return cls(project=project, version=version, tags=tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A verified wheel: every member is what RECORD says. ``members`` are sorted by path and
    include those of the ``.dist-info``, without RECORD and its signatures."""

    name: WheelName
    dist_info: str
    data: str
    members: tuple[Member, ...]

    def metadata(self, name: str) -> bytes | None:
        """A file of the ``.dist-info``, or ``None``."""
        path = f"{self.dist_info}/{name}"
        return next((member.read() for member in self.members if member.path == path), None)


def read(source: Path | bytes, *, filename: str) -> Wheel:
    """Open a wheel and verify all of it. The file stays open as long as its members are in use.

    Raises:
        IntegrityError: Not a zip; a path that is absolute, leaves the archive or stands twice; a
            link, an encrypted or an oddly packed member; a limit of this module exceeded; RECORD
            and the members disagree; metadata that is not of ``filename``.
        ProjectError: ``filename`` is not the name of a wheel.
    """
    name = WheelName.parse(filename)
    with _zip_errors(filename):
        archive = zipfile.ZipFile(source if isinstance(source, Path) else BytesIO(source))
        infos = _checked(archive, at=filename)
        dist_info = _dist_info(infos, name, at=filename)
        rows = _rows(archive, infos, dist_info, at=filename)
        members = tuple(
            _verified(archive, infos[path], row, at=filename) for path, row in sorted(rows.items())
        )
    stem = dist_info.removesuffix(".dist-info")
    wheel = Wheel(name=name, dist_info=dist_info, data=f"{stem}.data", members=members)
    _check_metadata(wheel, at=filename)
    return wheel


@contextmanager
def _zip_errors(at: str) -> Iterator[None]:
    """Tell what ``zipfile`` raises for damaged input (offsets that lead nowhere included)."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise IntegrityError(f"{at}: not a sound zip file: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a seek to before the file
            raise
        raise IntegrityError(f"{at}: not a sound zip file: {error}") from error


def _checked(archive: zipfile.ZipFile, *, at: str) -> dict[str, zipfile.ZipInfo]:
    """The members that are files, by path, after the checks that need no content."""
    listed = archive.infolist()
    total = sum(info.file_size for info in listed)
    if len(listed) > MEMBERS_LIMIT or total > SIZE_LIMIT:
        raise IntegrityError(
            f"{at}: {len(listed)} members of {total} bytes, the limits are {MEMBERS_LIMIT} and"
            f" {SIZE_LIMIT}"
        )
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in listed:
        path = info.filename
        where = f"{at}: {path!r}"
        parts = path.removesuffix("/").split("/")
        if "\\" in path or "" in parts or "." in parts or ".." in parts:
            raise IntegrityError(f"{where}: not a plain relative path")
        if info.orig_filename != path:
            raise IntegrityError(f"{where}: spelt {info.orig_filename!r} in the archive")
        if info.flag_bits & 0x1:
            raise IntegrityError(f"{where}: is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise IntegrityError(f"{where}: compression {info.compress_type}, wanted 0 or 8")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise IntegrityError(f"{where}: is neither a file nor a directory (mode {kind:o})")
        if info.file_size > max(RATIO_FREE, RATIO_LIMIT * info.compress_size):
            raise IntegrityError(
                f"{where}: {info.file_size} bytes packed into {info.compress_size}, the limit is"
                f" {RATIO_LIMIT} times"
            )
        if path.endswith("/"):
            continue
        if path in infos:
            raise IntegrityError(f"{where}: stands there twice")
        infos[path] = info
    return infos


def _dist_info(infos: dict[str, zipfile.ZipInfo], name: WheelName, *, at: str) -> str:
    tops = {path.split("/", 1)[0] for path in infos}
    found = sorted(top for top in tops if top.endswith(".dist-info"))
    if len(found) != 1:
        raise IntegrityError(f"{at}: expected one .dist-info directory, got {found}")
    project, _, version = found[0].removesuffix(".dist-info").partition("-")
    if canonicalize_name(project) != name.project or not _same_version(version, name.version):
        raise IntegrityError(f"{at}: the .dist-info is of another wheel: {found[0]!r}")
    return found[0]


def _same_version(text: str, version: Version) -> bool:
    try:
        return Version(text) == version
    except ValueError:  # as in WheelName.parse
        return False


def _rows(
    archive: zipfile.ZipFile, infos: dict[str, zipfile.ZipInfo], dist_info: str, *, at: str
) -> dict[str, record.Row]:
    """The RECORD's rows by path, which name exactly the members."""
    own = f"{dist_info}/RECORD"
    if own not in infos:
        raise IntegrityError(f"{at}: has no {own!r}")
    if infos[own].file_size > TEXT_LIMIT:
        raise IntegrityError(f"{at}: {own!r}: {infos[own].file_size} bytes, limit {TEXT_LIMIT}")
    rows = {row.path: row for row in record.parse(archive.read(own), at=f"{at}: {own}")}
    unlisted = {own, *(f"{dist_info}/{name}" for name in _SIGNATURES)}
    missing = sorted(infos.keys() - rows.keys() - unlisted)
    if missing:
        raise IntegrityError(f"{at}: RECORD does not list {missing[0]!r} ({len(missing)} in all)")
    absent = sorted(rows.keys() - infos.keys() - unlisted)
    if absent:
        raise IntegrityError(f"{at}: has no {absent[0]!r}, which RECORD lists ({len(absent)})")
    return {path: row for path, row in rows.items() if path not in unlisted}


def _verified(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, row: record.Row, *, at: str
) -> Member:
    where = f"{at}: {info.filename!r}"
    if row.digest is None or row.size is None:
        raise IntegrityError(f"{where}: RECORD has no hash or no size for it")
    with archive.open(info) as stream:
        got = Digest.of_stream(cast(BinaryIO, stream))
    if (got, info.file_size) != (row.digest, row.size):
        raise IntegrityError(
            f"{where}: RECORD says {row.digest} ({row.size} bytes), got {got}"
            f" ({info.file_size} bytes)"
        )
    mode = info.external_attr >> 16
    return Member(
        path=info.filename,
        size=info.file_size,
        digest=got,
        executable=bool(mode & 0o111),
        archive=archive,
    )


def _check_metadata(wheel: Wheel, *, at: str) -> None:
    for name, field in (("METADATA", "Version"), ("METADATA", "Name"), ("WHEEL", "Wheel-Version")):
        value = header(wheel.metadata(name) or b"", field)
        same = value is not None and (
            _same_version(value, wheel.name.version)
            if field == "Version"
            else canonicalize_name(value) == wheel.name.project
            if field == "Name"
            else value.partition(".")[0] == "1"
        )
        if not same:
            wanted = {
                "Version": repr(str(wheel.name.version)),
                "Name": repr(wheel.name.project),
                "Wheel-Version": "1.x",
            }
            path = posixpath.join(wheel.dist_info, name)
            raise IntegrityError(f"{at}: {path}: {field} is {value!r}, wanted {wanted[field]}")


def header(data: bytes, field: str) -> str | None:
    """The first ``Field: value`` above the first blank line of an email-like document."""
    for line in data.decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if not line or not colon:
            return None
        if name == field:
            return value.strip()
    return None
