"""Damaged memos and lost blobs: half a memo is none, and nothing ends in a traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from builder import notes
from builder.adapters.store.gc import gc
from builder.build_record import needed, own_layers
from tests.flow.conftest import Log
from tests.flow.images import serve
from tests.flow.worlds import CONFIG, Tiny, at_packages, base_image, content
from tests.standin.registry import StandIn

Damage = Callable[[bytes], bytes]
DAMAGES = [
    pytest.param(lambda data: data[:-7], id="half of it"),
    pytest.param(lambda data: b"{}", id="an object without keys"),
    pytest.param(lambda data: b"[]", id="no object"),
    pytest.param(lambda data: data.replace(b"sha256:", b"sha512:"), id="other digests"),
]


@pytest.fixture
def built(tiny: Tiny, registry: StandIn) -> Tiny:
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, b"SIZE = 256\n")})
    tiny.variant("it", "it")
    tiny.bake()
    return tiny


def damage(tiny: Tiny, kind: str, how: Damage) -> None:
    for key in list(tiny.store.notes(kind)):
        path = Path(tiny.store.paths.note(kind, key))
        path.write_bytes(how(path.read_bytes()))


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_record_is_said_and_the_next_build_writes_it_anew(
    built: Tiny, how: Damage
) -> None:
    image = built.references()["it"]
    whole = built.store.note(notes.IMAGE, image.removeprefix("sha256:"))
    damage(built, notes.IMAGE, how)
    done = built.run("why", "it", "vllm/config.py")
    assert (done.status, done.err.splitlines()) == (
        4,
        [
            f"builder: error: record of image {image}: damaged, or of another version of builder",
            "  hint: build it again on this machine: that writes it anew",
        ],
    )
    assert list(own_layers(built.store)) == list(needed(built.store)) == []
    assert built.run("store", "verify").status == 0
    built.bake()
    assert built.store.note(notes.IMAGE, image.removeprefix("sha256:")) == whole


@pytest.mark.parametrize("how", DAMAGES)
def test_a_layer_whose_memo_is_damaged_is_read_again(built: Tiny, log: Log, how: Damage) -> None:
    built.edit("it", "vllm/config.py", "128", "512")
    damage(built, notes.LAYER, how)
    done = built.run("--json", "why", "it", "/etc/os-release")
    assert (done.status, done.json["base_read"]) == (0, False)
    gc(built.store, reachable=lambda: needed(built.store))
    made = built.bake()
    assert (made.steps[0].cached, len(log.streamed())) == (False, 2)
    assert content(made, at_packages("vllm/config.py"), built.store) == b"SIZE = 512\n"


@pytest.mark.parametrize("lost", ["the base's manifest", "the index of a layer of ours"])
def test_why_says_which_blob_the_store_has_lost(built: Tiny, lost: str) -> None:
    made = built.bake()
    layer = made.steps[0].output.layer
    assert layer is not None
    assert made.base is not None
    blob = layer.index if lost.endswith("ours") else made.base.manifest.digest
    Path(built.store.paths.blob(blob)).unlink()
    done = built.run("why", "it", "vllm/config.py")
    assert (done.status, done.err.splitlines()) == (
        3,
        [
            (
                f"builder: error: image {made.image.digest}: blob {blob}, which it was made of,"
                " is not in the store"
            ),
            "  hint: builder build it gets or makes it again",
        ],
    )
    assert built.run("build", "it").status == 0
    assert built.run("why", "it", "vllm/config.py").status == 0
