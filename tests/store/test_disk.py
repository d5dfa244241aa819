"""Disks that are full or may not be written to."""

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from builder import durable
from builder.adapters.store import FileStore, disk
from builder.adapters.store.du import du
from builder.adapters.store.gc import gc
from builder.adapters.store.verify import verify
from builder.digest import Digest
from builder.errors import EnvironmentFault
from tests.store.processes import join, start
from tests.store.worlds import NOWHERE, image, index_file

SIZE = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(mount)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mount of a tmpfs refused: {done.stderr.strip()}")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", mount], check=True)


@pytest.mark.requires("root")
def test_a_full_disk_keeps_what_is_there_and_leaves_no_half_files(small: Path) -> None:
    store = FileStore(small)
    manifest = image(store, layers=(b"layer",))
    store.set_reference("demo", manifest)
    before = index_file(store).read_bytes()
    big = os.urandom(2 * SIZE)
    with pytest.raises(EnvironmentFault) as caught:
        store.put(big)
    assert caught.value.message == f"store '{small}': No space left on device"
    assert caught.value.hint == "free some space, for example with `builder store gc`"
    with store.writer() as writer, pytest.raises(EnvironmentFault, match="No space left"):
        writer.write(big)
    assert os.listdir(store.paths.tmp) == []
    assert not store.has(Digest.of(big))

    filler = small / "blobs" / "sha256" / Digest.of(b"").hex
    with filler.open("wb") as file, suppress(OSError):
        while True:
            os.write(file.fileno(), bytes(4096))
    for act in (
        lambda: store.put(b"small"),
        lambda: store.take_note("trace", "k", b"{}"),
        lambda: store.set_reference("second", manifest),
    ):
        with pytest.raises(EnvironmentFault, match="No space left on device"):
            act()
    assert os.listdir(store.paths.tmp) == []
    assert store.note("trace", "k") is None
    assert index_file(store).read_bytes() == before

    assert gc(store).blobs == (Digest.of(b""),)  # what the hint promised works on a full disk
    store.put(b"small")
    store.set_reference("second", manifest)
    assert verify(store).ok


@pytest.mark.requires("root")
def test_a_store_on_a_read_only_disk_can_be_read_and_leased(small: Path) -> None:
    store = FileStore(small)
    manifest = image(store, layers=(b"layer",))
    store.set_reference("demo", manifest)
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    store = FileStore(small)
    with store.lease():
        assert store.references()["demo"].digest == manifest.digest
        assert store.put(b"layer") == Digest.of(b"layer")  # it is there: nothing to write
        store.set_reference("demo", manifest)
    assert verify(store).ok
    assert du(store).layers == 5
    assert gc(store, dry_run=True).blobs == ()
    for act in (
        lambda: store.put(b"new"),
        lambda: store.take_note("trace", "k", b"{}"),
        lambda: store.drop_reference("demo"),
        lambda: gc(store),
    ):
        with pytest.raises(EnvironmentFault, match="Read-only file system") as caught:
            act()
        assert caught.value.hint == (
            "make the store writable for this user, or choose another with --store DIR"
        )


@pytest.mark.requires("root")
def test_a_directory_that_is_not_ours_to_write_is_told() -> None:
    outer = Path(tempfile.mkdtemp())  # not below pytest's directory, which is root's alone

    def visit() -> None:
        os.setresuid(65534, 65534, 65534)
        with pytest.raises(EnvironmentFault) as caught:
            FileStore(outer / "new").put(b"new")
        new = outer / "new"
        assert caught.value.message == f"store '{new}': '{new}': Permission denied"
        store = FileStore(outer / "store")
        assert store.read(Digest.of(b"old")) == b"old"
        with pytest.raises(EnvironmentFault, match=r"/tmp/[^']*': Permission denied$") as caught:
            store.put(b"new")
        assert caught.value.hint == (
            "make the store writable for this user, or choose another with --store DIR"
        )
        assert verify(store).ok

    try:
        outer.chmod(0o755)
        FileStore(outer / "store").put(b"old")
        (outer / "store").chmod(0o755)
        assert join(start(visit)) == [0]
    finally:
        shutil.rmtree(outer)


def test_any_other_trouble_of_the_disk_is_told_as_the_system_names_it() -> None:
    with pytest.raises(EnvironmentFault) as caught, disk.faults("store 's'"):
        raise OSError(errno.EIO, "whatever", "f")
    assert caught.value.message == "store 's': 'f': Input/output error"
    assert caught.value.hint == "look at the disk, or choose another store with --store DIR"


def test_a_disk_that_fails_while_a_blob_is_read_is_told(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise OSError(errno.EIO, "whatever")

    digest = files.put(b"bytes")
    monkeypatch.setattr(os, "readv", fails)
    with files.open(digest) as stream, pytest.raises(EnvironmentFault) as caught:
        stream.read()
    assert caught.value.message == f"{files.paths.at}: Input/output error"


def test_a_file_that_cannot_be_closed_is_closed_once(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux gives the number back in any case; a second time it may be another thread's."""
    files.put(b"make the store")
    closed: list[int] = []
    real = os.close

    def close(fd: int) -> None:
        regular = Path(f"/proc/self/fd/{fd}").readlink().parent == Path(files.paths.tmp)
        real(fd)
        if regular:
            closed.append(fd)
            raise OSError(errno.EIO, "whatever")

    pending = disk.Pending(files.paths.tmp)
    monkeypatch.setattr(os, "close", close)
    with pytest.raises(OSError, match="whatever"):
        pending.publish(files.paths.blob(NOWHERE))
    monkeypatch.setattr(os, "close", closed.append)
    pending.drop()
    assert len(closed) == 1
    assert os.listdir(files.paths.tmp) == []


def test_a_new_store_has_its_own_name_on_the_disk(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = durable.sync_directory

    def sync(path: str) -> None:
        real(path)
        synced.append(path)

    monkeypatch.setattr(durable, "sync_directory", sync)
    files.put(b"first")
    assert os.path.dirname(files.paths.real) in synced


def test_bytes_are_durable_before_their_name_and_the_name_before_what_follows(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = image(files, layers=(b"layer",))
    paths: dict[int, str] = {}
    calls: list[str] = []
    real = {name: getattr(os, name) for name in ("open", "fsync", "replace")}

    def note_open(path: str, *arguments: int) -> int:
        fd: int = real["open"](path, *arguments)
        paths[fd] = path
        return fd

    def note_fsync(fd: int) -> None:
        real["fsync"](fd)
        name = Path(paths[fd]).relative_to(files.paths.real)
        calls.append(f"fsync {'tmp/*' if name.parent == Path('tmp') else name}")

    def note_replace(source: str, target: str) -> None:
        real["replace"](source, target)
        calls.append(f"replace {Path(target).relative_to(files.paths.real)}")

    for name, spy in (("open", note_open), ("fsync", note_fsync), ("replace", note_replace)):
        monkeypatch.setattr(os, name, spy)
    digest = files.put(b"new")
    files.take_note("trace", "k", b"{}")
    files.set_reference("demo", manifest)
    assert calls == [
        "fsync tmp/*",
        f"replace blobs/sha256/{digest.hex}",
        "fsync blobs/sha256",
        "fsync notes",
        "fsync tmp/*",
        "replace notes/trace/k",
        "fsync notes/trace",
        "fsync blobs/sha256",
        "fsync tmp/*",
        "replace index.json",
        "fsync .",
    ]
