"""Tiny wheels, made by the tests: sound ones, and ones with one thing wrong."""

import base64
import hashlib
import stat
import zipfile
from collections.abc import Mapping
from io import BytesIO

Files = Mapping[str, bytes | tuple[bytes, int]]
"""Path to content, or to (content, mode)."""

METADATA = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n\nName: other\n"
WHEEL = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
INFO = "demo-1.0.dist-info"
FILENAME = "demo-1.0-py3-none-any.whl"


def row(path: str, data: bytes) -> bytes:
    """A line of RECORD."""
    encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    name = f'"{path}"' if "," in path else path
    return b"%s,sha256=%s,%d\n" % (name.encode(), encoded, len(data))


def wheel(
    files: Files, *, record: bytes | None = None, extra: bytes = b"", method: int = 8
) -> bytes:
    """A wheel of ``demo`` 1.0 with these files; ``record`` replaces the right RECORD, ``extra`` is
    appended to it. Entries without a content of their own get METADATA and WHEEL."""
    everything: dict[str, bytes | tuple[bytes, int]] = {
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/WHEEL": WHEEL,
    }
    everything.update(files)
    right = b"".join(
        row(path, content if isinstance(content, bytes) else content[0])
        for path, content in everything.items()
    )
    everything[f"{INFO}/RECORD"] = (
        right + f"{INFO}/RECORD,,\n".encode() + extra if record is None else record
    )
    return archive(list(everything.items()), method=method)


def archive(members: list[tuple[str, bytes | tuple[bytes, int]]], *, method: int = 8) -> bytes:
    """A zip file with these members, in this order, whatever their names."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for path, content in members:
            data, mode = content if isinstance(content, tuple) else (content, 0o644)
            info = zipfile.ZipInfo(path)
            info.external_attr = (mode if stat.S_IFMT(mode) else stat.S_IFREG | mode) << 16
            info.compress_type = method
            file.writestr(info, data)
    return buffer.getvalue()
