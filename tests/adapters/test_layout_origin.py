"""A layout on disk as the place of bytes: what it lacks, and what the disk does not give."""

import errno
import json
import os
from pathlib import Path

import pytest

from builder.adapters import layout
from builder.adapters.layout import LayoutOrigin
from builder.digest import Digest
from builder.errors import EnvironmentFault, GoneError, IntegrityError
from builder.oci import Descriptor

DATA = b"some bytes"
DIGEST = Digest.of(DATA)
NOWHERE = Digest.of(b"nowhere")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    blobs = tmp_path / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    (blobs / DIGEST.hex).write_bytes(DATA)
    return tmp_path


def descriptor(size: int = len(DATA), digest: Digest = DIGEST) -> Descriptor:
    return Descriptor(media_type="x", digest=digest, size=size)


def test_what_is_there_comes_verified(root: Path) -> None:
    origin = LayoutOrigin(root)
    assert origin.document(DIGEST) == DATA
    assert b"".join(origin.blob(descriptor())) == DATA


@pytest.mark.parametrize("data", [b"other", DATA + b"!", DATA[:-1], b""])
def test_other_bytes_are_refused(root: Path, data: bytes) -> None:
    path = root / "blobs" / "sha256" / DIGEST.hex
    path.write_bytes(data)
    origin = LayoutOrigin(root)
    with pytest.raises(IntegrityError) as caught:
        origin.document(DIGEST)
    got = f"{Digest.of(data)} ({len(data)} bytes)"
    assert caught.value.message == f"{path}: expected {DIGEST}, got {got}"
    with pytest.raises(IntegrityError) as caught:
        list(origin.blob(descriptor()))
    assert caught.value.message == f"{path}: expected {DIGEST} (10 bytes), got {got}"


@pytest.mark.parametrize("size", [len(DATA) - 1, len(DATA) + 1])
def test_a_blob_of_another_size_than_its_descriptors_is_refused(root: Path, size: int) -> None:
    taken = LayoutOrigin(root).blob(descriptor(size))
    with pytest.raises(IntegrityError, match=rf"expected {DIGEST} \({size} bytes\), got"):
        list(taken)


def test_a_document_over_the_limit_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MANIFEST_LIMIT", len(DATA) - 1)
    with pytest.raises(IntegrityError) as caught:
        LayoutOrigin(root).document(DIGEST)
    path = root / "blobs" / "sha256" / DIGEST.hex
    assert caught.value.message == f"{path}: over 9 bytes, no manifest"


@pytest.mark.parametrize(
    ("index", "named"),
    [
        pytest.param(json.dumps({"manifests": [{"digest": str(DIGEST)}]}), True, id="an index"),
        pytest.param("[" * 100_000, False, id="nested without end"),
        pytest.param('{"manifests": [{"digest": "sha256:x"}]}', False, id="no digest"),
        pytest.param('{"manifests": {}}', False, id="no list"),
        pytest.param('{"manifests": [7]}', False, id="numbers"),
        pytest.param("{}", False, id="no manifests"),
        pytest.param(None, False, id="no index"),
    ],
)
def test_what_is_not_there_says_what_is_as_far_as_that_can_be_read(
    root: Path, index: str | None, named: bool
) -> None:
    if index is not None:
        (root / "index.json").write_text(index)
    with pytest.raises(GoneError) as caught:
        LayoutOrigin(root).document(NOWHERE)
    assert caught.value.message == f"{root}: no blob {NOWHERE} in the layout"
    assert (str(DIGEST) in str(caught.value.hint)) is named


@pytest.mark.parametrize("what", ["document", "blob"])
def test_what_the_disk_does_not_give_is_no_matter_of_those_who_ask(
    root: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A client of an engine takes an OSError of what it sends for the engine's silence."""
    origin = LayoutOrigin(root)

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "open", fails)
    with pytest.raises(EnvironmentFault) as caught:
        origin.document(DIGEST) if what == "document" else list(origin.blob(descriptor()))
    path = root / "blobs" / "sha256" / DIGEST.hex
    assert caught.value.message == f"{path}: cannot be read: Input/output error"
