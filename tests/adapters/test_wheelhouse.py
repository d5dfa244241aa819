"""Wheels through pip, from a directory that the user's pip configuration names; no network."""

import importlib.util
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from builder.adapters import wheelhouse
from builder.adapters.wheelhouse import Wheelhouse
from builder.digest import Digest
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
    RateLimitError,
)
from tests.wheel.wheels import FILENAME, wheel

WHEEL = wheel({"demo/__init__.py": b"x = 1\n"})
DIGEST = Digest.of(WHEEL)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the user's pip looks at: a directory, and nothing else."""
    if importlib.util.find_spec("pip") is None:
        pytest.fail("these tests need pip beside pytest: python -m ensurepip")
    directory = tmp_path / "index"
    directory.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)  # the environment goes before the file
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    (tmp_path / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {directory}\n")
    return directory


def house(tmp_path: Path, *, offline: bool = False) -> Wheelhouse:
    return Wheelhouse(tmp_path / "project", cache=tmp_path / "cache", offline=offline)


def fetch(house: Wheelhouse, *, filename: str = FILENAME, digest: Digest = DIGEST) -> Path:
    return house.fetch(project="demo", version="1.0", filename=filename, digest=digest)


def test_a_wheel_is_fetched_once_and_kept_by_its_digest(tmp_path: Path, index: Path) -> None:
    (index / FILENAME).write_bytes(WHEEL)
    path = fetch(house(tmp_path))
    assert path == tmp_path / "cache" / DIGEST.hex / FILENAME
    assert path.read_bytes() == WHEEL
    (index / FILENAME).unlink()
    assert fetch(house(tmp_path)) == fetch(house(tmp_path, offline=True)) == path
    assert sorted(item.name for item in (tmp_path / "cache").iterdir()) == [DIGEST.hex]


@pytest.mark.parametrize(
    "tag",
    [
        "cp38-abi3-manylinux_2_28_x86_64",
        "cp312-cp312-manylinux_2_17_aarch64.manylinux2014_aarch64",
        "cp314-cp314t-win_amd64",
        "py2.py3-none-any",
        "cp310-none-any",
        "pp310-pypy310_pp73-manylinux_2_28_x86_64",
    ],
)
def test_a_wheel_of_any_platform_is_fetched_on_any_other(
    tmp_path: Path, index: Path, tag: str
) -> None:
    filename = f"demo-1.0-{tag}.whl"
    (index / filename).write_bytes(WHEEL)
    assert fetch(house(tmp_path), filename=filename).read_bytes() == WHEEL


def test_an_index_with_another_file_is_an_integrity_error(tmp_path: Path, index: Path) -> None:
    (index / FILENAME).write_bytes(wheel({"demo/__init__.py": b"evil"}))
    with pytest.raises(IntegrityError) as caught:
        fetch(house(tmp_path))
    assert "DO NOT MATCH THE HASHES" in caught.value.message
    assert not (tmp_path / "cache" / DIGEST.hex).exists()


def test_a_wheel_has_the_name_that_is_asked_for_whatever_the_index_calls_it(
    tmp_path: Path, index: Path
) -> None:
    (index / FILENAME.capitalize()).write_bytes(WHEEL)
    path = fetch(house(tmp_path))
    assert path == tmp_path / "cache" / DIGEST.hex / FILENAME
    assert path.read_bytes() == WHEEL
    assert fetch(house(tmp_path, offline=True)) == path


def test_a_wheel_that_the_index_lacks_is_gone(tmp_path: Path, index: Path) -> None:
    with pytest.raises(GoneError) as caught:
        fetch(house(tmp_path))
    assert caught.value.message == (
        f"wheel {FILENAME}: Could not find a version that satisfies the requirement demo==1.0"
        " (from versions: none); No matching distribution found for demo==1.0"
    )


@contextmanager
def answering(status: int) -> Iterator[str]:
    """An index on loopback that answers everything with one status; the URL, with credentials."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://user:sesame@127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    "status, kind",
    [
        (401, AuthError),
        (403, AuthError),
        (404, GoneError),
        (429, RateLimitError),
        (503, NetworkError),
        (None, NetworkError),
    ],
)
def test_what_an_index_answers_is_told_as_what_it_is(
    tmp_path: Path, index: Path, status: int | None, kind: type[BuilderError]
) -> None:
    with answering(status or 404) as url:
        config = f"[global]\nindex-url = {url}\nretries = 0\n"
        (tmp_path / "pip.conf").write_text(config)
        if status is not None:
            with pytest.raises(BuilderError) as caught:
                fetch(house(tmp_path))
    if status is None:  # nobody listens any more
        with pytest.raises(BuilderError) as caught:
            fetch(house(tmp_path))
    assert type(caught.value) is kind  # type: ignore[possibly-undefined] # one of the two ran
    assert caught.value.message.startswith(f"wheel {FILENAME}: ")
    assert "sesame" not in caught.value.message


def test_a_wheel_from_elsewhere_is_kept_where_it_is_what_it_must_be(
    tmp_path: Path, index: Path
) -> None:
    with pytest.raises(IntegrityError) as caught:
        house(tmp_path).keep(iter([WHEEL, b"!"]), filename=FILENAME, digest=DIGEST)
    got = Digest.of(WHEEL + b"!")
    assert caught.value.message == f"wheel {FILENAME}: expected {DIGEST}, got {got}"
    assert list((tmp_path / "cache").iterdir()) == []
    path = house(tmp_path).keep(iter([WHEEL[:9], WHEEL[9:]]), filename=FILENAME, digest=DIGEST)
    assert fetch(house(tmp_path, offline=True)) == path
    assert path.read_bytes() == WHEEL


def test_a_wheel_from_elsewhere_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bytes] = []

    def fsync(number: int) -> None:
        synced.append(Path(f"/proc/self/fd/{number}").read_bytes())

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("builder.durable.sync_directory", lambda _: None)
    house(tmp_path).keep(iter([WHEEL]), filename=FILENAME, digest=DIGEST)
    assert synced == [WHEEL]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), r"pip brought \[\], wanted one wheel"),
        ((FILENAME, f"x{FILENAME}"), r"pip brought \['.*', '.*'\], wanted one wheel"),
        ((FILENAME,), f"expected {DIGEST}, got {Digest.of(b'')}"),
    ],
    ids=["nothing", "two", "another"],
)
def test_what_pip_brings_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], message: str
) -> None:
    """It checks the digest itself, and so do we."""

    def brings(_command: str, _dest: str, target: str, *_options: str, at: str) -> str:
        Path(target).mkdir()
        for name in names:
            (Path(target) / name).touch()
        return at

    monkeypatch.setattr(wheelhouse, "pip", brings)
    with pytest.raises(IntegrityError, match=message):
        fetch(house(tmp_path))
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_pip_says_holds_no_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip hides passwords itself, where it sees that there is one."""
    said = "ERROR: no such file at https://me:sesame@index.example/simple/demo/"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    with pytest.raises(NetworkError) as caught:
        fetch(house(tmp_path))
    assert caught.value.message == (
        f"wheel {FILENAME}: pip download: no such file at https://index.example/simple/demo/"
    )


def test_offline_names_what_is_not_at_hand(tmp_path: Path, index: Path) -> None:
    (index / FILENAME).write_bytes(WHEEL)
    with pytest.raises(OfflineError) as caught:
        fetch(house(tmp_path, offline=True))
    assert caught.value.message == f"wheel {FILENAME}: no {DIGEST} at hand, and --offline is set"


def test_a_damaged_kept_file_is_fetched_again_with_a_warning(
    tmp_path: Path, index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (index / FILENAME).write_bytes(WHEEL)
    fetch(house(tmp_path)).write_bytes(b"rot")
    with pytest.raises(IntegrityError, match="is damaged: expected"):
        fetch(house(tmp_path, offline=True))
    with caplog.at_level(logging.WARNING):
        assert fetch(house(tmp_path)).read_bytes() == WHEEL
    assert "the kept file is damaged" in caplog.text


@pytest.mark.parametrize(
    "project, version, message",
    [
        ("demo\nevil", "1.0", "not a project: 'demo\\nevil'"),
        ("demo", "1.0 --pre", "not a version: '1.0 --pre'"),
        ("-r x", "1.0", "not a project: '-r x'"),
    ],
)
def test_nothing_but_names_and_versions_reaches_pip(
    tmp_path: Path, project: str, version: str, message: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        house(tmp_path).fetch(project=project, version=version, filename=FILENAME, digest=DIGEST)
    assert caught.value.message == f"wheel {FILENAME}: {message}"


def test_a_python_without_pip_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    bare.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(bare))
    with pytest.raises(EnvironmentFault) as caught:
        fetch(house(tmp_path))
    assert caught.value.message == f"wheel {FILENAME}: {bare}: No module named pip"
    assert caught.value.hint == "install pip into this Python: python -m ensurepip"


def test_a_wheel_of_the_project_stays_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with pytest.raises(BuilderError) as caught:
        house(tmp_path).pack("../elsewhere")
    assert caught.value.message == "wheel: '../elsewhere': leads out of the project"
