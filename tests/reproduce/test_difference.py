"""Naming what differs between two images."""

import io
import tarfile
from pathlib import Path

import pytest

from builder import canonical
from builder.digest import Digest
from tests.reproduce.difference import first_difference

FILES = {"a.py": (0o644, b"A = 1\n"), "b.py": (0o644, b"B = 1\n")}


def image(layout: Path, *layers: dict[str, tuple[int, bytes]], env: str = "X=1") -> Digest:
    """Write an image of these layers into a layout; returns the manifest's digest."""
    manifest = {
        "layers": [{"digest": str(put(layout, tar(files)))} for files in layers],
        "config": {"digest": str(put(layout, canonical.encode({"config": {"Env": [env]}})))},
    }
    return put(layout, canonical.encode(manifest))


def tar(files: dict[str, tuple[int, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, (mode, data) in files.items():
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def put(layout: Path, data: bytes) -> Digest:
    digest = Digest.of(data)
    path = layout / "blobs" / "sha256" / digest.hex
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return digest


@pytest.mark.parametrize(
    "changed, said",
    [
        pytest.param(
            FILES | {"b.py": (0o644, b"B = 2\n")},
            "layer 2: 'b.py': its content, from byte 4",
            id="content",
        ),
        pytest.param(
            FILES | {"b.py": (0o600, b"B = 1\n")},
            "layer 2: 'b.py': mode 420 against 384",
            id="mode",
        ),
        pytest.param(
            FILES | {"c.py": (0o644, b"")}, "layer 2: 'c.py': only one layer has it", id="one more"
        ),
        pytest.param(
            {"b.py": FILES["b.py"], "a.py": FILES["a.py"]},
            "layer 2: 'a.py': name 'a.py' against 'b.py'",
            id="another order",
        ),
    ],
)
def test_the_first_file_that_differs_is_named(
    changed: dict[str, tuple[int, bytes]], said: str, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    base = {"base": (0o644, b"base")}
    digests = image(one, base, FILES), image(other, base, changed)
    # A base's layers are in no store; those that are the same are not opened.
    (one / "blobs" / "sha256" / Digest.of(tar(base)).hex).unlink()
    assert first_difference(one, other, digests) == said


def test_a_layer_that_only_one_image_has_is_named(tmp_path: Path) -> None:
    digests = image(tmp_path, FILES), image(tmp_path, FILES, FILES)
    assert first_difference(tmp_path, tmp_path, digests) == "layer 2: only one image has it"


def test_where_no_layer_differs_the_config_does(tmp_path: Path) -> None:
    digests = image(tmp_path, FILES), image(tmp_path, FILES, env="X=2")
    said = "config: config: {'Env': ['X=1']} against {'Env': ['X=2']}"
    assert first_difference(tmp_path, tmp_path, digests) == said
