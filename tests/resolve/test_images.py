"""Base images: what a tag is resolved to, and what a pin is completed with."""

import json
from dataclasses import replace

import pytest

from builder.digest import Digest, ObjectId
from builder.errors import (
    AuthError,
    GoneError,
    IntegrityError,
    ProjectError,
)
from builder.lock import codec
from builder.lock.model import Escrow, ImagePin, LayerPin, PlatformPin, VllmBuild
from builder.oci import OCI_INDEX, Index
from tests.flow.images import PACKAGES, Layer, MadeImage, image, index_of
from tests.resolve.image_world import (
    AMD64,
    ARM64,
    COMMIT,
    NOW,
    SYSTEM,
    THEN,
    VERSION,
    VERSION_FILE,
    World,
    vllm,
    with_vllm,
)
from tests.standin.registry import Reply

NIGHTLY = f"nightly-{COMMIT}"
BUILD = VllmBuild(version=VERSION, commit=ObjectId(COMMIT), package=f"{PACKAGES}/vllm")


def platform_pin(made: MadeImage, *files: Digest | None) -> PlatformPin:
    blobs = zip(made.layers, made.diff_ids, files or (None,) * len(made.layers), strict=True)
    return PlatformPin(
        manifest=made.digest,
        config=Digest.of(made.config),
        layers=tuple(
            LayerPin(digest=Digest.of(data), size=len(data), diff_id=diff_id, files=index)
            for data, diff_id, index in blobs
        ),
    )


def files_of(pin: ImagePin) -> tuple[Digest | None, ...]:
    return tuple(layer.files for _, item in pin.platforms for layer in item.layers)


def test_a_tag_is_resolved_to_all_that_a_lock_holds(world: World) -> None:
    made = with_vllm()
    digest = world.tag(NIGHTLY, index := index_of(amd64=made), made)
    pin = world.pin(NIGHTLY, tags="nightly-*", commits="https://git.test/vllm")
    resolved = world.resolve(pin)
    indexes = files_of(resolved.pin)
    assert resolved.pin == replace(
        pin,
        index=index.digest,
        platforms=((AMD64, platform_pin(made, *indexes)),),
        vllm=BUILD,
        locked=NOW,
    )
    assert resolved.remarks == ()
    assert (resolved.pin.at, None in indexes) == (pin.at, False)
    layers = [f"GET /v2/base/blobs/{Digest.of(data)}" for data in made.layers]
    documents = [
        f"HEAD /v2/base/manifests/{NIGHTLY}",
        f"GET /v2/base/manifests/{digest}",
        f"GET /v2/base/manifests/{made.digest}",
        f"GET /v2/base/blobs/{Digest.of(made.config)}",
    ]
    asked = world.asked()
    assert (asked[:4], sorted(asked[4:])) == (documents, sorted(layers))
    assert world.again().resolve(pin, before=resolved.pin).pin == resolved.pin
    assert world.asked() == documents[:1]


def test_what_was_resolved_is_written_and_read_back(world: World) -> None:
    made = with_vllm()
    world.tag(NIGHTLY, index_of(amd64=made), made)
    pin = world.resolve(world.pin(NIGHTLY, tags="nightly-*")).pin
    written = codec.write_pins(ImagePin, {"it": pin})
    assert codec.read_images(written) == {"it": pin}


def test_an_image_without_an_index_has_its_manifest_as_index(world: World) -> None:
    made = with_vllm()
    world.tag(NIGHTLY, made)
    resolved = world.resolve(world.pin(NIGHTLY))
    assert resolved.pin.index == made.digest
    assert resolved.pin.platform(AMD64) == platform_pin(made, *files_of(resolved.pin))
    assert world.complete(resolved.pin).pin == resolved.pin
    with pytest.raises(ProjectError) as caught:
        world.resolve(world.pin(NIGHTLY), ARM64)
    assert caught.value.message == (
        "lockfiles/vllm.yaml:3: vllm.it: the image is not for linux/arm64, it has: linux/amd64"
    )
    resolved = world.resolve(world.pin(NIGHTLY), ARM64, AMD64)
    assert resolved.remarks == ("the image is not for linux/arm64, it has: linux/amd64",)


def test_layers_are_left_alone_where_nobody_asks_what_is_in_them(world: World) -> None:
    made = with_vllm()
    world.tag(NIGHTLY, made)
    pin = world.resolve(world.pin(NIGHTLY), inside=False).pin
    assert (pin.platform(AMD64), pin.vllm) == (platform_pin(made), None)
    assert not any(str(Digest.of(data)) in " ".join(world.asked()) for data in made.layers)
    whole = world.resolve(world.pin(NIGHTLY), before=pin).pin
    again = world.resolve(world.pin(NIGHTLY), before=whole, inside=False).pin
    assert again == whole
    assert whole.vllm == BUILD


# --- platforms -------------------------------------------------------------------------------


def test_every_platform_that_is_asked_for_is_resolved(world: World) -> None:
    amd, arm = with_vllm(), with_vllm(architecture="arm64")
    world.tag(NIGHTLY, index_of(arm64=arm, amd64=amd), amd, arm)
    both = world.resolve(world.pin(NIGHTLY), ARM64, AMD64)
    assert [(platform, item.manifest) for platform, item in both.pin.platforms] == [
        (AMD64, amd.digest),
        (ARM64, arm.digest),
    ]
    assert None not in files_of(both.pin)
    assert both.remarks == ()
    assert world.resolve(world.pin(NIGHTLY), AMD64, before=both.pin).pin == both.pin


def test_platforms_with_another_vllm_are_told_of(world: World) -> None:
    other = VERSION_FILE.replace("dev9+g01d4d1ad3", "dev8+gffffffff0").replace(
        "'g01d4d1ad3'", "'gffffffff0'"
    )
    amd, arm = with_vllm(), with_vllm(other, architecture="arm64")
    world.tag("t", index_of(amd64=amd, arm64=arm), amd, arm)
    resolved = world.resolve(world.pin(), AMD64, ARM64)
    assert resolved.pin.vllm == replace(BUILD, commit=None)
    *shorts, differs = resolved.remarks
    assert shorts == [SHORT, SHORT.replace("01d4d1ad3", "ffffffff0")]
    assert differs == (
        f"linux/arm64 holds vLLM 0.20.2rc1.dev8+gffffffff0 in {PACKAGES}/vllm, the lock says"
        f" {VERSION} in {PACKAGES}/vllm"
    )


def test_a_platform_that_is_missing_is_a_remark_and_all_missing_an_error(world: World) -> None:
    made = with_vllm()
    world.tag("t", index_of(amd64=made), made)
    resolved = world.resolve(world.pin(), AMD64, ARM64)
    assert "the image is not for linux/arm64, it has: linux/amd64" in resolved.remarks
    assert [platform for platform, _ in resolved.pin.platforms] == [AMD64]
    with pytest.raises(ProjectError, match="is not for linux/arm64, it has: linux/amd64"):
        world.resolve(world.pin(), ARM64)


# --- what moved ------------------------------------------------------------------------------


def test_a_tag_that_names_something_else_is_told_of_and_nothing_is_taken_over(
    world: World,
) -> None:
    old, new = with_vllm(), image(SYSTEM, vllm(), {"etc/new": b""})
    world.tag(NIGHTLY, old)
    before = replace(
        world.resolve(world.pin(NIGHTLY)).pin,
        escrow=(Escrow(layout="escrow", digest=old.digest),),
        failing=("it",),
        locked=THEN,
    )
    assert world.resolve(world.pin(NIGHTLY), before=before).pin == before
    world.tag(NIGHTLY, new)
    resolved = world.again().resolve(world.pin(NIGHTLY), before=before)
    pin = resolved.pin
    assert (pin.index, pin.escrow, pin.failing, pin.locked) == (new.digest, (), (), NOW)
    assert resolved.remarks == (
        f"the tag {NIGHTLY} names another image now than when it was locked",
    )
    world.tag("other", new)
    assert world.resolve(world.pin("other"), before=before).remarks == (
        "neither tag nor label has commit 01d4d1ad3 in full, so the lock has none",
    )


def test_a_pin_of_manifests_alone_is_the_same_image_as_the_index_around_them(world: World) -> None:
    made = with_vllm()
    world.tag(NIGHTLY, index := index_of(amd64=made), made)
    before = world.pin(NIGHTLY, platforms=((AMD64, PlatformPin(manifest=made.digest)),))
    before = replace(before, locked=THEN)
    assert world.resolve(world.pin(NIGHTLY), before=before).pin.locked == THEN
    completed = world.complete(before)
    assert (completed.pin.index, completed.remarks) == (index.digest, ())
    assert (completed.pin.locked, completed.pin.vllm) == (THEN, BUILD)


def test_a_pin_is_completed_where_it_stands_though_its_tag_moved_or_is_gone(world: World) -> None:
    made = with_vllm()
    digest = world.tag(NIGHTLY, index_of(amd64=made), made)
    bare = world.pin(NIGHTLY, index=digest)
    whole = world.complete(bare)
    assert whole.pin == world.resolve(world.pin(NIGHTLY)).pin
    assert whole.remarks == ()
    other = image(SYSTEM)
    world.tag(NIGHTLY, other)
    moved = world.again().complete(bare)
    assert moved.pin == whole.pin
    assert moved.remarks == (f"the tag {NIGHTLY} names another image now: {other.digest}",)
    world.untag(NIGHTLY)
    gone = world.complete(bare)
    assert gone.pin == whole.pin
    assert gone.remarks == (f"the tag {NIGHTLY} is gone upstream, what it named is pinned",)
    world.registry.on("HEAD", ".*", Reply(status=401), forever=True)
    world.registry.on("GET", ".*", Reply(status=500), forever=True)
    assert world.complete(whole.pin).pin == whole.pin
    (remark,) = world.complete(whole.pin).remarks
    assert remark.startswith(f"what the tag {NIGHTLY} names now is not known: ")
    with pytest.raises(AuthError):
        world.resolve(world.pin(NIGHTLY))


def test_a_whole_pin_is_completed_without_reading_a_layer(world: World) -> None:
    made = with_vllm()
    world.tag(NIGHTLY, made)
    whole = world.complete(world.pin(NIGHTLY, index=made.digest)).pin
    fresh = World(world.registry)
    world.asked()
    assert fresh.complete(whole).pin == whole
    assert sorted(fresh.asked()) == [
        f"GET /v2/base/blobs/{Digest.of(made.config)}",
        f"GET /v2/base/manifests/{made.digest}",
        f"HEAD /v2/base/manifests/{NIGHTLY}",
    ]


def test_a_platform_is_added_from_the_pinned_index_and_from_nothing_else(world: World) -> None:
    amd, arm = with_vllm(), with_vllm(architecture="arm64")
    digest = world.tag(NIGHTLY, index_of(amd64=amd, arm64=arm), amd, arm)
    one = world.complete(world.pin(NIGHTLY, index=digest), AMD64).pin
    assert [item for item, _ in world.complete(one, AMD64, ARM64).pin.platforms] == [AMD64, ARM64]
    manifest = replace(one, index=None)
    world.untag(NIGHTLY)
    world = World(world.registry)
    assert world.complete(manifest, ARM64).remarks == (
        f"the tag {NIGHTLY} is gone upstream, what it named is pinned",
        "linux/arm64 cannot be added: lockfiles/vllm.yaml:3: vllm.it: no index is pinned",
    )
    del world.registry.manifests["base", str(digest)]
    world = World(world.registry)
    completed = world.complete(one, ARM64)
    assert completed.pin == one
    assert completed.remarks[1].startswith("linux/arm64 cannot be added: ")
    with pytest.raises(GoneError):
        world.complete(world.pin(NIGHTLY, index=digest))


# --- contradictions --------------------------------------------------------------------------


def test_a_registry_whose_word_is_not_what_it_serves_is_refused(world: World) -> None:
    made, other = with_vllm(), image(SYSTEM)
    world.tag("t", made)
    world.tag("other", other)
    lie = {
        "Content-Type": OCI_INDEX,
        "Docker-Content-Digest": str(made.digest),
    }
    world.registry.on("HEAD", "/v2/base/manifests/t", Reply(headers=lie, body=b"x" * 9))
    with pytest.raises(IntegrityError, match="the registry says that the tag is of 9 bytes of"):
        world.resolve(world.pin())
    raw = Reply(headers={"Content-Type": made.manifest.media_type}, body=other.manifest.raw)
    world.registry.on("GET", f"/v2/base/manifests/{made.digest}", raw)
    with pytest.raises(IntegrityError, match=f"expected {made.digest}, got {other.digest}"):
        World(world.registry).resolve(world.pin())


@pytest.mark.parametrize(
    ("told", "what", "ours", "theirs"),
    [
        (replace(BUILD, version="0.22.0"), "version", "0.22.0", VERSION),
        (replace(BUILD, commit=ObjectId("f" * 40)), "commit", "f" * 40, "01d4d1ad3"),
        (replace(BUILD, package="opt/vllm"), "package", "opt/vllm", f"{PACKAGES}/vllm"),
    ],
)
def test_a_lock_that_says_another_vllm_than_the_image_is_refused(
    world: World, told: VllmBuild, what: str, ours: str, theirs: str
) -> None:
    made = with_vllm()
    world.tag(NIGHTLY, made)
    pin = world.pin(NIGHTLY, index=made.digest, vllm=told)
    for again in (True, False):
        with pytest.raises(IntegrityError) as caught:
            world.resolve(pin, before=pin) if again else world.complete(pin)
        assert caught.value.message == (
            f"lockfiles/vllm.yaml:3: vllm.it.vllm.{what}: the lock says {ours!r}, the image says"
            f" {theirs!r}"
        )


def test_what_a_lock_says_is_kept_where_the_image_agrees(world: World) -> None:
    """Also a commit that neither tag nor label has in full: somebody looked it up."""
    made = with_vllm()
    world.tag("t", made)
    told = replace(BUILD, package=None)
    completed = world.complete(world.pin(index=made.digest, vllm=told))
    assert (completed.pin.vllm, completed.remarks) == (BUILD, ())


def test_a_layer_whose_files_are_not_those_of_the_lock_is_refused(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A memo of the store that says something else is not believed: the layer is read again."""
    made = with_vllm()
    world.tag(NIGHTLY, made)
    whole = world.resolve(world.pin(NIGHTLY)).pin
    key = ("layer", Digest.of(made.layers[1]).hex)
    note, right = world.store.memos[key], files_of(whole)[1]
    empty = world.store.put(b"")
    world.store.memos[key] = note.replace(str(right).encode(), str(empty).encode())
    assert world.complete(replace(whole, vllm=None)).pin == whole
    assert f"the file index at hand is {empty}, the lock pins {right}" in caplog.text
    assert world.store.memos[key] == note
    other = Digest.of(b"other")
    spoilt = ((AMD64, platform_pin(made, files_of(whole)[0], other)),)
    with pytest.raises(IntegrityError) as caught:
        world.complete(replace(whole, vllm=None, platforms=spoilt))
    assert caught.value.message == (
        f"layer {Digest.of(made.layers[1])}: the lock pins file index {other}, its bytes give"
        f" {right}"
    )


def test_a_mixture_of_two_builds_is_refused(world: World) -> None:
    tree = {f"{PACKAGES}/vllm-{v}.dist-info/METADATA": f"Version: {v}\n".encode() for v in "12"}
    world.tag("t", image(tree))
    with pytest.raises(IntegrityError, match="several vLLM at once"):
        world.resolve(world.pin())


# --- which vLLM ------------------------------------------------------------------------------

FULL = VERSION_FILE.replace("'g01d4d1ad3'", f"'{COMMIT}'")
SILENT = "version = '0.22.0'\n"
REVISION = "org.opencontainers.image.revision"
OTHER = "f" * 40
SHORT = "neither tag nor label has commit 01d4d1ad3 in full, so the lock has none"
CONTRADICTS = f"the {{}} names commit {OTHER[:12]}, the vLLM in the image is of 01d4d1ad3"
NO_COMMIT = "vLLM 0.22.0 does not say of which commit it is"


@pytest.mark.parametrize(
    ("text", "tag", "labels", "commit", "remarks"),
    [
        pytest.param(VERSION_FILE, NIGHTLY, {}, COMMIT, [], id="the tag confirms"),
        pytest.param(VERSION_FILE, f"{COMMIT}-cu130", {}, COMMIT, [], id="at the start"),
        pytest.param(VERSION_FILE, "t", {REVISION: COMMIT}, COMMIT, [], id="a label confirms"),
        pytest.param(VERSION_FILE, "t", {}, None, [SHORT], id="nobody"),
        pytest.param(VERSION_FILE, "t", {REVISION: COMMIT[:12]}, None, [SHORT], id="a short label"),
        pytest.param(VERSION_FILE, f"nightly-{COMMIT[:12]}", {}, None, [SHORT], id="a short tag"),
        pytest.param(FULL, "t", {}, COMMIT, [], id="the image has it in full"),
        pytest.param(
            VERSION_FILE,
            f"nightly-{OTHER}",
            {},
            None,
            [CONTRADICTS.format(f"tag nightly-{OTHER}"), SHORT],
            id="the tag lies",
        ),
        pytest.param(
            VERSION_FILE,
            NIGHTLY,
            {REVISION: OTHER},
            COMMIT,
            [CONTRADICTS.format(f"label {REVISION}")],
            id="a label of the system below",
        ),
        pytest.param(
            VERSION_FILE,
            NIGHTLY,
            {REVISION: COMMIT[:10] + "f" * 30},
            None,
            ["01d4d1ad3 is the start of several commits that tag and labels name"],
            id="two that fit",
        ),
        pytest.param(SILENT, "v0.22.0", {}, None, [NO_COMMIT], id="a release"),
        pytest.param(SILENT, NIGHTLY, {}, None, [NO_COMMIT], id="a tag proves nothing"),
        pytest.param(SILENT, "t", {REVISION: COMMIT}, None, [NO_COMMIT], id="nor does a label"),
        pytest.param(SILENT, NIGHTLY, {REVISION: COMMIT}, COMMIT, [], id="both agree"),
        pytest.param(
            SILENT,
            "v0.21.0-cu129",
            {},
            None,
            ["the tag v0.21.0-cu129 holds vLLM 0.22.0", NO_COMMIT],
            id="another release",
        ),
    ],
)
def test_the_image_decides_and_claims_complete_it(
    world: World,
    text: str,
    tag: str,
    labels: dict[str, str],
    commit: str | None,
    remarks: list[str],
) -> None:
    world.tag(tag, with_vllm(text, labels=labels))
    resolved = world.resolve(world.pin(tag))
    assert resolved.pin.vllm is not None
    found = resolved.pin.vllm.commit
    assert (None if found is None else found.hex, list(resolved.remarks)) == (commit, remarks)


@pytest.mark.parametrize(
    ("made", "remark"),
    [
        pytest.param(
            image(SYSTEM),
            "which vLLM is in the image is not to be seen: image: 0 Python"
            " packages directories (none with vLLM), wanted one: none",
            id="no Python",
        ),
        pytest.param(
            image({f"{PACKAGES}/x.py": b""}), "there is no vLLM in the image", id="no vLLM"
        ),
        pytest.param(
            image(Layer({}, "tar")),
            "which vLLM is in the image is not to be seen: image:"
            " 0 Python packages directories (none with vLLM), wanted one: none",
            id="an empty layer",
        ),
    ],
)
def test_an_image_without_vllm_is_pinned_as_it_is(
    world: World, made: MadeImage, remark: str
) -> None:
    world.tag("t", made)
    resolved = world.resolve(world.pin())
    assert (resolved.pin.vllm, resolved.remarks) == (None, (remark,))
    assert None not in files_of(resolved.pin)


# --- odd input -------------------------------------------------------------------------------


def test_what_is_no_image_is_refused(world: World) -> None:
    made = with_vllm()
    with pytest.raises(ProjectError, match="no tag to follow"):
        world.resolve(world.pin(None))
    with pytest.raises(GoneError):
        world.resolve(world.pin("none"))
    world.tag(
        "nested",
        Index.parse(
            json.dumps(
                {
                    "schemaVersion": 2,
                    "mediaType": OCI_INDEX,
                    "manifests": [
                        {
                            "mediaType": OCI_INDEX,
                            "digest": str(index_of(amd64=made).digest),
                            "size": 1,
                            "platform": {"os": "linux", "architecture": "amd64"},
                        }
                    ],
                }
            ).encode()
        ),
    )
    world.tag("index", index_of(amd64=made))
    with pytest.raises(IntegrityError, match="an index inside an index"):
        world.resolve(world.pin("nested"))
    with pytest.raises(GoneError):  # the tag is there before its image
        world.resolve(world.pin("index"))
    arm = with_vllm(architecture="arm64")
    world.tag("liar", index_of(amd64=arm), arm)
    with pytest.raises(IntegrityError, match="the image is for platform 'linux/arm64', wanted"):
        world.resolve(world.pin("liar"))


def test_a_layer_that_breaks_off_leaves_nothing_half_read(world: World) -> None:
    made = with_vllm()
    world.tag(NIGHTLY, made)
    path = f"/v2/base/blobs/{Digest.of(made.layers[1])}"
    short = made.layers[1][:-20]
    world.registry.on("GET", path, Reply(body=short))
    with pytest.raises(IntegrityError):
        world.resolve(world.pin(NIGHTLY))
    assert ("layer", Digest.of(made.layers[1]).hex) not in world.store.memos
    assert world.resolve(world.pin(NIGHTLY)).pin.vllm == BUILD
