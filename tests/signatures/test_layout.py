"""A layout: signatures travel with the files, and those of other tools are found."""

import json
from pathlib import Path

import pytest

from builder import artifact
from builder.adapters.store import FileStore, attachments
from builder.adapters.store.attachments import LayoutPlace
from builder.adapters.store.gc import gc
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Manifest
from builder.signatures.collect import collect
from builder.signatures.place import FloodError
from builder.signatures.publish import publish
from builder.sigstore import bundle, carriers
from tests.signatures.conftest import IMAGES, fill
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import signable
from tests.signers import p256

IMAGE = IMAGES[0].manifest.descriptor
SIGNER = p256()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    made = FileStore(tmp_path / "layout")
    fill(made, IMAGES[0])
    made.set_reference("t", IMAGE)
    return made


def sign(store: FileStore) -> None:
    publish([signable(IMAGE, "example.com/app:t")], SIGNER, LayoutPlace(store))


def test_signatures_lie_under_the_names_that_registries_know(store: FileStore) -> None:
    sign(store)
    name = f"sha256-{IMAGE.digest.hex}"
    assert sorted(store.references()) == sorted(["t", name, f"{name}.att", f"{name}.sig"])
    assert json.loads((store.paths.root / "index.json").read_bytes())["schemaVersion"] == 2


def test_collecting_garbage_leaves_them(store: FileStore) -> None:
    sign(store)
    before = collect(IMAGE.digest, LayoutPlace(store))
    gc(store, keep_days=0)
    assert collect(IMAGE.digest, LayoutPlace(store)) == before
    assert len(before.found) == 4


def test_a_layout_that_may_not_be_written_to_is_read(store: FileStore) -> None:
    sign(store)
    before = sorted(path for path in store.paths.root.rglob("*"))
    for path in before:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert len(collect(IMAGE.digest, LayoutPlace(FileStore(store.paths.root))).found) == 4
    assert sorted(path for path in store.paths.root.rglob("*")) == before
    for path in before:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_copy_without_locks_and_notes_is_read(store: FileStore, tmp_path: Path) -> None:
    """What tar, or another tool, makes of it."""
    sign(store)
    copy = tmp_path / "copy"
    (copy / "blobs/sha256").mkdir(parents=True)
    for name in ("index.json", "oci-layout"):
        (copy / name).write_bytes((store.paths.root / name).read_bytes())
    for path in (store.paths.root / "blobs/sha256").iterdir():
        (copy / "blobs/sha256" / path.name).write_bytes(path.read_bytes())
    assert len(collect(IMAGE.digest, LayoutPlace(FileStore(copy))).found) == 4


def bundles(store: FileStore) -> list[Manifest]:
    """Bundles about the image as blobs of the layout, named by nothing."""
    aside = MemoryPlace()
    publish([signable(IMAGE, "example.com/app:t")], SIGNER, aside)
    for blob in (*aside.blobs.values(), *(m.raw for m in aside.manifests.values())):
        store.put(blob)
    return [item for item in aside.manifests.values() if isinstance(item, Manifest)]


def enter(store: FileStore, *entries: dict[str, object]) -> None:
    """Write entries into index.json as other tools do."""
    path = store.paths.root / "index.json"
    document = json.loads(path.read_bytes())
    document["manifests"] += entries
    path.write_text(json.dumps(document))


def test_what_other_tools_enter_as_a_manifest_with_a_subject_is_found_once(
    store: FileStore,
) -> None:
    for manifest in bundles(store):
        enter(store, manifest.descriptor.record(), manifest.descriptor.record())
    found = collect(IMAGE.digest, LayoutPlace(store)).found
    assert [item.made_by(SIGNER.public) for item in found] == [True, True]
    sign(store)
    assert len(collect(IMAGE.digest, LayoutPlace(store)).found) == 4


def test_a_list_that_is_not_there_is_an_error(store: FileStore) -> None:
    sign(store)
    tag = carriers.signature_tag(IMAGE.digest)
    Path(store.path(store.references()[tag].digest)).unlink()
    with pytest.raises(Exception, match="no such blob") as caught:
        collect(IMAGE.digest, LayoutPlace(store))
    assert type(caught.value).__name__ == "GoneError"


def test_a_list_of_another_size_than_its_entry_says_is_refused(store: FileStore) -> None:
    sign(store)
    tag = carriers.signature_tag(IMAGE.digest)
    index_file = store.paths.root / "index.json"
    document = json.loads(index_file.read_bytes())
    for entry in document["manifests"]:
        if entry.get("annotations", {}).get("org.opencontainers.image.ref.name") == tag:
            entry["size"] += 1
    index_file.write_text(json.dumps(document))
    with pytest.raises(IntegrityError, match=r"expected \d+ bytes, got \d+"):
        LayoutPlace(store).tagged(tag)


def test_a_bundle_that_was_not_copied_is_told(store: FileStore) -> None:
    sign(store)
    for entry in LayoutPlace(store).referrers(IMAGE.digest, bundle.MEDIA_TYPE):
        Path(store.path(entry.digest)).unlink()
    collected = collect(IMAGE.digest, LayoutPlace(store))
    assert (len(collected.found), len(collected.refused)) == (2, 2)
    assert all("no such blob" in refused.reason for refused in collected.refused)


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_layer_whose_size_lies_is_refused(store: FileStore, size: int) -> None:
    (first, *_) = bundles(store)
    document = json.loads(first.raw)
    document["layers"][0]["size"] = size
    raw = json.dumps(document).encode()
    store.put(raw)
    enter(store, Manifest.parse(raw).descriptor.record())
    collected = collect(IMAGE.digest, LayoutPlace(store))
    assert collected.found == ()
    assert len(collected.refused) == 1


def test_a_blob_that_rotted_is_refused(store: FileStore) -> None:
    sign(store)
    for layer in Manifest.parse(
        store.read(store.references()[carriers.signature_tag(IMAGE.digest)].digest)
    ).layers:
        path = store.path(layer.digest)
        path.write_bytes(path.read_bytes()[::-1])
    collected = collect(IMAGE.digest, LayoutPlace(store))
    assert len(collected.found) == 3
    assert "the bytes are sha256:" in collected.refused[0].reason


def test_an_index_with_no_end_is_not_searched(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "LISTED_LIMIT", 3)
    sign(store)
    with pytest.raises(FloodError, match="4 manifests, the limit is 3"):
        collect(IMAGE.digest, LayoutPlace(store))


def test_a_manifest_of_others_that_names_the_image_and_is_malformed_is_told(
    store: FileStore,
) -> None:
    raw = b'{"schemaVersion":2,"layers":"%b"}' % IMAGE.digest.hex.encode()
    digest = store.put(raw)
    entry = {"mediaType": IMAGE.media_type, "digest": str(digest), "size": len(raw)}
    enter(store, entry)
    with pytest.raises(IntegrityError, match="layers: expected a list"):
        collect(IMAGE.digest, LayoutPlace(store))


def test_the_empty_config_is_there_for_tools_that_copy_it(store: FileStore) -> None:
    sign(store)
    assert store.has(Digest.of(artifact.EMPTY), size=2)
    assert store.has(Digest.of(carriers.CONFIG))


def entries(store: FileStore, *more: dict[str, object]) -> None:
    """Entries in index.json that have no names."""
    path = store.paths.root / "index.json"
    document = json.loads(path.read_bytes())
    document["manifests"] += more
    path.write_text(json.dumps(document))


def test_a_manifest_that_is_listed_often_is_read_once(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 4 MiB under ten thousand annotations took a minute."""
    record = IMAGE.record()
    entries(store, *({**record, "annotations": {"n": str(number)}} for number in range(100)))
    monkeypatch.setattr(attachments, "TOTAL_LIMIT", 2 * IMAGE.size)
    assert collect(IMAGE.digest, LayoutPlace(store)).found == ()


def test_manifests_are_looked_through_within_a_limit(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, IMAGES[1])
    entries(store, IMAGES[1].manifest.descriptor.record())
    size = IMAGE.size + IMAGES[1].manifest.descriptor.size
    monkeypatch.setattr(attachments, "TOTAL_LIMIT", size)
    assert collect(IMAGE.digest, LayoutPlace(store)).found == ()
    monkeypatch.setattr(attachments, "TOTAL_LIMIT", size - 1)
    with pytest.raises(FloodError, match=f"over {size - 1} bytes of manifests to look through"):
        collect(IMAGE.digest, LayoutPlace(store))
