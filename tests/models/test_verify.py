"""Models on a disk against the lock (cases 16, 17)."""

import errno
import json
import mmap
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.digest import Digest
from builder.lock.model import ModelFile
from builder.models.hashing import Crew, at_once
from builder.models.mounted import silent_devices
from builder.models.place import place_of
from builder.models.verify import State, verify
from tests.memory_store import MemoryStore
from tests.models.worlds import (
    COMMIT,
    SHARDS,
    Counting,
    checked,
    lay,
    pin_of,
    safetensors,
    tiny,
    told,
)

TICK = 0.05
"""Seconds: the kernel gives times to files by a clock with coarse ticks."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay(tmp_path / "tiny", tiny())


PIN = pin_of(tiny())
TOTAL = sum(map(len, tiny().values()))


def test_a_model_that_is_what_was_locked_is_in_order(root: Path, store: MemoryStore) -> None:
    progress = Counting()
    found = checked(PIN, root, store, progress=progress)
    assert found.ok
    assert found.counts == {
        State.OK: 4,
        State.MISSING: 0,
        State.EXTRA: 0,
        State.SHORT: 0,
        State.WRONG: 0,
        State.UNHASHED: 0,
    }
    assert (progress.total, progress.done, found.hashed) == (TOTAL, TOTAL, TOTAL)


def test_the_largest_file_is_hashed_first(root: Path, store: MemoryStore) -> None:
    """Then threads end together."""
    hashed: list[int] = []

    class Noting(Counting):
        def advance(self, count: int) -> None:
            hashed.append(count)

    checked(PIN, root, store, progress=Noting(), threads=1)
    sizes = sorted((len(data) for data in tiny().values()), reverse=True)
    assert hashed == sizes
    assert len(set(sizes)) == 4


def test_the_size_of_a_model_is_that_of_its_files_where_the_lock_has_none(
    root: Path, store: MemoryStore
) -> None:
    files = tuple(replace(file, size=None) for file in PIN.files)
    found = checked(replace(PIN, files=files), root, store)
    assert (found.ok, found.size) == (True, TOTAL)
    (root / SHARDS[0]).unlink()
    found = checked(replace(PIN, files=files), root, store)
    assert found.size == TOTAL - len(tiny()[SHARDS[0]])


def test_each_kind_of_difference_is_counted_by_itself(root: Path, store: MemoryStore) -> None:
    files = tiny()
    pin = replace(PIN, files=(*PIN.files, ModelFile(path="vocab.txt")))
    lay(
        root,
        {
            "config.json": b"[]\n",
            SHARDS[0]: files[SHARDS[0]][:-1],
            "stale.safetensors": b"x",
            "vocab.txt": b"a\n",
            "sub/notes.txt": b"",
        },
    )
    (root / SHARDS[1]).unlink()
    found = checked(pin, root, store)
    assert not found.ok
    assert told(found) == {
        "config.json": "wrong",
        SHARDS[0]: "short",
        SHARDS[1]: "missing",
        "stale.safetensors": "extra",
        "sub/notes.txt": "extra",
        "vocab.txt": "unhashed",
    }
    assert {str(state): count for state, count in found.counts.items()} == {
        "ok": 1, "missing": 1, "extra": 2, "short": 1, "wrong": 1, "unhashed": 1,
    }  # fmt: skip
    details = {file.path: file.detail for file in found.files}
    old, new = Digest.of(b"{}\n"), Digest.of(b"[]\n")
    assert details["config.json"] == f"expected {old}, got {new}"
    size = len(files[SHARDS[0]])
    assert details[SHARDS[0]] == f"{size - 1} bytes, wanted {size}"


@pytest.mark.parametrize("path", sorted(tiny()))
def test_any_flipped_bit_is_found(root: Path, store: MemoryStore, path: str) -> None:
    for place in (0, len(tiny()[path]) // 2, len(tiny()[path]) - 1):
        data = bytearray(tiny()[path])
        data[place] ^= 1
        (root / path).write_bytes(data)
        assert told(checked(PIN, root, store)) == {path: "wrong"}


def test_more_bytes_than_were_locked_are_wrong(root: Path, store: MemoryStore) -> None:
    with (root / "config.json").open("ab") as file:
        file.write(b"\n")
    assert told(checked(PIN, root, store)) == {"config.json": "wrong"}


def test_a_second_look_reads_nothing(root: Path, store: MemoryStore) -> None:
    checked(PIN, root, store)
    read = Counting()
    again = checked(PIN, root, store, progress=read)
    assert again.ok
    assert (again.hashed, read.done) == (0, 0)
    full = checked(PIN, root, store, full=True, progress=read)
    assert full.ok
    assert (full.hashed, read.done) == (TOTAL, TOTAL)


def test_nor_does_it_look_into_files_whose_tensors_were_in_order(
    root: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked(PIN, root, store)
    monkeypatch.delattr("builder.models.verify.judge")
    assert checked(PIN, root, store).ok


def test_what_was_in_order_is_looked_at_again_where_a_file_is_missing(
    root: Path, store: MemoryStore
) -> None:
    checked(PIN, root, store)
    (root / SHARDS[0]).unlink()
    assert checked(PIN, root, store).tensors == (
        f"tiny: model.safetensors.index.json names 2 files, 1 of them are missing: {SHARDS[0]}",
    )


def test_a_name_in_any_script_is_told_as_it_is(root: Path, store: MemoryStore) -> None:
    lay(root, {"ä": b"", "a\nb": b""})
    assert told(checked(PIN, root, store)) == {"ä": "extra", r"a\nb": "extra"}


def test_findings_are_in_the_order_of_their_files(tmp_path: Path, store: MemoryStore) -> None:
    files = {f"{number:02}.safetensors": b"x" for number in range(20)}
    files |= {f"{number:02}.safetensors.index.json": b"[]" for number in range(20)}
    root = lay(tmp_path / "tiny", files)
    said = checked(pin_of(files), root, store).tensors
    told_of = [each.split(": ")[1] for each in said]
    assert told_of[:20] == sorted(files)[::2]
    assert told_of[20:] == sorted(files)[1::2]


def test_of_half_a_model_nothing_is_remembered_as_in_order(root: Path, store: MemoryStore) -> None:
    pin = pin_of(tiny(), require=("nobody.has.it",))
    whole = (root / SHARDS[0]).read_bytes()
    (root / SHARDS[0]).write_bytes(whole[:-1] + b"X")
    assert checked(pin, root, store).tensors == ()
    (root / SHARDS[0]).write_bytes(whole)
    (said,) = checked(pin, root, store).tensors
    assert "it lacks nobody.has.it, which the pin requires" in said


def test_what_is_in_the_place_of_a_directory_is_extra(tmp_path: Path, store: MemoryStore) -> None:
    root = lay(tmp_path / "tiny", {"a": b"mine"})
    (root / "b").symlink_to("nowhere")
    pin = pin_of({"a/config.json": b"{}\n", "b/config.json": b"{}\n"})
    assert list(told(checked(pin, root, store)).items()) == [
        ("a", "extra"),
        ("a/config.json", "missing"),
        ("b", "extra"),
        ("b/config.json", "missing"),
    ]


def test_a_changed_byte_is_found_also_where_the_mtime_was_set_back(
    root: Path, store: MemoryStore
) -> None:
    checked(PIN, root, store)
    file = root / SHARDS[0]
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        opened.write(b"X")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    found = checked(PIN, root, store)
    assert told(found) == {SHARDS[0]: "wrong"}
    assert found.hashed == before.st_size


def gives_mapped_writes_a_time(path: Path) -> bool:
    """Whether a file system tells of a write to a page that is on the disk already."""
    path.write_bytes(b"0")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0] = ord("1")
        os.fsync(file.fileno())
        before = path.stat().st_ctime_ns
        time.sleep(TICK)
        mapped[0] = ord("2")
        return path.stat().st_ctime_ns != before


def test_a_byte_that_is_changed_by_a_mapping_that_stayed_open_is_found(
    root: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that was written to gives no time to the next write before it is on the disk."""
    monkeypatch.setattr("builder.models.verify.silent_devices", silent_devices)
    path = root / SHARDS[0]
    told_of = gives_mapped_writes_a_time(root.parent / "other")
    if path.stat().st_dev not in silent_devices() and not told_of:
        pytest.skip("this file system never gives a time to what is written to a mapping")
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[-1] = mapped[-1]
        assert checked(PIN, root, store).ok
        time.sleep(TICK)
        mapped[-1] = ord("X")
        assert told(checked(PIN, root, store)) == {SHARDS[0]: "wrong"}


@pytest.mark.parametrize(
    ("number", "state"),
    [(errno.EIO, {SHARDS[0]: "wrong"}), (errno.EROFS, {}), (errno.EINVAL, {})],
)
def test_bytes_that_did_not_reach_the_disk_are_wrong(
    root: Path,
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    state: dict[str, str],
) -> None:
    """Where it fails for want of something to write, the file is what is read."""
    bad = (root / SHARDS[0]).stat().st_ino

    def fsync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == bad:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    found = checked(PIN, root, store)
    assert told(found) == state
    assert [file.detail for file in found.files if file.state == "wrong"] == [
        "cannot be read: Input/output error" for _ in state
    ]


def test_directories_may_be_nested_deeper_than_calls(root: Path, store: MemoryStore) -> None:
    deep = root
    try:
        for _ in range(sys.getrecursionlimit()):
            deep /= "d"
            deep.mkdir()
        file = deep / "x"
        file.write_bytes(b"")
        assert told(checked(PIN, root, store)) == {str(file.relative_to(root)): "extra"}
    finally:
        (deep / "x").unlink(missing_ok=True)
        os.removedirs(deep)  # no recursion either, as rmtree has


def test_a_file_in_the_place_of_another_is_hashed_anew(root: Path, store: MemoryStore) -> None:
    checked(PIN, root, store)
    other = root.parent / "other"
    other.write_bytes(b"[]\n")
    os.utime(other, ns=(0, (root / "config.json").stat().st_mtime_ns))
    other.replace(root / "config.json")
    assert told(checked(PIN, root, store)) == {"config.json": "wrong"}


def test_a_file_of_just_now_is_not_remembered(root: Path, store: MemoryStore) -> None:
    ctime = max(path.stat().st_ctime_ns for path in root.iterdir())
    assert checked(PIN, root, store, clock=lambda: ctime + 2 * 10**9).ok
    assert checked(PIN, root, store, clock=lambda: ctime + 2 * 10**9 + 1).hashed > 0
    assert checked(PIN, root, store).hashed == 0


def test_a_new_lock_is_held_to_what_is_remembered(root: Path, store: MemoryStore) -> None:
    checked(PIN, root, store)
    other = pin_of(tiny() | {"config.json": b"[]\n"})
    found = checked(other, root, store)
    assert (told(found), found.hashed) == ({"config.json": "wrong"}, 0)


@pytest.mark.parametrize(
    "note",
    [b"{}", b"[]", b'{"files": [1], "judged": []}', b'{"files": [], "judged": 1}', b"\xff"],
)
def test_a_memo_that_is_none_counts_as_none(root: Path, store: MemoryStore, note: bytes) -> None:
    checked(PIN, root, store)
    (key,) = store.notes("model")
    store.take_note("model", key, note)
    found = checked(PIN, root, store)
    assert (found.ok, found.hashed) == (True, TOTAL)


def test_the_files_of_the_hubs_own_bookkeeping_are_no_extras(
    root: Path, store: MemoryStore
) -> None:
    lay(root, {".cache/huggingface/download/x.incomplete": b"half"})
    assert checked(PIN, root, store).ok
    lay(root, {".cache/other": b""})
    assert told(checked(PIN, root, store)) == {".cache/other": "extra"}


def test_an_empty_place_has_nothing(tmp_path: Path, store: MemoryStore) -> None:
    found = checked(PIN, tmp_path, store)
    assert found.counts[State.MISSING] == 4
    assert found.tensors == ()


def cached(root: Path) -> Path:
    """The hub's cache: blobs, and a snapshot of links to them."""
    repository = root / "models--Team--Tiny"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for path, data in tiny().items():
        blob = f"blobs/{Digest.of(data).hex}"
        lay(repository, {blob: data})
        (snapshot / path).symlink_to(f"../../{blob}")
    return snapshot


def test_the_hubs_cache_is_read_by_commit(tmp_path: Path, store: MemoryStore) -> None:
    snapshot = cached(tmp_path)
    lay(tmp_path / "models--Team--Tiny/snapshots" / ("0" * 40), {"config.json": b"other"})
    lay(tmp_path / "models--Team--Tiny", {"blobs/x.incomplete": b"half"})
    found = checked(PIN, tmp_path, store)
    assert found.ok
    assert found.place.directory == snapshot
    other = replace(PIN, commit=replace(PIN.commit, hex="1" * 40))
    assert checked(other, tmp_path, store).counts[State.MISSING] == 4


def test_a_link_out_of_the_directory_is_refused_and_its_target_told(
    root: Path, store: MemoryStore
) -> None:
    outside = root.parent / "outside.safetensors"
    (root / SHARDS[0]).rename(outside)
    (root / SHARDS[0]).symlink_to(outside)
    found = checked(PIN, root, store)
    assert told(found) == {SHARDS[0]: "wrong"}
    (detail,) = [file.detail for file in found.files if file.state is State.WRONG]
    assert detail == (
        f"a link out of the directory, to {str(outside)!r}: who gets to see only {str(root)!r}"
        " finds nothing there"
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        pytest.param("gone", "a link to 'gone', which is not there", id="nothing"),
        pytest.param(SHARDS[0], "links that lead in a circle", id="itself"),
    ],
)
def test_a_link_to_nothing_is_wrong(root: Path, store: MemoryStore, target: str, said: str) -> None:
    (root / SHARDS[0]).unlink()
    (root / SHARDS[0]).symlink_to(target)
    found = checked(PIN, root, store)
    assert told(found) == {SHARDS[0]: "wrong"}
    assert [file.detail for file in found.files if file.detail] == [said]


def test_a_directory_may_be_a_link_that_stays_inside(tmp_path: Path, store: MemoryStore) -> None:
    files = {"sub/config.json": b"{}"}
    lay(tmp_path, {"real/config.json": b"{}"})
    (tmp_path / "sub").symlink_to("real")
    assert told(checked(pin_of(files), tmp_path, store)) == {"real/config.json": "extra"}


def test_what_is_no_regular_file_is_wrong_and_nobody_waits_for_it(
    root: Path, store: MemoryStore
) -> None:
    (root / "config.json").unlink()
    os.mkfifo(root / "config.json")
    (root / SHARDS[0]).unlink()
    (root / SHARDS[0]).mkdir()
    assert told(checked(PIN, root, store)) == {"config.json": "wrong", SHARDS[0]: "wrong"}


def test_a_file_that_is_written_to_meanwhile_is_wrong_and_not_remembered(
    root: Path, store: MemoryStore
) -> None:
    class Writer(Counting):
        def advance(self, count: int) -> None:
            os.utime(root / "config.json")

    found = checked(PIN, root, store, progress=Writer(), threads=1)
    assert [file.detail for file in found.files if file.path == "config.json"] == [
        "written to while it was read"
    ]
    assert checked(PIN, root, store).hashed == 3


def test_several_models_each_have_a_directory_of_their_name(
    tmp_path: Path, store: MemoryStore
) -> None:
    other = pin_of({"config.json": b"[]"}, name="other", repository="Team/Other")
    lay(tmp_path / "tiny", tiny())
    lay(tmp_path / "other", {"config.json": b"[]", "x": b""})
    places = [(pin, place_of(pin, tmp_path, alone=False)) for pin in (PIN, other)]
    first, second = verify(
        places, store=store, progress=Counting(), clock=lambda: 0, threads=2
    )  # fmt: skip
    assert (first.ok, told(second)) == (True, {"x": "extra"})


ONE = {"a.safetensors": safetensors({"a": b"1"})}


def with_index(weights: dict[str, str]) -> dict[str, bytes]:
    """One file with one tensor, ``a``, and an index."""
    index = json.dumps({"weight_map": weights}).encode()
    return ONE | {"model.safetensors.index.json": index}


@pytest.mark.parametrize(
    "files, fields, finding",
    [
        pytest.param({"a.safetensors": b"x" * 9}, {}, "no safetensors file", id="header"),
        pytest.param(
            with_index({"a": "a.safetensors", "b": "b.safetensors"}),
            {},
            "names 2 files, 1 of them are missing: b.safetensors",
            id="shard that is not locked",
        ),
        pytest.param(
            with_index({"a": "a.safetensors", "b": "a.safetensors"}),
            {},
            "names tensors that are not there: b in a.safetensors",
            id="tensor",
        ),
        pytest.param(
            {"a.safetensors": safetensors({"mtp.fc.qweight": b"1"})},
            {"require": ("mtp.fc.weight",), "forbid": ("mtp.fc.qweight",)},
            "of 1 tensors it lacks mtp.fc.weight, which the pin requires and it has mtp.fc.qweight",
            id="require and forbid",
        ),
        pytest.param(ONE, {"tensors": 2}, "of 1 tensors the pin wants 2", id="count"),
        pytest.param(ONE, {"dtypes": ("BF16",)}, "are U8, the pin wants BF16", id="dtype"),
        pytest.param({"a.json": b"{}"}, {"dtypes": ("U8",)}, "are none, the pin", id="no dtype"),
        pytest.param({"a.json": b"{}"}, {"require": ("a",)}, "of 0 tensors it lacks", id="none"),
    ],
)  # fmt: skip
def test_files_that_are_what_was_locked_can_still_make_no_model(
    tmp_path: Path,
    store: MemoryStore,
    files: dict[str, bytes],
    fields: dict[str, Any],
    finding: str,
) -> None:
    pin = pin_of(files, **fields)
    lay(tmp_path, files)
    for _ in range(2):
        found = checked(pin, tmp_path, store)
        assert told(found) == {}
        assert not found.ok
        assert finding in "; ".join(found.tensors)


def test_tensors_as_the_pin_has_them_are_in_order(root: Path, store: MemoryStore) -> None:
    pin = replace(PIN, require=("embed",), forbid=("lm_head",), tensors=2, dtypes=("U8",))
    assert checked(pin, root, store).ok


def test_a_new_assertion_is_looked_at_though_all_files_are_remembered(
    root: Path, store: MemoryStore
) -> None:
    checked(PIN, root, store)
    found = checked(replace(PIN, forbid=("embed",)), root, store)
    assert (found.hashed, len(found.tensors)) == (0, 1)
    assert checked(PIN, root, store).ok


def test_of_half_a_model_nothing_is_said_about_its_tensors(root: Path, store: MemoryStore) -> None:
    (root / SHARDS[1]).unlink()
    found = checked(replace(PIN, require=("mtp.fc.weight",)), root, store)
    assert found.tensors == (
        f"tiny: model.safetensors.index.json names 2 files, 1 of them are missing: {SHARDS[1]}",
    )


@pytest.mark.parametrize("data", [b"", b"x"], ids=["short", "wrong"])
def test_a_shard_that_is_there_and_is_not_what_it_was_is_not_called_missing(
    root: Path, store: MemoryStore, data: bytes
) -> None:
    (root / SHARDS[1]).write_bytes(data * (root / SHARDS[1]).stat().st_size)
    found = checked(PIN, root, store)
    assert list(told(found)) == [SHARDS[1]]
    assert (found.ok, found.tensors) == (False, ())


def test_an_interrupt_ends_what_is_under_way() -> None:
    def work(crew: Crew, number: int) -> Digest:
        if number == 0:
            raise KeyboardInterrupt
        with Path("/dev/zero").open("rb", buffering=0) as endless:
            return crew.digest(endless)

    before = threading.active_count()
    with (
        pytest.raises(KeyboardInterrupt),
        at_once(work, range(50), task=Counting(), threads=2) as results,
    ):
        next(results)
    assert threading.active_count() == before


def test_what_was_not_begun_before_an_interrupt_is_not_begun() -> None:
    begun: list[int] = []
    under_way = threading.Event()

    def work(crew: Crew, number: int) -> None:
        begun.append(number)
        under_way.set()
        while True:
            crew.advance(1)

    def interrupted() -> None:
        with at_once(work, range(50), task=Counting(), threads=1):
            assert under_way.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert begun == [0]


@pytest.mark.parametrize("target", ["{root}/real.json", "../tiny/real.json"])
def test_a_link_that_leads_elsewhere_under_another_name_is_wrong(
    root: Path, store: MemoryStore, target: str
) -> None:
    """A container has the directory as /models, where neither is there."""
    (root / "config.json").rename(root / "real.json")
    pin = replace(PIN, files=(*PIN.files, ModelFile(path="real.json", digest=CONFIG, size=3)))
    (root / "config.json").symlink_to("real.json")
    assert checked(pin, root, store).ok
    (root / "config.json").unlink()
    (root / "config.json").symlink_to(target.format(root=root))
    found = checked(pin, root, store)
    assert told(found) == {"config.json": "wrong"}
    (detail,) = [file.detail for file in found.files if file.detail]
    assert "which is another place where" in detail or "a link out of the directory" in detail


CONFIG = Digest.of(b"{}\n")


def test_what_lies_behind_a_linked_directory_is_extra_too(
    tmp_path: Path, store: MemoryStore
) -> None:
    root = lay(tmp_path / "tiny", {"real/a.json": b"{}\n", "real/hook.py": b"evil\n"})
    (root / "sub").symlink_to("real")
    pin = pin_of({"sub/a.json": b"{}\n", "real/a.json": b"{}\n"})
    assert told(checked(pin, root, store)) == {"real/hook.py": "extra", "sub/hook.py": "extra"}


def test_a_tensor_that_no_index_leads_to_is_not_the_one_that_is_required(
    tmp_path: Path, store: MemoryStore
) -> None:
    """VLLM loads the files that the index names, and no other that lies beside it."""
    files = tiny()
    beside = {"mtp.safetensors": safetensors({"mtp.fc.qweight": b"q" * 8})}
    root = lay(tmp_path / "tiny", files | beside)
    pin = pin_of(files | beside)
    assert checked(replace(pin, tensors=2, require=("embed",)), root, store).ok
    found = checked(replace(pin, require=("mtp.fc.qweight",)), root, store)
    (message,) = found.tensors
    assert message == (
        "tiny: of 2 tensors it lacks mtp.fc.qweight, which the pin requires;"
        " no index names mtp.safetensors"
    )
    (message,) = checked(replace(pin, forbid=("mtp.fc.qweight",)), root, store).tensors
    assert message == "tiny: mtp.safetensors has mtp.fc.qweight, which the pin forbids"
    below = {"draft/model.safetensors": safetensors({"mtp.fc.qweight": b"q" * 8})}
    root = lay(tmp_path / "below", files | below)
    assert checked(pin_of(files | below, require=("mtp.fc.qweight",)), root, store).ok


MOUNTS = """\
21 1 {major}:{minor} / / rw,relatime shared:1 - {kind} /dev/root rw
22 1 0:21 / /proc rw - proc proc rw
a line of a later kernel
"""


@pytest.mark.parametrize(
    ("kind", "remembered"),
    [
        ("ext4", True),
        ("fuseblk", True),
        ("squashfs", False),
        ("erofs", False),
        ("vfat", False),
        ("fuse.sshfs", False),
        ("fuse", False),
        ("tmpfs", False),
    ],
)
def test_where_no_time_of_change_is_told_nothing_is_remembered(
    root: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, kind: str, remembered: bool
) -> None:
    """Another image that is mounted in the place of one may have its device, inodes and times."""
    device = root.stat().st_dev
    table = root.parent / "mountinfo"
    table.write_text(MOUNTS.format(major=os.major(device), minor=os.minor(device), kind=kind))
    checked(PIN, root, store)
    monkeypatch.setattr("builder.models.verify.silent_devices", lambda: silent_devices(table))
    first = checked(PIN, root, store)
    assert first.hashed == (0 if remembered else TOTAL), "nor what was remembered before"
    assert checked(PIN, root, store).hashed == first.hashed


def test_where_nobody_knows_what_is_mounted_nothing_is_remembered(tmp_path: Path) -> None:
    assert 7 in silent_devices(tmp_path / "none")
