"""Bases: pinned in every way, in layouts, of both families, packed in every way."""

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from builder.base import Base
from builder.digest import Digest
from builder.errors import AuthError, GoneError, IntegrityError, ProjectError
from builder.image import CREATED
from builder.oci import (
    DOCKER_LAYER_GZIP,
    DOCKER_MANIFEST,
    OCI_LAYER_GZIP,
    Family,
    Manifest,
    Platform,
)
from tests.flow.conftest import Log
from tests.flow.images import Layer, MadeImage, image, index_of, serve, serve_index, write_layout
from tests.flow.worlds import BASE, REGISTRY, Tiny, at_packages, base_image, content
from tests.standin.registry import Reply, StandIn

ARM64 = Platform("linux", "arm64")
NOWHERE = Digest.of(b"nowhere")


@pytest.fixture
def edited(tiny: Tiny) -> Tiny:
    """A variant of one edit, whose base the test gives."""
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it", image={"labels": {"made.by": "a test"}})
    return tiny


def patched(tiny: Tiny, **options: Any) -> bytes | None:
    """What the build shows of the edited file."""
    return content(tiny.bake(**options), at_packages("vllm/config.py"), tiny.store)


# --- pins ----------------------------------------------------------------------------------------


def test_a_pinned_index_leads_to_the_platform_that_is_asked_for(
    edited: Tiny, registry: StandIn
) -> None:
    amd64, arm64 = image(BASE), image(BASE, {"arm": b"64"}, architecture="arm64")
    index = index_of(arm64=arm64, amd64=amd64)
    for made in (amd64, arm64):
        serve(registry, made)
    serve_index(registry, index)
    edited.pin(amd64, index=str(index.digest), platforms={})
    one, two = edited.bake(), edited.bake(platform=ARM64)
    assert edited.references() == {
        "it": str(one.image.digest),
        "it-linux-arm64": str(two.image.digest),
    }
    for made, build in ((amd64, one), (arm64, two)):
        assert build.image.base_layers == made.manifest.layers
        assert content(build, at_packages("vllm/config.py"), edited.store) == b"SIZE = 256\n"
        annotations = dict(build.image.manifest.annotations)
        assert annotations == {
            "org.opencontainers.image.base.digest": str(index.digest),
            "org.opencontainers.image.base.name": "registry.test/base:t",
        }


def test_a_pinned_manifest_alone_is_enough_and_gives_the_same_image(
    edited: Tiny, registry: StandIn
) -> None:
    made = base_image()
    serve(registry, made)
    edited.pin(made, platforms={"linux/amd64": {"manifest": str(made.digest)}})
    bare = edited.bake()
    edited.pin(made)
    assert edited.bake().image == bare.image


def test_a_base_is_asked_for_by_digest_and_never_by_tag(edited: Tiny, registry: StandIn) -> None:
    made = base_image()
    serve(registry, made)
    edited.pin(made)
    edited.bake()
    manifests = [path for path in registry.asked() if "/manifests/" in path]
    assert manifests == [f"GET /v2/base/manifests/{made.digest}"]


OTHER = image(BASE | {"etc/other": b""})


def _config(made: MadeImage) -> dict[str, Any]:
    return made.pin() | {"config": str(NOWHERE)}


def _fewer(made: MadeImage) -> dict[str, Any]:
    return made.pin() | {"layers": made.pin()["layers"][:1]}


def _changed(field: str, value: object) -> Any:
    def change(made: MadeImage) -> dict[str, Any]:
        layers = made.pin()["layers"]
        layers[1] |= {field: value}
        return made.pin() | {"layers": layers}

    return change


@pytest.mark.parametrize(
    ("pin", "said"),
    [
        pytest.param(
            _config,
            "the lock pins config {nowhere}, the manifest has {config}",
            id="another config",
        ),
        pytest.param(_fewer, "the lock pins 1 layers, the manifest has 2", id="fewer layers"),
        pytest.param(
            _changed("digest", str(NOWHERE)),
            "layer 1: the lock pins {nowhere} ({size} bytes, diff_id {diff_id}), the image has"
            " {layer} ({size} bytes, diff_id {diff_id})",
            id="another layer",
        ),
        pytest.param(
            _changed("size", 7),
            "layer 1: the lock pins {layer} (7 bytes, diff_id {diff_id}), the image has"
            " {layer} ({size} bytes, diff_id {diff_id})",
            id="another size",
        ),
        pytest.param(
            _changed("diff_id", str(NOWHERE)),
            "layer 1: the lock pins {layer} ({size} bytes, diff_id {nowhere}), the image has"
            " {layer} ({size} bytes, diff_id {diff_id})",
            id="another diff_id",
        ),
    ],
)
def test_a_lock_that_contradicts_the_image_is_refused(
    edited: Tiny, registry: StandIn, pin: Any, said: str
) -> None:
    made = base_image()
    serve(registry, made)
    edited.pin(made, platforms={"linux/amd64": pin(made)})
    before = edited.snapshot()
    with pytest.raises(IntegrityError) as caught:
        edited.bake()
    words = {
        "nowhere": NOWHERE,
        "config": made.manifest.config.digest,
        "layer": made.manifest.layers[1].digest,
        "size": made.manifest.layers[1].size,
        "diff_id": made.diff_ids[1],
    }
    assert caught.value.message == f"lockfiles/vllm.yaml:4: vllm.base: {said.format(**words)}"
    assert edited.references() == {}
    assert edited.snapshot() == before


@pytest.mark.parametrize("cold", [True, False], ids=["a cold store", "both are in the store"])
def test_a_manifest_that_is_no_member_of_the_pinned_index_is_refused(
    edited: Tiny, registry: StandIn, cold: bool
) -> None:
    made = base_image()
    index = index_of(amd64=OTHER)
    serve(registry, OTHER)
    serve(registry, made)
    serve_index(registry, index)
    if not cold:
        edited.pin(OTHER, index=str(index.digest), platforms={})
        edited.bake()
        before = edited.references()
    else:
        before = {}
    edited.pin(made, index=str(index.digest))
    with pytest.raises(IntegrityError) as caught:
        edited.bake()
    assert caught.value.message == (
        f"lockfiles/vllm.yaml:4: vllm.base: the lock pins manifest {made.digest} for linux/amd64,"
        f" the pinned index has {OTHER.digest}"
    )
    assert edited.references() == before


def test_a_platform_that_is_not_pinned_is_refused_with_those_that_are(
    edited: Tiny, registry: StandIn
) -> None:
    made = base_image()
    serve(registry, made)
    edited.pin(made)
    with pytest.raises(ProjectError) as caught:
        edited.bake(platform=ARM64)
    assert caught.value.message == (
        "lockfiles/vllm.yaml:4: vllm.base: no manifest is pinned for platform 'linux/arm64', it"
        " has: linux/amd64"
    )


def test_a_platform_that_the_index_lacks_is_refused(edited: Tiny, registry: StandIn) -> None:
    made = base_image()
    index = index_of(amd64=made)
    serve_index(registry, index)
    edited.pin(made, index=str(index.digest), platforms={})
    done = edited.run("build", "it", "--platform", "linux/arm64")
    assert (done.status, done.first) == (
        4,
        (
            f"builder: error: lockfiles/vllm.yaml:4: vllm.base: index {index.digest}: 0 manifests"
            " for platform 'linux/arm64', wanted one; the index has: linux/amd64, unknown/unknown"
        ),
    )
    assert edited.references() == {}


def test_a_lock_that_knows_the_manifest_can_do_without_an_index_that_is_gone(
    edited: Tiny, registry: StandIn, log: Log
) -> None:
    made = base_image()
    index = index_of(amd64=made)
    serve(registry, made)
    serve_index(registry, index)
    edited.pin(made, index=str(index.digest))
    there = edited.bake()
    shutil.rmtree(edited.store_path)
    del registry.manifests["base", str(index.digest)]
    gone = edited.bake()
    assert gone.image == there.image
    assert [line.partition(" (")[0] for line in log.lines if "is gone" in line] == [
        "lockfiles/vllm.yaml:4: vllm.base: the pinned index is gone"
    ]
    edited.pin(made, index=str(index.digest), platforms={})
    shutil.rmtree(edited.store_path)
    with pytest.raises(GoneError):
        edited.bake()


def test_an_image_of_another_platform_than_it_is_pinned_for_is_refused(
    edited: Tiny, registry: StandIn
) -> None:
    made = image(BASE, architecture="arm64")
    serve(registry, made)
    edited.pin(made)
    with pytest.raises(IntegrityError) as caught:
        edited.bake()
    assert caught.value.message == (
        "lockfiles/vllm.yaml:4: vllm.base: the image is for platform 'linux/arm64', wanted"
        " 'linux/amd64'"
    )


ODD_SETTINGS = {
    "number": ({"Env": 5}, "Env: expected a list of strings, got 5"),
    "object": ({"Env": {"A": "1"}}, "Env: expected a list of strings, got {'A': '1'}"),
    "text": ({"Env": "A=1"}, "Env: expected a list of strings, got 'A=1'"),
    "nulls": ({"Env": ["A=1", None]}, "Env: expected a list of strings, got ['A=1', None]"),
    "list": ({"Labels": ["a"]}, "Labels: expected an object of strings, got ['a']"),
    "null": ({"Labels": {"a": None}}, "Labels: expected an object of strings, got {'a': None}"),
}


@pytest.mark.parametrize(("settings", "said"), ODD_SETTINGS.values(), ids=ODD_SETTINGS)
def test_a_config_with_settings_of_other_types_is_refused(
    settings: dict[str, Any], said: str, edited: Tiny, registry: StandIn
) -> None:
    made = image(BASE, settings=settings)
    serve(registry, made)
    edited.pin(made)
    with pytest.raises(IntegrityError) as caught:
        edited.bake()
    config = Digest.of(made.config)
    assert caught.value.message == (
        f"lockfiles/vllm.yaml:4: vllm.base: config {config}: config.{said}"
    )
    assert edited.references() == {}


def test_a_config_that_claims_to_be_huge_is_not_fetched(edited: Tiny, registry: StandIn) -> None:
    made = image(BASE)
    document = json.loads(made.manifest.raw)
    document["config"]["size"] = 1 << 40
    made = replace(made, manifest=Manifest.parse(json.dumps(document).encode()))
    serve(registry, made)
    edited.pin(made)
    with pytest.raises(IntegrityError) as caught:
        edited.bake()
    assert caught.value.message == (
        "lockfiles/vllm.yaml:4: vllm.base: a config of 1099511627776 bytes, the limit is 16777216"
    )
    assert not [call for call in registry.calls if "/blobs/" in str(call)]


def test_a_base_that_is_gone_upstream_builds_from_what_is_at_hand(
    edited: Tiny, registry: StandIn
) -> None:
    made = base_image()
    serve(registry, made)
    edited.pin(made)
    first = edited.bake()
    registry.manifests.clear()
    registry.blobs.clear()
    edited.edit("more", "vllm/sub/module.py", "41", "42")
    edited.variant("more", "it", "more")
    assert edited.bake().image == first.image
    assert edited.bake("more").image.digest != first.image.digest


@pytest.mark.usefixtures("registry")  # it answers, and has nothing
def test_a_base_that_is_gone_and_that_nobody_keeps_is_gone(edited: Tiny) -> None:
    edited.pin(base_image())
    with pytest.raises(GoneError) as caught:
        edited.bake()
    assert caught.value.hint == (
        f"nobody keeps a copy of 'base': name a place that still has it as a mirror of {REGISTRY}"
        " in builder.yaml, then: builder escrow"
    )
    assert edited.references() == {}


def test_a_base_that_may_not_be_read_needs_credentials_first(
    edited: Tiny, registry: StandIn
) -> None:
    edited.pin(base_image())
    registry.on("GET", "/v2/base/manifests/.*", Reply(status=403), forever=True)
    with pytest.raises(AuthError) as caught:
        edited.bake()
    assert "docker login" in str(caught.value.hint)


# --- layouts and scratch -------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [True, False], ids=["by index", "by manifest"])
def test_a_layout_in_the_project_is_a_base(edited: Tiny, indexed: bool) -> None:
    made = base_image()
    index = index_of(amd64=made)
    documents = (made, index) if indexed else (made,)
    write_layout(edited.root / "base", *documents)
    digest = index.digest if indexed else made.digest
    edited.variant("it", "it", base={"layout": "base", "digest": str(digest)})
    build = edited.bake()
    assert content(build, at_packages("vllm/config.py"), edited.store) == b"SIZE = 256\n"
    assert dict(build.image.manifest.annotations) == {
        "org.opencontainers.image.base.digest": str(digest)
    }
    assert isinstance(build.base, Base)
    assert build.base.reference is None


def test_a_layout_gives_the_layers_that_a_registry_gives(edited: Tiny, registry: StandIn) -> None:
    made = base_image()
    serve(registry, made)
    edited.pin(made)
    pinned = edited.bake()
    write_layout(edited.root / "base", made)
    edited.variant("it", "it", base={"layout": "base", "digest": str(made.digest)})
    local = edited.bake()
    assert local.image.own == pinned.image.own
    assert local.image.base_layers == pinned.image.base_layers


def test_a_layout_without_a_layer_that_is_needed_says_so(edited: Tiny) -> None:
    made = base_image()
    layout = write_layout(edited.root / "base", made)
    lost = made.manifest.layers[1].digest
    (layout / "blobs" / "sha256" / lost.hex).unlink()
    edited.variant("it", "it", base={"layout": "base", "digest": str(made.digest)})
    done = edited.run("build", "it")
    assert done.status == 7
    assert done.first == f"builder: error: base: no blob {lost} in the layout"


def test_an_image_that_a_layout_does_not_have_is_told_what_it_has(edited: Tiny) -> None:
    made = base_image()
    layout = write_layout(edited.root / "base", made)
    edited.variant("it", "it", base={"layout": "base", "digest": str(NOWHERE)})
    said = f"builder: error: base: no blob {NOWHERE} in the layout"
    assert edited.run("build", "it").err.splitlines() == [
        said,
        "  hint: the image was made anew, or copied in part; the layout names " + str(made.digest),
    ]
    (layout / "index.json").write_text("[]")
    assert edited.run("build", "it").err.splitlines() == [said, "  hint: copy the image again"]


def test_a_directory_that_is_no_layout_is_the_projects_mistake(edited: Tiny) -> None:
    (edited.root / "base").mkdir()
    edited.variant("it", "it", base={"layout": "base", "digest": str(NOWHERE)})
    done = edited.run("build", "it")
    assert done.status == 3
    assert done.first == (
        "builder: error: base: not an OCI image layout: it has no file 'oci-layout'"
    )


def test_scratch_has_nothing_below(tiny: Tiny) -> None:
    tiny.overlay("it", files={"vllm/config.py": (None, b"SIZE = 1\n"), "/etc/it": (None, b"it\n")})
    python = {"version": "3.12", "packages": "usr/local/lib/python3.12/dist-packages"}
    tiny.variant("it", "it", base="scratch", python=python)
    build = tiny.bake()
    assert build.base is None
    assert build.image.base_layers == ()
    config = json.loads(build.image.config)
    assert (config["os"], config["architecture"], config["created"]) == ("linux", "amd64", CREATED)
    assert len(config["rootfs"]["diff_ids"]) == len(config["history"]) == 1
    # The whole chain of names, from the files to the image: changes with the assembly version.
    assert str(build.image.digest) == GOLDEN


GOLDEN = "sha256:dddaae3ae52b462dc849f19166202d771f3d5a6d39172233298aaef60d39ffc9"


def test_scratch_without_a_python_is_refused_where_one_is_needed(tiny: Tiny) -> None:
    tiny.overlay("it", files={"vllm/config.py": (None, b"SIZE = 1\n")})
    tiny.variant("it", "it", base="scratch")
    done = tiny.run("build", "it")
    assert done.status == 3
    assert done.first == (
        "builder: error: image: 0 Python packages directories (none with vLLM), wanted one: none"
    )


# --- families, packing, history ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "manifest", "layer"),
    [
        pytest.param(Family.DOCKER, DOCKER_MANIFEST, DOCKER_LAYER_GZIP, id="docker"),
        pytest.param(Family.OCI, Family.OCI.manifest, OCI_LAYER_GZIP, id="oci"),
    ],
)
def test_the_family_of_the_base_is_that_of_the_image(
    edited: Tiny, registry: StandIn, family: Family, manifest: str, layer: str
) -> None:
    made = image(BASE, family=family, annotations={"of.the": "base"})
    serve(registry, made)
    edited.pin(made)
    build = edited.bake()
    document = json.loads(build.image.manifest.raw)
    assert document["mediaType"] == manifest
    assert document["config"]["mediaType"] == family.config
    assert [item["mediaType"] for item in document["layers"]] == 2 * [layer]
    assert ("annotations" in document) is (family is Family.OCI)
    assert document.get("annotations", {}).get("of.the") == (
        "base" if family is Family.OCI else None
    )


@pytest.mark.parametrize("packing", ["gzip", "zstd", "tar"])
def test_base_layers_may_be_packed_in_any_way(
    edited: Tiny, registry: StandIn, packing: Any
) -> None:
    made = image(Layer(BASE, packing), Layer({"etc/top": b"top"}, "gzip"))
    serve(registry, made)
    edited.pin(made)
    build = edited.bake()
    assert content(build, at_packages("vllm/config.py"), edited.store) == b"SIZE = 256\n"
    assert build.image.base_layers == made.manifest.layers
    # How the base is packed is not seen in what we make.
    other = image(BASE, {"etc/top": b"top"})
    serve(registry, other)
    edited.pin(other)
    assert edited.bake().image.own == build.image.own


FILLED = {"created_by": "a layer"}
EMPTY = {"created_by": "ENV A=1", "empty_layer": True}


@pytest.mark.parametrize(
    ("history", "after"),
    [
        pytest.param(None, None, id="none at all"),
        pytest.param([FILLED, FILLED, FILLED], 3, id="an item too many"),
        pytest.param([FILLED], 1, id="an item too few"),
        pytest.param([], 0, id="empty"),
        pytest.param([FILLED, EMPTY, FILLED], 4, id="aligned with an empty one"),
        pytest.param([EMPTY, FILLED, EMPTY], 3, id="a real layer is called empty"),
    ],
)
def test_history_grows_where_it_is_aligned_and_diff_ids_always_do(
    edited: Tiny, registry: StandIn, history: Any, after: int | None
) -> None:
    made = image(BASE, {"etc/nothing": b""}, history=history)
    serve(registry, made)
    edited.pin(made)
    build = edited.bake()
    config = json.loads(build.image.config)
    assert len(config["rootfs"]["diff_ids"]) == len(build.image.manifest.layers) == 3
    assert config["rootfs"]["diff_ids"][:2] == [str(item) for item in made.diff_ids]
    assert after == (len(config["history"]) if "history" in config else None)
    if history == [FILLED, EMPTY, FILLED]:
        assert config["history"][-1] == {"created": CREATED, "created_by": "builder overlay it"}


def test_the_settings_of_the_base_stay_but_for_what_the_variant_says(
    edited: Tiny, registry: StandIn
) -> None:
    settings = {
        "Env": ["PATH=/usr/bin", "VLLM_A=1", "VLLM_B=2"],
        "Entrypoint": ["vllm", "serve"],
        "Cmd": ["--help"],
        "User": "1000:1000",
        "WorkingDir": "/workspace",
        "Labels": {"org.opencontainers.image.revision": "01d4d1ad3"},
        "ExposedPorts": {"8000/tcp": {}},
    }
    made = image(BASE, settings=settings)
    serve(registry, made)
    edited.pin(made)
    own = {
        "env": {"VLLM_A": "3", "VLLM_B": None, "VLLM_C": "4"},
        "command": ["--port", "1"],
    }
    edited.variant("it", "it", image=own)
    config = json.loads(edited.bake().image.config)["config"]
    assert config == settings | {
        "Env": ["PATH=/usr/bin", "VLLM_A=3", "VLLM_C=4"],
        "Cmd": ["--port", "1"],
    }


@pytest.mark.usefixtures("registry")  # it answers, and has nothing
def test_a_base_that_is_gone_is_named_by_its_pin(edited: Tiny) -> None:
    edited.pin(base_image())
    with pytest.raises(GoneError, match=r"^lockfiles/vllm\.yaml:4: vllm\.base: registry\.test/"):
        edited.bake()
