"""What ``gc`` takes and what it leaves, and what ``du`` counts."""

import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder import durable
from builder.adapters.store import FileStore
from builder.adapters.store.du import Share, du
from builder.adapters.store.gc import Collected, gc
from builder.adapters.store.verify import verify
from builder.adapters.store.walk import walk
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Manifest
from tests.store.worlds import (
    NOWHERE,
    add_entry,
    blob_file,
    elsewhere,
    image,
    index_file,
    index_of,
)

OURS, OLD, INDEX = Digest.of(b"ours"), Digest.of(b"old"), Digest.of(b"a file index")


def _names(*digests: Digest) -> bytes:
    return b'{"blobs":[%b]}' % b",".join(b'"%b"' % str(digest).encode() for digest in digests)


@pytest.fixture
def used(files: FileStore) -> FileStore:
    """One image by name, one layer that nothing needs, a file index that a caller needs."""
    files.set_reference("demo", image(files, layers=(b"ours",), base=(b"base",)))
    for data in (b"old", b"a file index"):
        files.put(data)
    files.take_note("trace", "ours", _names(OURS))
    files.take_note("trace", "old", _names(OURS, OLD))
    files.take_note("trace", "gone", _names(NOWHERE))
    files.take_note("files", "base", _names(INDEX))
    files.take_note("seen", "x", b"no JSON")
    (files.paths.root / "tmp" / "1-left").write_bytes(b"half")
    return files


EXPECTED = Collected(
    blobs=(OLD,),
    size=3,
    notes=("notes/trace/gone", "notes/trace/old"),
    leftovers=("tmp/1-left",),
    kept=4,
)


def test_a_dry_run_says_what_would_go_and_touches_nothing(used: FileStore) -> None:
    before = sorted((path, path.lstat().st_mtime_ns) for path in used.paths.root.rglob("*"))
    with used.lease():  # it waits for nobody
        assert gc(used, reachable=lambda: [INDEX], dry_run=True) == EXPECTED
    assert before == sorted((path, path.lstat().st_mtime_ns) for path in used.paths.root.rglob("*"))


def test_what_nothing_leads_to_goes_and_the_rest_stays(used: FileStore) -> None:
    with used.lock("old-lock"):
        pass
    assert gc(used, reachable=lambda: [INDEX]) == EXPECTED
    assert not used.has(OLD)
    assert used.has(OURS)
    assert used.has(INDEX)
    assert list(used.notes("trace")) == ["ours"]
    assert list(used.notes("files")) == ["base"]
    assert used.note("seen", "x") == b"no JSON"
    assert os.listdir(used.paths.tmp) == os.listdir(used.paths.locks) == []
    report = verify(used)
    assert (report.ok, report.stale, report.leftovers) == (True, (), ())
    again = gc(used, reachable=lambda: [INDEX])
    assert again == Collected(blobs=(), size=0, notes=(), leftovers=(), kept=4)


def test_without_its_reference_an_image_goes(used: FileStore) -> None:
    used.drop_reference("demo")
    gc(used)
    assert os.listdir(used.paths.blobs) == []
    assert [list(used.notes(kind)) for kind in ("trace", "files", "seen")] == [[], [], ["x"]]


def test_all_that_an_index_leads_to_stays(files: FileStore) -> None:
    one, two = image(files, layers=(b"1",)), image(files, layers=(b"2",))
    inner = index_of(files, two, elsewhere("arm64"))
    files.set_reference("all", index_of(files, one, inner))
    assert gc(files).blobs == ()
    assert verify(files).ok


def test_what_other_tools_named_stays(files: FileStore) -> None:
    manifest = image(files, layers=(b"1",))
    plain = files.put(b"text")
    add_entry(files, manifest.record())  # without a name
    add_entry(files, {"mediaType": "text/plain", "digest": str(plain), "size": 4})
    assert gc(files).blobs == ()


def test_young_blobs_stay_for_as_many_days_as_asked(used: FileStore) -> None:
    week = time.time() - 7 * 24 * 60 * 60
    os.utime(blob_file(used, OLD), (week, week))
    assert gc(used, keep_days=8, dry_run=True).blobs == ()
    assert gc(used, keep_days=6).blobs == (OLD,)
    assert used.has(INDEX)  # unreachable and young
    assert gc(used).blobs == (INDEX,)


@pytest.mark.parametrize("fault", ["index", "manifest missing", "manifest corrupt", "entry"])
def test_nothing_goes_when_it_cannot_be_known_what_hangs_on_a_name(
    fault: str, used: FileStore
) -> None:
    manifest = used.references()["demo"]
    if fault == "index":
        index_file(used).write_bytes(b"")
    elif fault == "manifest missing":
        blob_file(used, manifest.digest).unlink()
    elif fault == "manifest corrupt":
        blob_file(used, manifest.digest).write_bytes(b"{}")
    else:
        add_entry(used, {"digest": "sha512:0"})
    before = sorted(used.paths.root.rglob("*"))
    with pytest.raises(IntegrityError) as caught:
        gc(used)
    assert caught.value.message.startswith(f"store '{used.paths.root}': ")
    assert sorted(used.paths.root.rglob("*")) == before
    with used.lease():  # and nothing is held any more
        pass


def test_what_is_no_blob_is_left_for_a_person(files: FileStore) -> None:
    files.put(b"x")
    stray = blob_file(files, NOWHERE).parent / "upload.part"
    stray.write_bytes(b"1")
    blob_file(files, NOWHERE).mkdir()
    assert gc(files).blobs == (Digest.of(b"x"),)
    assert stray.exists()
    assert blob_file(files, NOWHERE).is_dir()


def test_that_memos_went_is_on_the_disk_before_blobs_go(
    used: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power failure leaves of it may be any part of what is not synced yet."""
    calls: list[str] = []
    sync, unlink = durable.sync_directory, os.unlink

    def note_sync(path: str) -> None:
        sync(path)
        calls.append(f"sync {Path(path).relative_to(used.paths.real)}")

    def note_unlink(path: str) -> None:
        unlink(path)
        calls.append(f"unlink {Path(path).relative_to(used.paths.real).parts[0]}")

    monkeypatch.setattr(durable, "sync_directory", note_sync)
    monkeypatch.setattr(os, "unlink", note_unlink)
    gc(used, reachable=lambda: [INDEX])
    first = ["unlink notes", "unlink notes", "sync notes/trace", "unlink blobs", "unlink tmp"]
    assert calls[:5] == first


def test_who_has_a_lock_keeps_gc_waiting(
    files: FileStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes away the files of locks: two could hold one lock, each by a file of its own."""
    monkeypatch.setattr("builder.adapters.store.locks.PATIENCE", 0.01)
    waits = threading.Event()

    class Heard(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            waits.set()

    heard = Heard()
    logger = logging.getLogger("builder.adapters.store.locks")
    logger.addHandler(heard)
    try:
        with ThreadPoolExecutor(1) as pool:
            with files.lock("a"):
                collecting = pool.submit(gc, FileStore(files.paths.root))
                assert waits.wait(10)
                assert not collecting.done()
                assert (files.paths.root / "locks" / "a").exists()
            collecting.result(10)
    finally:
        logger.removeHandler(heard)
    assert not (files.paths.root / "locks" / "a").exists()
    assert caplog.messages == [
        f"store '{files.paths.root}': waiting for the builds that use it to end"
    ]


def test_a_manifest_that_is_named_twice_is_looked_at_once(files: FileStore) -> None:
    manifest = image(files, layers=(b"layer",))
    named = index_of(files, manifest, manifest)
    files.set_reference("demo", named)
    found = [node.descriptor.digest for node in walk(files, named, at="demo")]
    assert len(found) == len(set(found)) == 4


def test_gc_of_a_store_that_is_not_there_makes_none(files: FileStore) -> None:
    assert gc(files) == Collected(blobs=(), size=0, notes=(), leftovers=(), kept=0)
    assert not files.paths.root.exists()


def test_usage_is_counted_by_class_and_by_reference(used: FileStore) -> None:
    demo = used.references()["demo"]
    second = image(used, layers=(b"ours", b"its own"), note="second")
    used.set_reference("second", second)
    used.set_reference("again", second)
    configs = {
        name: Manifest.parse(used.read(item.digest)).config.size
        for name, item in used.references().items()
    }
    first = demo.size + configs["demo"]
    usage = du(used)
    assert (usage.manifests, usage.configs) == (
        demo.size + second.size,
        configs["demo"] + configs["second"],
    )
    assert (usage.layers, usage.other) == (len(b"ours" + b"its own"), len(b"old" + b"a file index"))
    notes = (_names(OURS), _names(OURS, OLD), _names(NOWHERE), _names(INDEX), b"no JSON")
    assert usage.notes == sum(map(len, notes))
    assert usage.tmp == 4
    assert usage.total == usage.notes + 4 + sum(
        path.stat().st_size for path in blob_file(used, OLD).parent.iterdir()
    )
    whole = second.size + configs["second"] + len(b"ours" + b"its own")
    assert usage.references == (
        Share(name="again", digest=second.digest, total=whole, unique=0),
        Share(name="demo", digest=demo.digest, total=first + 4, unique=first),
        Share(name="second", digest=second.digest, total=whole, unique=0),
    )
    assert usage.references[1].shared == 4
