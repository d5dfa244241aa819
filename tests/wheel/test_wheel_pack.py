"""Packing the project's own wheels: the same bytes everywhere."""

import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from builder.digest import Digest
from builder.errors import ProjectError
from builder.oci import Platform
from builder.python_layout import from_statement
from builder.wheel import install
from builder.wheel_pack import pack
from tests.wheel.views import Image
from tests.wheel.wheels import FILENAME, INFO, METADATA, WHEEL

GOLDEN = "sha256:5390961a549a426d416676cab6bc993fbf25acabc2d28fc67b77d42106ddac42"
"""A change of it changes the digest of every project's own wheels: raise ``builder.ASSEMBLY``."""


def unpacked(root: Path) -> Path:
    """An unpacked wheel, with all that must not show."""
    for path, data in {
        "demo/__init__.py": b"x = 1\n",
        "demo/run.sh": b"#!/bin/sh\n",
        "demo/na\u00efve.txt": b"",
        "demo/__pycache__/x.pyc": b"left out",
        "zzz.py": b"",
        f"{INFO}/METADATA": METADATA,
        f"{INFO}/WHEEL": WHEEL,
    }.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(0o600)
        os.utime(file, (1, 2_000_000_000))
    (root / "demo/run.sh").chmod(0o700)
    return root


def test_the_bytes_are_known(tmp_path: Path) -> None:
    data = pack(unpacked(tmp_path / "demo"))
    assert str(Digest.of(data)) == GOLDEN
    with zipfile.ZipFile(BytesIO(data)) as file:
        assert [(info.filename, oct(info.external_attr >> 16)) for info in file.infolist()] == [
            ("demo/__init__.py", "0o100644"),
            ("demo/na\u00efve.txt", "0o100644"),
            ("demo/run.sh", "0o100755"),
            ("zzz.py", "0o100644"),
            (f"{INFO}/METADATA", "0o100644"),
            (f"{INFO}/WHEEL", "0o100644"),
            (f"{INFO}/RECORD", "0o100644"),
        ]


def test_the_bytes_do_not_depend_on_the_surroundings(tmp_path: Path) -> None:
    directory = unpacked(tmp_path / "a wheel")
    program = (
        "import os, sys; os.umask(0o077); from pathlib import Path;"
        "from builder.wheel_pack import pack; from builder.digest import Digest;"
        "print(Digest.of(pack(Path(sys.argv[1]))))"
    )
    environment = {
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",  # nothing beside the sources
        "PYTHONHASHSEED": "7",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
        "SOURCE_DATE_EPOCH": "1",
    }
    done = subprocess.run(
        (sys.executable, "-c", program, directory.name),
        cwd=tmp_path, env=environment, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout.decode().strip() == GOLDEN


def test_what_is_packed_can_be_installed(tmp_path: Path) -> None:
    python = from_statement("3.12", "opt/lib/python3.12/site-packages", at="python")
    changes = install(
        pack(unpacked(tmp_path)),
        filename=FILENAME,
        python=python,
        platform=Platform("linux", "arm64"),
        view=Image({}),
    )
    assert f"{python.packages}/demo/run.sh" in {change.path for change in changes}


def test_a_record_that_is_there_is_kept(tmp_path: Path) -> None:
    (unpacked(tmp_path) / INFO / "RECORD").write_bytes(b"mine\n")
    with zipfile.ZipFile(BytesIO(pack(tmp_path))) as file:
        assert file.read(f"{INFO}/RECORD") == b"mine\n"


def test_what_is_no_unpacked_wheel_is_refused(tmp_path: Path) -> None:
    at = f"wheel {str(tmp_path / 'x')!r}"

    def message() -> str:
        with pytest.raises(ProjectError) as caught:
            pack(tmp_path / "x")
        return caught.value.message

    assert message() == f"{at}: no such directory"
    (tmp_path / "x" / INFO).mkdir(parents=True)
    (tmp_path / "x" / INFO / "METADATA").write_bytes(METADATA)
    assert message() == f"{at}: has no '{INFO}/WHEEL'"
    (tmp_path / "x" / INFO / "WHEEL").write_bytes(WHEEL)
    (tmp_path / "x" / "link").symlink_to("/etc/passwd")
    assert message() == f"{at}: 'link': neither a file nor a directory"
    (tmp_path / "x" / "other-1.dist-info").mkdir()
    assert (
        message() == f"{at}: expected one .dist-info directory, got ['{INFO}', 'other-1.dist-info']"
    )
