"""A large file's way to a disk, from a server that is told what to do."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.adapters.hub_download import alone_in, download
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.registry.request import Request
from builder.adapters.registry.transport import Transport
from builder.digest import Digest
from builder.upstream import WantedFile
from tests.standin.registry import Reply, stand_in

DATA = b"weights" * 1000


def wanted(directory: Path) -> WantedFile:
    return WantedFile(
        path="model.bin",
        size=len(DATA),
        digest=Digest.of(DATA),
        part=directory / "parts" / "model.part",
        target=directory / "models" / "model.bin",
    )


def bring(file: WantedFile) -> list[str]:
    """Fetch it; returns the ranges that were asked for."""
    with stand_in() as server:
        server.on("GET", "/model.bin", Reply(body=DATA))
        transport = Transport(RegistryConfiguration())
        url = f"http://{server.host}/model.bin"
        request = Request(what="model", method="GET", url=url, endpoint=None)
        try:
            download(transport, request, file, lambda _: None)
        finally:
            transport.close()
        return [call.headers.get("range", "") for call in server.calls]


def test_what_an_earlier_call_left_beyond_the_end_is_cut_off(tmp_path: Path) -> None:
    file = wanted(tmp_path)
    file.part.parent.mkdir()
    file.part.write_bytes(DATA + b"of a file that was longer")
    assert bring(file) == []
    assert file.target.read_bytes() == DATA
    assert not file.part.exists()


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = wanted(tmp_path)
    calls: list[str] = []
    sync, rename = os.fsync, os.replace

    def note_fsync(number: int) -> None:
        sync(number)
        path = Path(f"/proc/self/fd/{number}").readlink()
        calls.append(str(path.relative_to(tmp_path)))
        assert path.is_dir() or path.stat().st_size == len(DATA)

    def note_replace(self: Path, target: Path) -> Path:
        rename(self, target)
        calls.append("replace")
        return target

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    assert bring(file) == [""]
    assert calls == ["parts/model.part", "replace", "models"]


def test_who_waits_for_another_download_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with alone_in(tmp_path / "w"):
            waiting = pool.submit(entered, tmp_path / "w")
            while not caplog.messages and not waiting.done():
                time.sleep(0.01)
            assert not waiting.done()
        waiting.result()
    assert caplog.messages == [f"{tmp_path / 'w'}: waiting for another download into it"]


def entered(directory: Path) -> None:
    with alone_in(directory):
        pass
