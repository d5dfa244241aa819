"""The engine that the tests start: real containers, and nothing left of it."""

import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.plugins.requires import which
from tests.services_docker import running_dockerd

pytestmark = pytest.mark.requires("dockerd", "busybox", "root")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[docker.DockerClient]:
    with running_dockerd(tmp_path_factory.mktemp("engine")) as host:
        client = docker.DockerClient(base_url=host, timeout=60)
        yield client
        client.close()


def _image() -> bytes:
    """A root file system of a static busybox and one file of ours, as a tar."""
    busybox = Path(which("busybox") or "busybox").read_bytes()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, mode, data in (("busybox", 0o755, busybox), ("file", 0o644, b"patched\n")):
            member = tarfile.TarInfo(name)
            member.mode, member.size = mode, len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def test_a_container_runs_and_sees_the_files_of_its_image(engine: docker.DockerClient) -> None:
    engine.api.import_image_from_data(_image(), repository="test/busybox", tag="1")
    output = engine.containers.run(
        "test/busybox:1", ["/busybox", "cat", "/file"], network_mode="none", remove=True
    )
    assert output == b"patched\n"


def test_nothing_is_left_of_an_engine(tmp_path: Path) -> None:
    with running_dockerd(tmp_path) as host:
        state = Path(host.removeprefix("unix://")).parent
        assert (tmp_path / "docker-data").is_dir()
    assert not state.exists()
    assert not (tmp_path / "docker-data").exists()
    mounts = Path("/proc/self/mounts").read_text()
    assert str(state) not in mounts
    assert str(tmp_path) not in mounts


def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "docker-data").write_bytes(b"in the way")
    refusal = "dockerd does not start: .* canonical path points to a file"
    with pytest.raises(RuntimeError, match=refusal), running_dockerd(tmp_path):
        pass
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _mentions(path, tmp_path)]


def _mentions(cmdline: Path, tmp_path: Path) -> bool:
    try:
        return os.fsencode(tmp_path) in cmdline.read_bytes()
    except OSError:
        return False
