"""What ``verify`` says of a store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from builder.adapters.store import FileStore
from builder.adapters.store.verify import Finding, Report, repair, verify
from builder.digest import Digest
from builder.notes import blobs_of
from builder.oci import OCI_MANIFEST, Descriptor, Manifest
from tests.store.worlds import (
    NOWHERE,
    add_entry,
    blob_file,
    elsewhere,
    image,
    index_file,
    index_of,
)

LAYER = b"layer" * 1000


class Bar:
    """A progress bar that counts."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int | None]] = []
        self.done = 0

    @contextmanager
    def task(self, title: str, *, total: int | None = None) -> Iterator["Bar"]:
        self.said.append((title, total))
        yield self

    def advance(self, count: int) -> None:
        self.done += count


def test_a_good_store_is_good(files: FileStore) -> None:
    manifest = image(files, layers=(LAYER,), base=(b"base",))
    files.set_reference("demo", manifest)
    files.set_reference("all", index_of(files, manifest, elsewhere("arm64")))
    files.take_note("trace", "k", b'{"blobs":["%b"]}' % str(Digest.of(LAYER)).encode())
    files.take_note("odd", "k", b"not JSON")
    bar = Bar()
    report = verify(files, required=lambda: [Digest.of(LAYER)], progress=bar)
    size = sum(path.stat().st_size for path in blob_file(files, NOWHERE).parent.iterdir())
    assert report == Report(
        blobs=4,
        size=size,
        errors=(),
        corrupt=(),
        absent=(Digest.of(b"base"), Digest.of(b"arm64")),
        stale=(),
        leftovers=(),
    )
    assert report.ok
    assert bar.said == [("verifying the store", size)]
    assert bar.done == size


def test_a_store_that_is_not_there_is_good(files: FileStore) -> None:
    assert verify(files).ok
    assert not files.paths.root.exists()


def test_each_fault_is_named(files: FileStore) -> None:
    files.put(b"other")
    half, link, directory = Digest.of(LAYER), Digest.of(b"link"), Digest.of(b"directory")
    blob_file(files, half).write_bytes(LAYER[:7])
    blob_file(files, link).symlink_to(blob_file(files, Digest.of(b"other")))
    blob_file(files, directory).mkdir()
    (blob_file(files, half).parent / "upload.part").write_bytes(b"1")
    report = verify(files, required=lambda: [NOWHERE])
    assert sorted(report.errors, key=lambda finding: finding.at) == sorted(
        [
            Finding(at=f"blobs/sha256/{NOWHERE.hex}", problem="missing"),
            Finding(
                at=f"blobs/sha256/{half.hex}",
                problem=f"the bytes (7) are {Digest.of(LAYER[:7])}",
            ),
            Finding(at=f"blobs/sha256/{link.hex}", problem="not a regular file"),
            Finding(at=f"blobs/sha256/{directory.hex}", problem="not a regular file"),
            Finding(at="blobs/sha256/upload.part", problem="the name is not a sha256 digest"),
        ],
        key=lambda finding: finding.at,
    )
    assert report.corrupt == (half,)
    assert not report.ok


def test_repair_drops_what_is_corrupt_and_nothing_else(files: FileStore) -> None:
    good, bad, mended = files.put(b"good"), files.put(b"bad"), files.put(b"mended")
    blob_file(files, bad).write_bytes(b"bat")
    blob_file(files, mended).write_bytes(b"?")
    report = verify(files)
    assert set(report.corrupt) == {bad, mended}
    files.put(b"mended")
    assert repair(files, report) == (bad,)
    assert (files.has(good), files.has(bad), files.has(mended)) == (True, False, True)
    assert verify(files).ok
    files.put(b"bad")
    assert files.read(bad) == b"bad"


def test_a_reference_to_a_missing_manifest_is_an_error(files: FileStore) -> None:
    manifest = image(files, layers=(LAYER,))
    files.set_reference("demo", manifest)
    blob_file(files, manifest.digest).unlink()
    assert verify(files).errors == (
        Finding(at="index.json: demo", problem=f"manifest {manifest.digest} is missing"),
    )


def test_a_missing_config_is_an_error(files: FileStore) -> None:
    manifest = image(files, layers=(LAYER,))
    files.set_reference("demo", manifest)
    config = Manifest.parse(files.read(manifest.digest)).config.digest
    blob_file(files, config).unlink()
    assert verify(files).errors == (
        Finding(at="index.json: demo: config", problem=f"config {config} is missing"),
    )


def test_a_size_that_is_not_the_blobs_is_an_error(files: FileStore) -> None:
    manifest = image(files, layers=(LAYER,))
    files.set_reference("demo", manifest)
    add_entry(files, replace(manifest, size=1).record())
    assert verify(files).errors == (
        Finding(
            at=f"index.json: {manifest.digest}",
            problem=f"manifest {manifest.digest}: the blob does not have the 1 bytes named",
        ),
    )


def test_a_manifest_that_is_none_is_an_error(files: FileStore) -> None:
    digest = files.put(b'{"schemaVersion":1}')
    files.set_reference("demo", Descriptor(media_type=OCI_MANIFEST, digest=digest, size=19))
    assert verify(files).errors == (
        Finding(
            at="index.json: demo",
            problem="index.json: demo: schemaVersion 1 is not supported, wanted 2",
        ),
    )


def test_a_corrupt_manifest_is_told_once_as_blob_and_once_as_reference(files: FileStore) -> None:
    manifest = image(files, layers=(LAYER,))
    files.set_reference("demo", manifest)
    raw = files.read(manifest.digest).replace(b"layers", b"lairs!")
    blob_file(files, manifest.digest).write_bytes(raw)
    report = verify(files)
    assert report.corrupt == (manifest.digest,)
    assert [finding.at for finding in report.errors] == [
        "index.json: demo",
        f"blobs/sha256/{manifest.digest.hex}",
    ]


@pytest.mark.parametrize("raw", [b"", b"{", b'{"schemaVersion":2,"manifests":[1]}'])
def test_a_broken_index_is_an_error_and_the_blobs_are_looked_at_still(
    raw: bytes, files: FileStore
) -> None:
    digest = files.put(LAYER)
    blob_file(files, digest).write_bytes(b"")
    index_file(files).write_bytes(raw)
    report = verify(files)
    assert [finding.at for finding in report.errors] == [
        "index.json",
        f"blobs/sha256/{digest.hex}",
    ]


def test_an_entry_that_is_no_descriptor_is_an_error(files: FileStore) -> None:
    files.put(LAYER)
    add_entry(files, {"mediaType": OCI_MANIFEST, "digest": "sha256:beef", "size": 1})
    assert verify(files).errors == (
        Finding(
            at="index.json",
            problem=(
                f"store '{files.paths.root}': index.json.manifests[0].digest:"
                " sha256 takes 64 hex digits, got 4: 'beef'"
            ),
        ),
    )


def test_stale_notes_and_leftovers_are_told_and_no_errors(files: FileStore) -> None:
    files.take_note("trace", "stale", b'{"blobs":["%b"]}' % str(NOWHERE).encode())
    files.take_note("trace", "fine", b'{"blobs":[]}')
    (files.paths.root / "notes" / "trace" / "directory").mkdir()
    (files.paths.root / "notes" / "stray").write_bytes(b"1")
    (files.paths.root / "tmp" / "1-left").write_bytes(b"half")
    report = verify(files)
    assert report.ok
    assert report.stale == ("notes/trace/stale",)
    assert report.leftovers == ("tmp/1-left",)


@pytest.mark.parametrize(
    "note, names",
    [
        pytest.param(b'{"blobs":["%b"],"x":1}' % str(NOWHERE).encode(), (NOWHERE,), id="names one"),
        pytest.param(b'{"x":1}', (), id="names none"),
        pytest.param(b'{"blobs":["sha256:beef"]}', (), id="no digest"),
        pytest.param(b'{"blobs":[1]}', (), id="no string"),
        pytest.param(b'{"blobs":"x"}', (), id="no list"),
        pytest.param(b"[1]", (), id="no object"),
        pytest.param(b'{"blobs', (), id="half"),
        pytest.param(b"\xff", (), id="no text"),
        pytest.param(b"[" * 100_000, (), id="too deep"),
    ],
)
def test_the_blobs_that_a_note_names(note: bytes, names: tuple[Digest, ...]) -> None:
    assert blobs_of(note) == names
