"""A process that is killed at any call leaves a store that is whole, and the work can go on."""

import contextlib
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder import canonical
from builder.adapters.store import FileStore, locks
from builder.adapters.store.gc import gc
from builder.adapters.store.verify import verify
from builder.digest import Digest
from tests.store.processes import ended, join, killed_at, start
from tests.store.worlds import image

LAYERS = (b"one" * 1000, b"two" * 1000)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where the system has one: a kill is no power failure, hence fsync
    need not reach a disk in the hundreds of builds here."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    directory = Path(tempfile.mkdtemp(dir=memory))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def _build(root: Path) -> None:
    """What a build does to a store, in little."""
    store = FileStore(root)
    with store.lease(), store.lock("build"):
        for data in LAYERS:
            with store.writer() as writer:
                writer.write(data)
                writer.commit(Digest.of(data))
            trace = canonical.encode({"blobs": [str(Digest.of(data))]})
            store.take_note("trace", Digest.of(data).hex, trace)
        manifest = image(store, layers=LAYERS)
        store.set_reference("demo", manifest)
        store.set_reference("latest", manifest)


def _rebuild(root: Path) -> None:
    """Another build over the first: replaces a note and a reference, drops one."""
    store = FileStore(root)
    store.take_note("trace", Digest.of(LAYERS[0]).hex, b'{"blobs":[]}')
    store.set_reference("demo", image(store, layers=(b"three",)))
    store.drop_reference("latest")


def _every_kill(work: Callable[[], object], look: Callable[[], None]) -> int:
    """Kill ``work`` at each of its calls in turn, and ``look`` after each; returns how many."""
    number = 0
    while killed_at(number, work):
        look()
        number += 1
    return number


def test_a_build_that_is_killed_anywhere_leaves_whole_files_and_can_be_done_again(
    quick: Path,
) -> None:
    root = quick / "store"
    whole = {Digest.of(data) for data in LAYERS}

    def look() -> None:
        store = FileStore(root)
        report = verify(store)
        assert (report.errors, report.stale) == ((), ())
        for key in store.notes("trace"):
            assert store.note("trace", key) == canonical.encode({"blobs": [f"sha256:{key}"]})
        for descriptor in store.references().values():
            assert store.read(descriptor.digest)
            assert all(store.has(digest) for digest in whole)
        _build(root)  # what one process left stops no other, locks included
        assert list(FileStore(root).references()) == ["demo", "latest"]
        assert verify(FileStore(root)).ok
        shutil.rmtree(root)

    assert _every_kill(lambda: _build(root), look) > 100


def test_what_a_killed_build_left_is_reported_and_collected(quick: Path) -> None:
    root = quick / "store"
    left = 0
    for number in range(30, 80, 4):
        assert killed_at(number, lambda: _build(root))
        left += len(verify(FileStore(root)).leftovers)
        _build(root)
        gc(FileStore(root))
        report = verify(FileStore(root))
        assert (report.ok, report.leftovers) == (True, ())
        assert list(FileStore(root).references()) == ["demo", "latest"]
        shutil.rmtree(root)
    assert left > 0


def test_a_change_that_is_killed_anywhere_is_done_or_not_done(quick: Path) -> None:
    root, before = quick / "store", quick / "before"
    _build(before)
    old = FileStore(before).references()["demo"].digest
    key = Digest.of(LAYERS[0]).hex
    seen: set[tuple[bool, tuple[str, ...]]] = set()

    def look() -> None:
        store = FileStore(root)
        assert verify(store).ok
        references = store.references()
        seen.add((references["demo"].digest == old, tuple(references)))
        assert store.note("trace", key) in {
            b'{"blobs":[]}',
            canonical.encode({"blobs": [f"sha256:{key}"]}),
        }
        shutil.rmtree(root)
        shutil.copytree(before, root)

    shutil.copytree(before, root)
    assert _every_kill(lambda: _rebuild(root), look) > 30
    assert seen == {
        (True, ("demo", "latest")),
        (False, ("demo", "latest")),
        (False, ("demo",)),
    }


def test_a_gc_that_is_killed_anywhere_leaves_notes_that_are_true(quick: Path) -> None:
    root, before = quick / "store", quick / "before"
    _build(before)
    store = FileStore(before)
    store.drop_reference("demo")
    store.set_reference("latest", image(store, layers=(LAYERS[1],)))
    (before / "tmp" / "1-left").write_bytes(b"half")

    def look() -> None:
        report = verify(FileStore(root))
        assert (report.errors, report.stale) == ((), ())
        gc(FileStore(root))
        assert FileStore(root).has(Digest.of(LAYERS[1]))
        assert list(FileStore(root).notes("trace")) == [Digest.of(LAYERS[1]).hex]
        assert verify(FileStore(root)).blobs == 3
        shutil.rmtree(root)
        shutil.copytree(before, root)

    shutil.copytree(before, root)
    assert _every_kill(lambda: gc(FileStore(root)), look) > 10


def test_the_lock_of_a_killed_process_is_free(files: FileStore) -> None:
    read, write = os.pipe()

    def hold() -> None:
        with files.lock("a"), files.lease():
            os.write(write, b"held")
            signal.pause()

    with ended(start(hold)) as pid:
        assert os.read(read, 4) == b"held"
        os.kill(pid, signal.SIGKILL)
        assert join(pid) == [-signal.SIGKILL]
        with files.lock("a"):
            pass
        gc(files)
    os.close(read)
    os.close(write)


def test_a_lock_that_is_given_back_is_free_whoever_has_its_descriptor(files: FileStore) -> None:
    """A child that was forked meanwhile has it, too, until it ends."""
    with files.lock("a"):
        child = start(signal.pause)
    with ended(child):
        fd = locks.acquire(
            f"{files.paths.locks}/a", alone=True, waiting=lambda: pytest.fail("it is held")
        )
        locks.release(fd)


def test_who_is_interrupted_while_waiting_for_a_lock_leaves_nothing_open(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with files.lock("a"):
        before = os.listdir("/proc/self/fd")
        monkeypatch.setattr("time.sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            locks.acquire(f"{files.paths.locks}/a", alone=True, waiting=lambda: "")
        assert len(os.listdir("/proc/self/fd")) == len(before)


@contextlib.contextmanager
def answering(caplog: pytest.LogCaptureFixture, tell: int) -> Iterator[None]:
    """Whoever holds a lock is told to go on at ``tell`` as soon as the wait for it is logged."""

    def answer(_: logging.LogRecord) -> bool:
        return bool(os.write(tell, b"go"))

    caplog.handler.addFilter(answer)  # the handler is one for all tests
    try:
        yield
    finally:
        caplog.handler.removeFilter(answer)


def test_who_waits_for_long_is_told_for_whom(
    files: FileStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("builder.adapters.store.locks.PATIENCE", 0.01)
    read, write = os.pipe()
    go_on, tell = os.pipe()

    def hold() -> None:
        with files.lock("a"):
            os.write(write, b"held")
            os.read(go_on, 2)

    with ended(start(hold)) as pid:
        os.read(read, 4)
        with answering(caplog, tell), files.lock("a"):
            pass
        assert join(pid) == [0]
        assert caplog.messages == [
            f"store '{files.paths.root}': waiting for the lock 'a', which process {pid} holds"
        ]
    for fd in (read, write, go_on, tell):
        os.close(fd)


def test_gc_waits_for_the_lease_of_a_build(
    files: FileStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("builder.adapters.store.locks.PATIENCE", 0.01)
    files.put(b"new")
    read, write = os.pipe()
    go_on, tell = os.pipe()

    def build() -> None:
        store = FileStore(files.paths.root)
        with store.lease():
            assert store.has(Digest.of(b"new"))
            os.write(write, b"held")
            os.read(go_on, 2)
            manifest = image(store, layers=(b"new",))
            store.set_reference("demo", manifest)

    with ended(start(build)) as pid:
        os.read(read, 4)
        with answering(caplog, tell):
            assert gc(files).blobs == ()
        assert join(pid) == [0]
    assert caplog.messages == [
        f"store '{files.paths.root}': waiting for the builds that use it to end"
    ]
    assert verify(files).ok
    for fd in (read, write, go_on, tell):
        os.close(fd)
