"""What a store on disk is, and what is refused to be one."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import canonical
from builder.adapters.store import FileStore, index
from builder.adapters.store.verify import verify
from builder.digest import Digest
from builder.errors import EnvironmentFault, IntegrityError
from builder.oci import OCI_MANIFEST, Descriptor
from tests.store.worlds import add_entry, blob_file, elsewhere, image, index_file

DATA = b"some layer"
DIGEST = Digest.of(DATA)


@pytest.fixture(params=[0o000, 0o077, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    try:
        yield request.param
    finally:
        os.umask(before)


def _tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


# --- how it comes to be --------------------------------------------------------------------------


def test_asking_an_absent_store_makes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "a" / "store"
    store = FileStore(root)
    assert not store.has(DIGEST)
    assert store.note("trace", "a") is None
    assert list(store.notes("trace")) == []
    assert dict(store.references()) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_first_write_makes_a_layout_of_exactly_this(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "a" / "store")
    store.put(DATA)
    store.take_note("trace", "k", b"{}")
    assert _tree(store.paths.root) == {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": (
            b'{"manifests":[],"mediaType":"application/vnd.oci.image.index.v1+json",'
            b'"schemaVersion":2}'
        ),
        "blobs": None,
        "blobs/sha256": None,
        f"blobs/sha256/{DIGEST.hex}": DATA,
        "notes": None,
        "notes/trace": None,
        "notes/trace/k": b"{}",
        "tmp": None,
        "locks": None,
        "locks/.create": b"%d\n" % os.getpid(),
        "leases": None,
        "leases/store": b"",
    }


def test_an_empty_directory_becomes_a_store(tmp_path: Path) -> None:
    FileStore(tmp_path).put(DATA)
    assert FileStore(tmp_path).read(DIGEST) == DATA


def test_a_skeleton_that_a_kill_left_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "1-half").write_bytes(b"{")
    (tmp_path / "blobs" / "sha256").mkdir(parents=True)
    FileStore(tmp_path).put(DATA)
    assert verify(FileStore(tmp_path)).ok


def test_whatever_the_umask_anybody_may_read(umask: int, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.take_note("trace", "k", b"{}")
    store.set_reference("demo", image(store, layers=(DATA,)))
    modes = {
        name: stat.S_IMODE(os.stat(tmp_path / name).st_mode)
        for name, data in _tree(tmp_path).items()
        if data is None or name.startswith(("oci-layout", "index.json", "blobs/", "notes/"))
    }
    assert {name: mode for name, mode in modes.items() if mode != 0o644} == dict.fromkeys(
        ("blobs", "blobs/sha256", "notes", "notes/trace", "tmp", "locks", "leases"), 0o755
    )


def test_a_store_is_reached_through_a_link_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    store = FileStore(Path("link"))
    store.put(DATA)
    monkeypatch.chdir("other")
    assert store.read(DIGEST) == DATA
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "blobs" / "sha256" / DIGEST.hex).read_bytes() == DATA
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("other")
    store.take_note("trace", "k", b"1")  # a store under way stays where it was
    assert list((tmp_path / "other").iterdir()) == []
    assert store.note("trace", "k") == b"1"


# --- what is refused -----------------------------------------------------------------------------


def test_a_directory_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(EnvironmentFault) as caught:
        FileStore(tmp_path)
    assert caught.value.message == (
        f"store '{tmp_path}': not an OCI image layout: it has 'thesis.txt' and no 'oci-layout'"
    )
    assert caught.value.hint == "choose an empty or a new directory with --store DIR"
    assert _tree(tmp_path) == {"thesis.txt": b"mine"}


@pytest.mark.parametrize("when", [1, 2], ids=["before the first look", "before the second"])
def test_a_store_that_somebody_else_makes_meanwhile_is_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: int
) -> None:
    root = tmp_path / "store"
    root.mkdir()
    (root / "blobs").mkdir()
    (root / "blobs" / "sha256").mkdir()
    other = FileStore(root)
    looks: list[str] = []
    real = os.listdir

    def look(path: str) -> list[str]:
        looks.append(path)
        if len(looks) == when:
            other.put(b"of another process")
        return real(path)

    monkeypatch.setattr(os, "listdir", look)
    assert FileStore(root).has(Digest.of(b"of another process"))
    assert len(looks) == when


def test_blobs_without_a_mark_are_refused(files: FileStore) -> None:
    files.put(DATA)
    (files.paths.root / "oci-layout").unlink()
    with pytest.raises(EnvironmentFault) as caught:
        FileStore(files.paths.root)
    assert caught.value.message == (
        f"store '{files.paths.root}': not an OCI image layout: it has 'blobs' and no 'oci-layout'"
    )


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(EnvironmentFault) as caught:
        FileStore(tmp_path / "file")
    assert caught.value.message == f"store '{tmp_path / 'file'}': not a directory"


@pytest.mark.parametrize(
    "mark, message",
    [
        pytest.param(
            b'{"imageLayoutVersion":"2.0.0"}',
            "layout version '2.0.0' is not supported, wanted '1.0.0'",
            id="newer",
        ),
        pytest.param(b"[]", "layout version None is not supported, wanted '1.0.0'", id="list"),
        pytest.param(
            b'{"image', "not JSON: Unterminated string starting at: line 1 column 2 (char 1)",
            id="half",
        ),
        pytest.param(b"", "not JSON: Expecting value: line 1 column 1 (char 0)", id="empty"),
    ],
)  # fmt: skip
def test_another_layout_version_is_refused(mark: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "oci-layout").write_bytes(mark)
    with pytest.raises(EnvironmentFault) as caught:
        FileStore(tmp_path)
    assert caught.value.message == f"store '{tmp_path}': oci-layout: {message}"
    assert _tree(tmp_path) == {"oci-layout": mark}


def test_the_mark_of_another_tool_is_read_as_json(tmp_path: Path) -> None:
    (tmp_path / "oci-layout").write_text('{\n  "imageLayoutVersion": "1.0.0",\n  "x": 1\n}\n')
    (tmp_path / "index.json").write_text('{"schemaVersion": 2, "manifests": []}')
    store = FileStore(tmp_path)
    store.set_reference("demo", image(store, layers=(DATA,)))
    assert (tmp_path / "oci-layout").read_text().startswith("{\n")
    assert json.loads((tmp_path / "index.json").read_bytes()).keys() == {
        "schemaVersion",
        "manifests",
    }


# --- blobs ---------------------------------------------------------------------------------------


def test_a_half_blob_is_not_read_and_the_next_put_mends_it(files: FileStore) -> None:
    files.put(DATA)
    blob_file(files, DIGEST).write_bytes(DATA[:4])
    assert not files.has(DIGEST, size=len(DATA))
    with pytest.raises(IntegrityError) as caught:
        files.read(DIGEST)
    assert caught.value.message == (
        f"store '{files.paths.root}': blob {DIGEST}: the bytes are {Digest.of(DATA[:4])}"
    )
    assert caught.value.hint == ("run `builder store verify --repair` to drop it, then build again")
    files.put(DATA)
    assert files.read(DIGEST) == DATA


@pytest.mark.parametrize("there", ["link", "dangling link", "pipe"])
def test_what_is_no_file_is_no_blob_and_the_next_put_replaces_it(
    there: str, files: FileStore
) -> None:
    files.put(b"other")
    path = blob_file(files, DIGEST)
    elsewhere_ = files.paths.root.parent / "elsewhere"
    if there == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere_)
    if there == "link":
        elsewhere_.write_bytes(DATA)
    assert not files.has(DIGEST)
    with pytest.raises(KeyError):
        files.path(DIGEST)
    for read in (files.read, files.open):
        with pytest.raises(IntegrityError) as caught:
            read(DIGEST)
        assert caught.value.message == (
            f"store '{files.paths.root}': blob {DIGEST}:"
            " expected a regular file, got something else"
        )
    files.put(DATA)
    assert files.read(DIGEST) == DATA
    assert files.path(DIGEST) == path
    assert not path.is_symlink()
    assert not elsewhere_.exists() or elsewhere_.read_bytes() == DATA


def test_a_directory_in_the_place_of_a_blob_is_for_a_person_to_remove(files: FileStore) -> None:
    files.put(b"other")
    path = blob_file(files, DIGEST)
    path.mkdir()
    (path / "x").write_text("mine")
    assert not files.has(DIGEST)
    for act in (lambda: files.read(DIGEST), lambda: files.put(DATA)):
        with pytest.raises(IntegrityError) as caught:
            act()
        assert caught.value.message == (
            f"store '{files.paths.root}': blob {DIGEST}:"
            " expected a regular file, got something else"
        )
        assert caught.value.hint == f"find out who put it there, and remove '{path}'"
    assert (path / "x").read_text() == "mine"
    assert os.listdir(files.paths.tmp) == []


def test_what_is_there_is_not_written_again(files: FileStore) -> None:
    path = blob_file(files, files.put(DATA))
    before = path.stat().st_ino
    with files.writer() as writer:
        writer.write(DATA)
        writer.commit()
    assert path.stat().st_ino == before
    assert list((files.paths.root / "tmp").iterdir()) == []


def test_a_writer_that_failed_leaves_no_file(files: FileStore) -> None:
    with pytest.raises(IntegrityError), files.writer() as writer:
        writer.commit(DIGEST)
    assert os.listdir(files.paths.tmp) == []
    assert os.listdir(files.paths.blobs) == []


def test_an_empty_file_is_no_note(files: FileStore) -> None:
    files.take_note("trace", "a", b"1")
    (files.paths.root / "notes" / "trace" / "a").write_bytes(b"")
    (files.paths.root / "notes" / "trace" / ".a.swp").write_bytes(b"an editor was here")
    assert files.note("trace", "a") is None
    assert list(files.notes("trace")) == ["a"]
    files.take_note("trace", "a", b"2")
    assert files.note("trace", "a") == b"2"


# --- index.json ----------------------------------------------------------------------------------


def test_a_reference_is_written_as_canonical_json(files: FileStore) -> None:
    manifest = image(files, layers=(DATA,))
    files.set_reference("demo", manifest)
    assert index_file(files).read_bytes() == (
        b'{"manifests":[{"annotations":{"org.opencontainers.image.ref.name":"demo"},'
        b'"digest":"%b","mediaType":"application/vnd.oci.image.manifest.v1+json","size":%d}],'
        b'"mediaType":"application/vnd.oci.image.index.v1+json","schemaVersion":2}'
        % (str(manifest.digest).encode(), manifest.size)
    )


def test_setting_what_is_set_writes_nothing(files: FileStore) -> None:
    manifest = image(files, layers=(DATA,))
    files.set_reference("demo", manifest)
    before = os.stat(index_file(files))
    files.set_reference("demo", manifest)
    assert os.stat(index_file(files)) == before


def test_entries_of_other_tools_come_out_again(files: FileStore) -> None:
    manifest, other = image(files, layers=(DATA,)), image(files, layers=(b"2",))
    files.set_reference("demo", manifest)
    foreign: list[dict[str, object]] = [
        {"mediaType": "text/plain", "digest": "sha512:" + "0" * 128, "size": 1, "x": [None, "é"]},
        {
            **elsewhere("arm64").record(),
            "annotations": {"com.example.odd": "1"},
            "platform": {"os": "linux", "architecture": "arm64", "os.features": ["a"]},
        },
    ]
    for entry in foreign:
        add_entry(files, entry)
    files.set_reference("demo", other)
    files.set_reference("second", manifest)
    manifests = json.loads(index_file(files).read_bytes())["manifests"]
    assert manifests[1:3] == foreign
    assert [manifests[0]["digest"], manifests[3]["digest"]] == [
        str(other.digest),
        str(manifest.digest),
    ]
    files.drop_reference("demo")
    files.drop_reference("second")
    assert json.loads(index_file(files).read_bytes())["manifests"] == foreign


@settings(max_examples=40)
@given(
    names=st.lists(st.sampled_from(["a", "b", "c", None]), max_size=8),
    name=st.sampled_from(["a", "b", "new"]),
)
def test_an_edit_touches_one_name_and_keeps_the_order(names: list[str | None], name: str) -> None:
    document: index.Document = {
        "schemaVersion": 2,
        "manifests": [
            {"number": number, **({"annotations": {index.REF_NAME: old}} if old else {})}
            for number, old in enumerate(names)
        ],
    }
    before = canonical.encode(document)
    descriptor = Descriptor(media_type=OCI_MANIFEST, digest=DIGEST, size=1)
    after = index.with_reference(document, name=name, descriptor=descriptor)
    ours = [entry for entry in after["manifests"] if entry.get("digest") == str(DIGEST)]
    assert len(ours) == 1
    others = [entry for number, entry in enumerate(document["manifests"]) if names[number] != name]
    assert [entry for entry in after["manifests"] if entry not in ours] == others
    if name in names:
        assert after["manifests"].index(ours[0]) == names.index(name)
    assert index.with_reference(after, name=name, descriptor=descriptor) == after
    assert index.without_reference(after, name=name)["manifests"] == others
    assert canonical.encode(document) == before


@pytest.mark.parametrize(
    "raw, message",
    [
        pytest.param(b"", "not JSON: Expecting value: line 1 column 1 (char 0)", id="empty"),
        pytest.param(
            b'{"schemaVersion":2,"manif', "not JSON: Unterminated string starting at:"
            " line 1 column 20 (char 19)", id="half",
        ),
        pytest.param(b"{}", "expected an image index with schemaVersion 2", id="other document"),
        pytest.param(b"[]", "expected an image index with schemaVersion 2", id="list"),
    ],
)  # fmt: skip
def test_a_broken_index_is_an_error_and_never_no_references(
    raw: bytes, message: str, files: FileStore
) -> None:
    manifest = image(files, layers=(DATA,))
    files.set_reference("demo", manifest)
    index_file(files).write_bytes(raw)
    acts = (
        files.references,
        lambda: files.set_reference("demo", manifest),
        lambda: files.drop_reference("demo"),
    )
    for act in acts:
        with pytest.raises(IntegrityError) as caught:
            act()
        assert caught.value.message == f"store '{files.paths.root}': index.json: {message}"
        assert caught.value.hint == (
            "put index.json back from a copy, or choose another store with --store DIR"
        )
    assert index_file(files).read_bytes() == raw


def test_an_index_over_the_limit_is_not_read_to_its_end(
    files: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.set_reference("demo", image(files, layers=(DATA,)))
    size = index_file(files).stat().st_size
    monkeypatch.setattr(index, "LIMIT", size)
    assert list(files.references()) == ["demo"]
    monkeypatch.setattr(index, "LIMIT", size - 2)
    with pytest.raises(IntegrityError) as caught:
        files.references()
    assert caught.value.message == (
        f"store '{files.paths.root}': index.json: {size - 1} bytes of JSON, the limit is {size - 2}"
    )


def test_a_missing_index_is_an_error_and_never_no_references(files: FileStore) -> None:
    manifest = image(files, layers=(DATA,))
    index_file(files).unlink()
    for act in (files.references, lambda: files.set_reference("demo", manifest)):
        with pytest.raises(IntegrityError) as caught:
            act()
        assert caught.value.message == f"store '{files.paths.root}': index.json: missing"
    assert not index_file(files).exists()


def test_a_number_with_a_fraction_is_not_written_in_another_spelling(files: FileStore) -> None:
    manifest = image(files, layers=(DATA,))
    files.put(b"x")
    add_entry(files, {"x": 1.50})
    before = index_file(files).read_bytes()
    with pytest.raises(IntegrityError) as caught:
        files.set_reference("demo", manifest)
    assert caught.value.message == (
        f"store '{files.paths.root}': index.json: cannot be written again:"
        " canonical JSON has no floats, got 1.5"
    )
    assert index_file(files).read_bytes() == before


def test_a_name_that_stands_for_two_manifests_is_refused_until_it_is_set(files: FileStore) -> None:
    one, two = image(files, layers=(b"1",)), image(files, layers=(b"2",))
    files.set_reference("demo", one)
    add_entry(files, {**two.record(), "annotations": {index.REF_NAME: "demo"}})
    with pytest.raises(IntegrityError) as caught:
        files.references()
    assert caught.value.message == (
        f"store '{files.paths.root}': index.json: 'demo' names both {one.digest} and {two.digest}"
    )
    assert not verify(files).ok
    files.set_reference("demo", two)
    assert files.references()["demo"].digest == two.digest


# --- what it costs -------------------------------------------------------------------------------


def test_a_build_imports_nothing_heavy_for_its_store() -> None:
    program = (
        "import sys, builder.ports; before = set(sys.modules)\n"
        "import builder.adapters.store, pathlib\n"
        "store = builder.adapters.store.FileStore(pathlib.Path('nowhere'))\n"
        "store.note('trace', 'a')\n"
        "print(*sorted(name for name in set(sys.modules) - before if 'builder' not in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) <= {"fcntl"}


def test_a_question_opens_one_file_and_scans_nothing(files: FileStore) -> None:
    files.put(DATA)
    files.take_note("trace", "k", b"1")
    calls: list[str] = []

    def count(event: str, arguments: tuple[object, ...]) -> None:
        if recording and event.startswith(("open", "os.")):
            calls.append(event)

    recording = False
    sys.addaudithook(count)
    recording = True
    files.has(DIGEST)
    files.note("trace", "k")
    FileStore(files.paths.root)
    recording = False
    assert calls == ["open", "open"]
