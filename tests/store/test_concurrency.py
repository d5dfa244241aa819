"""Processes that write to one store at the same time lose nothing."""

from functools import partial
from pathlib import Path

import pytest

from builder.adapters.store import FileStore
from builder.adapters.store.gc import gc
from builder.adapters.store.verify import verify
from builder.digest import Digest
from tests.store.processes import join, start
from tests.store.worlds import image

WRITERS = 20


def _write_all(root: Path, number: int) -> None:
    store = FileStore(root)
    for turn in range(3):
        with store.lease():
            layer = store.put(b"layer %d" % turn)
            store.take_note("trace", f"shared-{turn}", f'{{"blobs":["{layer}"]}}'.encode())
            store.take_note("trace", f"{number}-{turn}", b"%d" % number)
            manifest = image(store, layers=(b"layer %d" % turn,), note=f"{number}")
            store.set_reference(f"writer-{number}-{turn}", manifest)
            store.set_reference("last", manifest)


@pytest.mark.parametrize("collecting", [False, True], ids=["writers", "writers and gc"])
def test_twenty_processes_lose_nothing(tmp_path: Path, collecting: bool) -> None:
    root = tmp_path / "store"
    pids = [start(partial(_write_all, root, number)) for number in range(WRITERS)]
    if collecting:
        pids.append(start(lambda: [gc(FileStore(root)) for _ in range(10)]))
    assert set(join(*pids)) == {0}
    store = FileStore(root)
    report = verify(store)
    assert (report.errors, report.stale, report.leftovers) == ((), (), ())
    names = {f"writer-{number}-{turn}" for number in range(WRITERS) for turn in range(3)}
    assert store.references().keys() == names | {"last"}
    assert all(store.has(Digest.of(b"layer %d" % turn)) for turn in range(3))
    keys = {f"{number}-{turn}" for number in range(WRITERS) for turn in range(3)}
    assert set(store.notes("trace")) == keys | {f"shared-{turn}" for turn in range(3)}
    assert {store.note("trace", key) for key in keys} == {b"%d" % n for n in range(WRITERS)}
