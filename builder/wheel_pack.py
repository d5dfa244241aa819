"""Packing files into a wheel: an unpacked one of the project's own, or one that was put together.

The same bytes from the same files, on every machine: members are stored, sorted, the ``.dist-info``
last and ``RECORD`` at the very end; their date is 1980-01-01, their mode 0755 or 0644.
"""

import stat
import zipfile
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path

from builder.digest import Digest
from builder.errors import ProjectError
from builder.record import Row, encode

_DATE = (1980, 1, 1, 0, 0, 0)  # builder.tree.EPOCH, the earliest that a zip can hold


def pack(directory: Path) -> bytes:
    """Pack an unpacked wheel.

    ``RECORD`` is generated where there is none; a file that its owner may execute is executable.
    ``__pycache__`` is left out.

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
    executable = {path for path, file in files.items() if file.stat().st_mode & stat.S_IXUSR}
    contents = {path: file.read_bytes() for path, file in files.items()}
    return pack_files(contents, info=info, executable=executable)


def pack_files(
    contents: Mapping[str, bytes], *, info: str, executable: Collection[str] = ()
) -> bytes:
    """Pack ``contents``, by path in the wheel; ``info`` is the name of its ``.dist-info``."""
    own = f"{info}/RECORD"
    members = dict(contents)
    if own not in members:
        rows = [Row(path, Digest.of(data), len(data)) for path, data in members.items()]
        members[own] = encode([*rows, Row(own)])
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted(members, key=lambda path: (path.startswith(f"{info}/"), path)):
            if path != own:
                archive.writestr(_member(path, executable=path in executable), members[path])
        archive.writestr(_member(own, executable=False), members[own])
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
