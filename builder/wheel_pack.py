"""Packing an unpacked wheel of the project's own into a wheel file."""

import stat
import zipfile
from io import BytesIO
from pathlib import Path

from builder.digest import Digest
from builder.errors import ProjectError
from builder.record import Row, encode

_DATE = (1980, 1, 1, 0, 0, 0)  # builder.tree.EPOCH, the earliest that a zip can hold


def pack(directory: Path) -> bytes:
    """Pack an unpacked wheel: the same bytes from the same files, on every machine.

    Members are stored, sorted, the ``.dist-info`` last and ``RECORD`` at the very end; their date
    is 1980-01-01, their mode 0755 where the owner may execute the file and 0644 elsewhere.
    ``RECORD`` is generated where there is none. ``__pycache__`` is left out.

    Raises:
        ProjectError: No such directory, not one ``.dist-info`` with ``WHEEL`` and ``METADATA``, or
            something that is neither a file nor a directory.
    """
    at = f"wheel {str(directory)!r}"
    if not directory.is_dir():
        raise ProjectError(f"{at}: no such directory")
    infos = sorted(path.name for path in directory.glob("*.dist-info"))
    if len(infos) != 1:
        raise ProjectError(
            f"{at}: expected one .dist-info directory, got {infos}",
            hint="an unpacked wheel has NAME-VERSION.dist-info with WHEEL and METADATA in it",
        )
    info = infos[0]
    files = _files(directory, at=at)
    for name in ("METADATA", "WHEEL"):
        if f"{info}/{name}" not in files:
            raise ProjectError(f"{at}: has no '{info}/{name}'")
    own = f"{info}/RECORD"
    contents = {path: file.read_bytes() for path, file in files.items()}
    if own not in contents:
        rows = [Row(path, Digest.of(data), len(data)) for path, data in contents.items()]
        contents[own] = encode([*rows, Row(own)])
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(contents, key=lambda path: (path.startswith(f"{info}/"), path)):
            if path != own:
                executable = bool(files[path].stat().st_mode & stat.S_IXUSR)
                archive.writestr(_member(path, executable=executable), contents[path])
        archive.writestr(_member(own, executable=False), contents[own])
    return buffer.getvalue()


def _files(directory: Path, *, at: str) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        if "__pycache__" in name.parts or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink() or not path.is_file():
            raise ProjectError(f"{at}: {str(name)!r}: neither a file nor a directory")
        files[name.as_posix()] = path
    return files


def _member(path: str, *, executable: bool) -> zipfile.ZipInfo:
    """The one place that sets the fields of a zip entry that a machine could leak into."""
    info = zipfile.ZipInfo(path, _DATE)
    info.compress_type = zipfile.ZIP_STORED
    info.create_system = 3  # Unix
    info.create_version = info.extract_version = 20
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    return info
