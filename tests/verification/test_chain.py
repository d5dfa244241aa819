"""An image is held to its manifest statement, layer by layer and file by file."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.oci import OCI_CONFIG, OCI_LAYER_GZIP, OCI_MANIFEST, Manifest
from builder.tree import Entry, Kind
from builder.verification.chain import check_documents, check_files, layers_of

BASE, OURS, MORE = (Digest.of(name) for name in (b"base", b"ours", b"more"))
DIFFS = {digest: Digest.of(str(digest).encode()) for digest in (BASE, OURS, MORE)}
PATH = "usr/lib/a.py"
POST = Digest.of(b"post")


def config_of(*layers: Digest) -> bytes:
    value = {
        "os": "linux",
        "architecture": "amd64",
        "rootfs": {"type": "layers", "diff_ids": [str(DIFFS[layer]) for layer in layers]},
    }
    return json.dumps(value).encode()


def manifest_of(config: bytes, *layers: Digest) -> Manifest:
    value = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {"mediaType": OCI_CONFIG, "digest": str(Digest.of(config)), "size": len(config)},
        "layers": [
            {"mediaType": OCI_LAYER_GZIP, "digest": str(layer), "size": 7} for layer in layers
        ],
    }
    return Manifest.parse(json.dumps(value).encode())


def layer(digest: Digest) -> dict[str, Any]:
    return {"digest": str(digest), "size": 7, "diff_id": str(DIFFS[digest])}


CONFIG = config_of(BASE, OURS)
IMAGE = manifest_of(CONFIG, BASE, OURS)
SAID: dict[str, Any] = {
    "image": {"manifest": str(IMAGE.digest), "config": str(Digest.of(CONFIG))},
    "base": {"layers": [layer(BASE)]},
    "steps": [
        {"name": "left out", "files": [], "left_out": "already-upstream"},
        {"name": "it", "files": [{"path": PATH, "post": str(POST)}], "layer": layer(OURS)},
    ],
}


def held(said: dict[str, Any], manifest: Manifest = IMAGE, config: bytes = CONFIG) -> None:
    check_documents(layers_of(said, at="x"), said, manifest, config, at="x")


def test_an_image_that_is_what_was_said_passes() -> None:
    held(SAID)
    layers = layers_of(SAID, at="x")
    assert [(item.digest, item.step) for item in layers] == [(BASE, None), (OURS, "it")]
    assert layers[1].files == ((PATH, POST),)


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    said = deepcopy(SAID)
    change(said)
    return said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (changed(lambda s: s["image"].update(manifest=str(OURS))), "the statement is about"),
        (changed(lambda s: s["image"].update(config=str(OURS))), "the statement is about"),
        (changed(lambda s: s.pop("image")), "the statement is about None"),
        (changed(lambda s: s["base"]["layers"].append(layer(MORE))), "names 3 layers"),
        (changed(lambda s: s["base"]["layers"].clear()), "names 1 layers"),
        (changed(lambda s: s["steps"].pop()), "names 1 layers"),
        (changed(lambda s: s["base"].update(layers=[layer(MORE)])), "layer 0, of the base"),
        (changed(lambda s: s["steps"][1].update(layer=layer(MORE))), "layer 1, of step 'it'"),
        (
            changed(lambda s: s["steps"][1]["layer"].update(diff_id=str(DIFFS[MORE]))),
            "layer 1, of step 'it'",
        ),
        (changed(lambda s: s["steps"][1]["layer"].update(size=8)), "layer 1, of step 'it'"),
    ],
)
def test_an_image_that_is_not_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(IntegrityError, match=why):
        held(said)


def test_layers_in_another_order_are_another_image() -> None:
    config = config_of(OURS, BASE)
    swapped = manifest_of(config, OURS, BASE)
    said = changed(
        lambda s: s.update(
            image={"manifest": str(swapped.digest), "config": str(Digest.of(config))}
        )
    )
    with pytest.raises(IntegrityError, match="layer 0, of the base"):
        held(said, swapped, config)


def test_a_config_that_counts_otherwise_is_refused() -> None:
    config = config_of(BASE, OURS, MORE)
    odd = manifest_of(config, BASE, OURS)
    said = changed(
        lambda s: s.update(image={"manifest": str(odd.digest), "config": str(Digest.of(config))})
    )
    with pytest.raises(IntegrityError, match="2 layers, and 3 diff_ids"):
        held(said, odd, config)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"steps": None},
        {"steps": [{"layer": {}}]},
        {"steps": [{"name": "x", "files": [], "layer": {"digest": "sha256:zz", "size": 1}}]},
        {"base": {"layers": [3]}, "steps": []},
        changed(lambda s: s["steps"][1].pop("files")),
    ],
)
def test_what_is_no_manifest_statement_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=r"not a manifest statement|sha256"):
        layers_of(said, at="x")


def index(**files: bytes) -> FileIndex:
    entries = [
        Entry(path=path, kind=Kind.FILE, mode=0o644, size=len(data), digest=Digest.of(data))
        for path, data in sorted(files.items())
    ]
    return FileIndex.build(entries, whiteouts=("back", "gone"))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([{"path": "a", "post": str(Digest.of(b"two"))}], "the statement names"),
        (
            [{"path": "b", "post": str(Digest.of(b"one"))}],
            f"'b': the statement names {Digest.of(b'one')}, the layer has no such file$",
        ),
        (
            [{"path": "back"}],
            f"'back': the statement names no such file, the layer has {Digest.of(b'still')}$",
        ),
        ([{"path": "a"}], "its layer does not"),
        ([{"path": "b"}], "its layer does not"),
    ],
)
def test_files_that_are_not_as_was_said_are_refused(files: list[dict[str, str]], why: str) -> None:
    said = changed(lambda s: s["steps"][1].update(files=files))
    with pytest.raises(IntegrityError, match=why):
        check_files(layers_of(said, at="x")[1], index(a=b"one", back=b"still"), at="x")


def test_files_that_are_as_was_said_are_counted() -> None:
    files = [{"path": "a", "post": str(Digest.of(b"one"))}, {"path": "gone"}]
    said = changed(lambda s: s["steps"][1].update(files=files))
    assert check_files(layers_of(said, at="x")[1], index(a=b"one"), at="x") == 2
