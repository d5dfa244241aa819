"""A large file's way to a disk, from a server that is told what to do."""

import os
from pathlib import Path

import pytest

from builder.adapters.hub_download import download
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
        calls.append(str(Path(f"/proc/self/fd/{number}").readlink().relative_to(tmp_path)))

    def note_replace(self: Path, target: Path) -> Path:
        rename(self, target)
        calls.append("replace")
        return target

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    assert bring(file) == [""]
    assert calls == ["parts/model.part", "replace", "models"]
