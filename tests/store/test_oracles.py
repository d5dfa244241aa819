"""Other tools read what we wrote, and we read what they wrote."""

import json
import subprocess
from pathlib import Path

import pytest

from builder.adapters.store import FileStore
from builder.adapters.store.gc import gc
from builder.adapters.store.verify import verify
from builder.digest import Digest
from tests.store.worlds import image

LAYERS = (b"\0" * 10240, b"\0" * 20480)  # the shortest archives that tar makes: no entries


def _run(*command: str | Path) -> bytes:
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


@pytest.mark.requires("skopeo")
def test_skopeo_reads_the_exact_bytes_and_copies_the_image(
    files: FileStore, tmp_path: Path
) -> None:
    manifest = image(files, layers=LAYERS)
    files.set_reference("demo", manifest)
    files.set_reference("a/b_c--d", image(files, layers=LAYERS[:1]))
    files.take_note("trace", "k", b"{}")
    root = files.paths.root
    assert _run("skopeo", "inspect", "--raw", f"oci:{root}:demo") == files.read(manifest.digest)
    named = json.loads(_run("skopeo", "inspect", f"oci:{root}:a/b_c--d"))
    assert named["Layers"] == [str(Digest.of(LAYERS[0]))]
    _run("skopeo", "--insecure-policy", "copy", f"oci:{root}:demo", f"dir:{tmp_path / 'out'}")
    assert (tmp_path / "out" / "manifest.json").read_bytes() == files.read(manifest.digest)
    for data in LAYERS:
        assert (tmp_path / "out" / Digest.of(data).hex).read_bytes() == data


@pytest.mark.requires("skopeo")
def test_what_skopeo_writes_into_our_store_is_whole_and_stays(
    files: FileStore, tmp_path: Path
) -> None:
    manifest = image(files, layers=LAYERS)
    files.set_reference("demo", manifest)
    root = files.paths.root
    _run("skopeo", "--insecure-policy", "copy", f"oci:{root}:demo", f"oci:{root}:copy")
    assert files.references()["copy"].digest == manifest.digest
    files.drop_reference("demo")
    assert gc(files).blobs == ()
    assert verify(files).ok


@pytest.mark.requires("skopeo")
def test_a_layout_that_skopeo_made_is_a_store(files: FileStore, tmp_path: Path) -> None:
    manifest = image(files, layers=LAYERS)
    files.set_reference("demo", manifest)
    other = tmp_path / "other"
    copy = ("skopeo", "--insecure-policy", "copy", "--preserve-digests")
    _run(*copy, f"oci:{files.paths.root}:demo", f"oci:{other}:x")
    store = FileStore(other)
    assert store.references()["x"].digest == manifest.digest
    assert verify(store).ok
    store.set_reference("y", manifest)
    raw = _run("skopeo", "inspect", "--raw", f"oci:{other}:y")
    assert raw == store.read(manifest.digest)


@pytest.mark.requires("umoci")
def test_umoci_lists_our_references_and_its_gc_spares_them(files: FileStore) -> None:
    for name in ("demo", "other"):
        files.set_reference(name, image(files, layers=LAYERS, note=name))
    root = files.paths.root
    assert _run("umoci", "list", "--layout", root).split() == [b"demo", b"other"]
    _run("umoci", "gc", "--layout", root)
    assert verify(files).ok


@pytest.mark.requires("umoci")
def test_names_that_umoci_sets_are_ours(files: FileStore) -> None:
    manifest = image(files, layers=LAYERS)
    files.set_reference("demo", manifest)
    root = files.paths.root
    _run("umoci", "tag", "--image", f"{root}:demo", "second")
    _run("umoci", "rm", "--image", f"{root}:demo")
    assert {name: item.digest for name, item in files.references().items()} == {
        "second": manifest.digest
    }
    assert verify(files).ok
