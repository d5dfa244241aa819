"""What ``builder.ports.Store`` promises, asked of every store."""

import threading
from dataclasses import replace

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError, UsageError
from builder.oci import OCI_MANIFEST, Descriptor
from builder.ports import Store
from tests.store.worlds import NOWHERE, AnyStore, image, spoil

DATA = bytes(range(256)) * 2000


def test_every_store_is_the_port(store: AnyStore) -> None:
    port: Store = store
    assert not port.has(NOWHERE)


def test_what_was_put_is_there_under_its_digest(store: AnyStore) -> None:
    digest = store.put(DATA)
    assert digest == Digest.of(DATA)
    assert store.read(digest) == DATA
    assert store.has(digest)
    assert store.has(digest, size=len(DATA))
    assert not store.has(digest, size=len(DATA) - 1)


def test_putting_twice_is_putting_once(store: AnyStore) -> None:
    assert store.put(DATA) == store.put(DATA)
    assert store.read(Digest.of(DATA)) == DATA


def test_the_empty_blob_is_a_blob(store: AnyStore) -> None:
    digest = store.put(b"")
    assert store.has(digest, size=0)
    assert store.read(digest) == b""
    with store.open(digest) as stream:
        assert stream.read() == b""


def test_what_nobody_put_is_not_there(store: AnyStore) -> None:
    assert not store.has(NOWHERE)
    with pytest.raises(KeyError, match=str(NOWHERE)):
        store.read(NOWHERE)
    with pytest.raises(KeyError, match=str(NOWHERE)):
        store.open(NOWHERE)


def test_a_blob_over_the_limit_is_not_read(store: AnyStore) -> None:
    digest = store.put(DATA)
    assert store.read(digest, limit=len(DATA)) == DATA
    with pytest.raises(IntegrityError, match=r"512000 bytes, the limit is 511999$"):
        store.read(digest, limit=len(DATA) - 1)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(b"\1" + DATA[1:], id="same size"),
        pytest.param(DATA[:-1], id="cut short"),
        pytest.param(DATA + b"\0", id="longer"),
        pytest.param(b"", id="empty"),
    ],
)
def test_other_bytes_are_never_read(store: AnyStore, other: bytes) -> None:
    digest = store.put(DATA)
    spoil(store, digest, other)
    with pytest.raises(IntegrityError, match=str(Digest.of(other))):
        store.read(digest)
    with store.open(digest) as stream, pytest.raises(IntegrityError, match=str(Digest.of(other))):
        stream.read()


def test_a_reader_who_counts_does_not_get_the_last_bytes_of_a_spoilt_blob(store: AnyStore) -> None:
    digest = store.put(DATA)
    spoil(store, digest, b"\1" + DATA[1:])
    got = bytearray()

    def read_all_and_no_more() -> None:
        with store.open(digest) as stream:
            while len(got) < len(DATA):
                got.extend(stream.read(1000))

    with pytest.raises(IntegrityError):
        read_all_and_no_more()
    assert len(got) < len(DATA)


def test_a_stream_can_be_read_in_pieces_and_from_a_place(store: AnyStore) -> None:
    digest = store.put(DATA)
    with store.open(digest) as stream:
        assert stream.read(5) == DATA[:5]
        assert stream.seek(300_000) == 300_000
        assert stream.read(7) == DATA[300_000:300_007]
        assert stream.tell() == 300_007
        assert stream.read() == DATA[300_007:]
        stream.seek(0)
        assert stream.read() == DATA


def test_a_seek_to_the_start_begins_the_check_anew(store: AnyStore) -> None:
    digest = store.put(DATA)
    spoil(store, digest, b"\1" + DATA[1:])
    with store.open(digest) as stream:
        assert stream.seek(0, 2) == len(DATA)
        stream.seek(0)
        with pytest.raises(IntegrityError):
            stream.read()


def test_a_writer_makes_a_blob_of_its_pieces(store: AnyStore) -> None:
    digest = Digest.of(DATA * 3)
    with store.writer() as writer:
        assert writer.write(DATA) == len(DATA)
        assert writer.write(bytearray(DATA)) == len(DATA)
        assert not store.has(digest)
        assert writer.write(memoryview(DATA)) == len(DATA)
        assert writer.commit(digest, size=3 * len(DATA)) == digest
    assert store.read(digest) == DATA * 3


def test_a_writer_that_writes_nothing_makes_the_empty_blob(store: AnyStore) -> None:
    with store.writer() as writer:
        assert writer.commit() == Digest.of(b"")
    assert store.has(Digest.of(b""), size=0)


def test_what_is_not_committed_is_dropped(store: AnyStore) -> None:
    with store.writer() as writer:
        writer.write(DATA)
    assert not store.has(Digest.of(DATA))


def test_an_error_of_the_caller_passes_through_a_writer(store: AnyStore) -> None:
    def receive() -> None:
        with store.writer() as writer:
            writer.write(DATA)
            raise OSError("the connection broke")

    with pytest.raises(OSError, match=r"^the connection broke$"):
        receive()
    assert not store.has(Digest.of(DATA))


def test_bytes_that_were_not_expected_are_refused_and_dropped(store: AnyStore) -> None:
    with store.writer() as writer:
        writer.write(DATA)
        with pytest.raises(
            IntegrityError,
            match=rf"new blob: expected {NOWHERE}, got {Digest.of(DATA)} \(512000 bytes\)$",
        ):
            writer.commit(NOWHERE)
        with pytest.raises(IntegrityError, match=r"new blob: expected 1 bytes, got 512000$"):
            writer.commit(Digest.of(DATA), size=1)
    assert not store.has(NOWHERE)
    assert not store.has(Digest.of(DATA))


def test_nothing_follows_a_commit(store: AnyStore) -> None:
    with store.writer() as writer:
        writer.commit()
        with pytest.raises(RuntimeError, match="write after commit"):
            writer.write(b"x")
        with pytest.raises(RuntimeError, match="commit after commit"):
            writer.commit()


def test_a_note_is_kept_and_replaced(store: AnyStore) -> None:
    assert store.note("trace", "a") is None
    store.take_note("trace", "a", b"{}")
    store.take_note("trace", "a", b"{}")
    assert store.note("trace", "a") == b"{}"
    store.take_note("trace", "a", b"no JSON")
    assert store.note("trace", "a") == b"no JSON"
    assert store.note("files", "a") is None


def test_notes_are_listed_by_kind_in_order(store: AnyStore) -> None:
    assert list(store.notes("trace")) == []
    for key in ("b", "a", "sha256:c"):
        store.take_note("trace", key, b"1")
    store.take_note("files", "z", b"1")
    assert list(store.notes("trace")) == ["a", "b", "sha256:c"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "a\\b", "a\0", "a b", "ä", "a\n", "x" * 201]
)
def test_a_note_that_is_no_plain_file_name_is_a_bug(store: AnyStore, name: str) -> None:
    for kind, key in ((name, "key"), ("kind", name)):
        with pytest.raises(ValueError, match="not a plain file name"):
            store.note(kind, key)
        with pytest.raises(ValueError, match="not a plain file name"):
            store.take_note(kind, key, b"1")
    with pytest.raises(ValueError, match="not a plain file name"):
        store.notes(name)
    with pytest.raises(ValueError, match="not a plain file name"), store.lock(name):
        pass


def test_an_empty_note_is_a_bug(store: AnyStore) -> None:
    with pytest.raises(ValueError, match=r"^an empty note says nothing$"):
        store.take_note("trace", "a", b"")
    assert store.note("trace", "a") is None


def test_a_reference_names_a_manifest(store: AnyStore) -> None:
    assert dict(store.references()) == {}
    one, two = image(store, layers=(b"one",)), image(store, layers=(b"two",))
    store.set_reference("demo", one)
    store.set_reference("other", one)
    store.set_reference("demo", two)
    found = store.references()
    assert {name: item.digest for name, item in found.items()} == {
        "demo": two.digest,
        "other": one.digest,
    }
    assert found["demo"] == replace(
        two, annotations=(("org.opencontainers.image.ref.name", "demo"),)
    )


def test_a_reference_to_nothing_is_refused(store: AnyStore) -> None:
    missing = Descriptor(media_type=OCI_MANIFEST, digest=NOWHERE, size=7)
    with pytest.raises(KeyError, match=str(NOWHERE)):
        store.set_reference("demo", missing)
    assert dict(store.references()) == {}


def test_a_reference_with_another_size_is_refused(store: AnyStore) -> None:
    manifest = image(store, layers=())
    wrong = replace(manifest, size=manifest.size + 1)
    with pytest.raises(
        IntegrityError,
        match=rf"blob {manifest.digest}: expected {manifest.size + 1} bytes, got {manifest.size}$",
    ):
        store.set_reference("demo", wrong)
    assert dict(store.references()) == {}


@pytest.mark.parametrize("name", ["demo", "a/b:c@d+e", "A.b_c-d", "a--b", "1"])
def test_a_reference_name_is_what_other_tools_take(store: AnyStore, name: str) -> None:
    store.set_reference(name, image(store, layers=()))
    assert list(store.references()) == [name]


@pytest.mark.parametrize(
    "name", ["", "-", "a-", "/a", "a..b", "a---b", "a b", "ä", "a\n", "x" * 201]
)
def test_another_reference_name_is_refused(store: AnyStore, name: str) -> None:
    manifest = image(store, layers=())
    with pytest.raises(UsageError) as caught:
        store.set_reference(name, manifest)
    assert caught.value.message == (
        f"reference name {name!r} does not follow the grammar of image layouts"
    )
    assert dict(store.references()) == {}


def test_a_dropped_reference_is_gone_and_its_blobs_are_not(store: AnyStore) -> None:
    manifest = image(store, layers=())
    store.set_reference("demo", manifest)
    store.set_reference("other", manifest)
    store.drop_reference("demo")
    assert list(store.references()) == ["other"]
    assert store.has(manifest.digest)
    with pytest.raises(KeyError, match="demo"):
        store.drop_reference("demo")


def test_a_lock_excludes_threads_that_take_the_same_name(store: AnyStore) -> None:
    seen: list[str] = []

    def other() -> None:
        with store.lock("a"):
            seen.append("other")

    thread = threading.Thread(target=other)
    with store.lock("a"), store.lock("b"):
        thread.start()
        thread.join(0.05)
        seen.append("first")
    thread.join()
    assert seen == ["first", "other"]


def test_a_thread_that_would_wait_for_itself_is_told(store: AnyStore) -> None:
    with store.lock("a"):
        with (
            pytest.raises(RuntimeError, match="this thread holds the lock 'a' already"),
            store.lock("a"),
        ):
            pass
        with pytest.raises(RuntimeError), store.lock("a"):
            pass  # the refusal did not give the lock away
    with store.lock("a"):
        pass


def test_leases_nest_and_are_shared(store: AnyStore) -> None:
    with store.lease(), store.lease():
        thread = threading.Thread(target=store.put, args=(DATA,))
        thread.start()
        thread.join()
        with store.lock("a"):
            store.take_note("trace", "a", b"1")
    assert store.has(Digest.of(DATA))
