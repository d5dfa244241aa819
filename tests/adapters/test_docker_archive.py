"""The docker-archive: what stands in it, and what is left out."""

import json
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest

from builder.changes import Inline
from builder.digest import Digest
from builder.docker_archive import Blob, archive
from builder.errors import IntegrityError
from tests.adapters.images import config, layer

BASE, CHILD = layer("a", b"base"), layer("b", b"child")
CONFIG = config(BASE, CHILD)


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=BytesIO(data)) as tar:
        return {info.name: _read(tar, info) for info in tar}


def _read(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    assert (info.mode, info.uid, info.gid, info.mtime, info.uname) == (0o644, 0, 0, 0, "")
    file = tar.extractfile(info)
    assert file is not None
    return file.read()


def test_an_archive_holds_the_config_as_it_is_and_the_layers_in_order() -> None:
    data = b"".join(archive(CONFIG, [(BASE.digest, BASE), (CHILD.digest, CHILD)], "demo:x"))
    found = members(data)
    name = f"{Digest.of(CONFIG).hex}.json"
    assert list(found) == ["manifest.json", name, "0/layer.tar", "1/layer.tar"]
    assert json.loads(found["manifest.json"]) == [
        {"Config": name, "RepoTags": ["demo:x"], "Layers": ["0/layer.tar", "1/layer.tar"]}
    ]
    assert found[name] == CONFIG
    assert (found["0/layer.tar"], found["1/layer.tar"]) == (BASE.data, CHILD.data)


def test_a_layer_without_a_blob_is_named_and_left_out() -> None:
    data = b"".join(archive(CONFIG, [(BASE.digest, None), (CHILD.digest, CHILD)]))
    found = members(data)
    assert "0/layer.tar" not in found
    assert json.loads(found["manifest.json"])[0]["RepoTags"] is None
    assert json.loads(found["manifest.json"])[0]["Layers"] == ["0/layer.tar", "1/layer.tar"]


@dataclass(frozen=True)
class Zeros:
    """A blob that nobody could hold."""

    size: int

    def open(self) -> BinaryIO:
        return Path("/dev/zero").open("rb")


def test_a_layer_over_8_gib_fits_and_nothing_is_held() -> None:
    huge = Zeros(9 << 30)
    pieces: Iterator[bytes] = archive(CONFIG, [(BASE.digest, huge), (CHILD.digest, CHILD)])
    headers = [piece for _, piece in zip(range(5), pieces, strict=False)]
    info = tarfile.TarInfo.frombuf(headers[4], "utf-8", "strict")
    assert (info.name, info.size) == ("0/layer.tar", 9 << 30)
    assert len(next(pieces)) == 1 << 20


@pytest.mark.parametrize("size", [len(CHILD.data) - 1, len(CHILD.data) + 1])
def test_a_blob_of_another_size_ends_the_archive_with_an_error(size: int) -> None:
    @dataclass(frozen=True)
    class Wrong:
        size: int

        def open(self) -> BinaryIO:
            return CHILD.open()

    wrong: Blob = Wrong(size)
    with pytest.raises(IntegrityError) as caught:
        list(archive(CONFIG, [(BASE.digest, None), (CHILD.digest, wrong)]))
    assert caught.value.message == (
        f"layer {CHILD.digest}: expected {size} bytes, got {len(CHILD.data)}"
        f"{' or more' if size < len(CHILD.data) else ''}"
    )


def test_layers_that_are_not_those_of_the_config_are_refused() -> None:
    layers: list[tuple[Digest, Inline]] = [(CHILD.digest, CHILD)]
    with pytest.raises(IntegrityError) as caught:
        list(archive(CONFIG, layers))
    assert caught.value.message == (
        f"config: rootfs.diff_ids are {[str(BASE.digest), str(CHILD.digest)]}, the layers are"
        f" {[str(CHILD.digest)]}"
    )


@pytest.mark.requires("skopeo")
def test_skopeo_reads_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(
        b"".join(archive(CONFIG, [(BASE.digest, BASE), (CHILD.digest, CHILD)], "demo:x"))
    )
    done = subprocess.run(
        ("skopeo", "inspect", "--raw", "--config", f"docker-archive:{path}"),
        capture_output=True,
        check=True,
    )
    assert done.stdout == CONFIG
