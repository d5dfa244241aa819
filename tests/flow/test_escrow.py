"""``builder escrow``: everything that a variant needs from outside, in a place of ours, byte for
byte, once, and on record in the lock."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.artifact import Kind
from builder.digest import Digest
from builder.errors import NetworkError, ProjectError
from builder.escrow.keep import keep, record
from builder.escrow.place import name_of, opened, parse
from builder.lock import codec
from builder.lock.model import Escrow, ImagePin
from builder.oci import OCI_INDEX
from builder.pipeline import materials
from builder.project import Project
from builder.reference import Reference
from tests.flow.escrow_world import KEPT, TO, WHEEL, Outside, outside
from tests.flow.images import image, serve, serve_index
from tests.flow.images import index_of as index_with_attestation
from tests.flow.worlds import AMD64, BASE, Tiny, base_image, clean_environment, command
from tests.registry.images import index_of
from tests.standin.registry import Call, Reply, StandIn, stand_in

pytestmark = pytest.mark.requires("git")


@pytest.fixture
def kept() -> Iterator[StandIn]:
    """The registry that keeps copies."""
    with stand_in() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, registry: StandIn, kept: StandIn) -> Outside:
    return outside(tmp_path, registry, kept, base_image())


def uploads(kept: StandIn) -> list[Call]:
    """The requests that brought bytes of blobs."""
    return [
        call for call in kept.calls if call.method in ("PUT", "PATCH") and "/blobs/" in call.path
    ]


def held(kept: StandIn) -> set[Digest]:
    return {digest for name, digest in kept.blobs if name == "acme/escrow"}


# --- what is kept, and how -----------------------------------------------------------------------


def test_each_pin_is_kept_and_the_lock_says_where(world: Outside, kept: StandIn) -> None:
    done = world.run("escrow", "all", "--to", TO, "--json")
    told = {(item["kind"], item["name"]): item for item in done.json["pins"]}
    assert list(told) == [
        ("vllm", "base"),
        ("pull", "seven"),
        ("source", "code"),
        ("wheel", "demo"),
    ]
    assert told["vllm", "base"] == {
        "kind": "vllm",
        "name": "base",
        "place": TO,
        "digest": str(world.made.digest),
        "blobs": {"present": 0, "mounted": 0, "copied": 3},
        "copied_bytes": sum(map(len, world.made.blobs.values())),
        "known": False,
    }
    project = Project(world.tiny.root)
    for pin, key in (
        (project.images["base"], ("vllm", "base")),
        (project.pulls["seven"], ("pull", "seven")),
        (project.sources["code"], ("source", "code")),
        (project.wheels["demo"], ("wheel", "demo")),
    ):
        digest = Digest.parse(told[key]["digest"])
        assert pin.escrow == (Escrow(registry=Reference.parse(TO), digest=digest),)
        assert ("acme/escrow", name_of(digest)) in kept.manifests
    assert project.genesis["v1"].escrow == ()
    assert kept.manifests["acme/escrow", str(world.made.digest)][1] == world.made.manifest.raw
    assert {*world.made.blobs, Digest.of(WHEEL)} <= held(kept)


def test_people_read_a_line_for_each_pin(world: Outside) -> None:
    done = world.run("escrow", "patched", "--to", TO)
    size = sum(map(len, world.made.blobs.values()))
    lines = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert lines[0] == f"vllm base: {TO} {world.made.digest}: 3 copied ({size} B)"
    assert lines[1].startswith(f"genesis v1: {TO} sha256:")
    again = world.run("escrow", "patched", "--to", TO)
    assert again.out.splitlines()[0] == f"vllm base: {TO} {world.made.digest}: 3 there already"


def test_what_is_no_image_is_an_artifact_that_names_its_files(
    world: Outside, kept: StandIn
) -> None:
    entry = world.escrow()["code"].entry
    assert entry is not None
    document = json.loads(kept.manifests["acme/escrow", str(entry.digest)][1])
    title = "org.opencontainers.image.title"
    assert document["artifactType"] == Kind.SOURCE.artifact_type
    assert document["config"]["mediaType"] == "application/vnd.oci.empty.v1+json"
    names = [item["annotations"][title] for item in document["layers"]]
    assert names == ["big.bin", "chat.jinja", "empty"]


def test_a_pin_that_is_used_twice_is_kept_once_and_in_the_same_bytes_everywhere(
    world: Outside, kept: StandIn
) -> None:
    world.tiny.variant("again", {"pull": "seven"})
    first = world.escrow("it", "again")
    assert list(first) == ["base", "seven", "code"]
    assert len(uploads(kept)) == len(held(kept))
    world.forget()
    second = world.escrow("again", "it", to=f"{KEPT}/other/place")
    assert {name: item.entry.digest for name, item in second.items() if item.entry} == {
        name: item.entry.digest for name, item in first.items() if item.entry
    }


def test_a_second_run_sends_nothing_and_leaves_the_lock_alone(
    world: Outside, kept: StandIn
) -> None:
    world.escrow()
    before = world.tiny.snapshot()
    kept.calls.clear()
    again = world.escrow().values()
    assert [(item.copied, item.recorded) for item in again] == [(0, True)] * 3
    assert [call for call in kept.calls if call.method not in ("HEAD", "GET")] == []
    assert world.tiny.snapshot() == before


def test_the_lock_changes_by_the_lines_of_the_copies_alone(world: Outside) -> None:
    project = Project(world.tiny.root)
    text = codec.write_pins(ImagePin, project.images)
    text = text.replace(b"    follows:\n", b"    follows:  # for people\n\n")
    (world.tiny.root / codec.IMAGES).write_bytes(text)
    before = world.lock_text("vllm").splitlines()
    world.escrow()
    world.escrow(to="oci:kept")
    after = world.lock_text("vllm").splitlines()
    new = [line.strip() for line in after if line not in before]
    assert [line for line in after if line in before] == before
    assert new == [
        "escrow:",
        f"- registry: {TO}",
        f"digest: {world.made.digest}",
        "- layout: kept",
        f"digest: {world.made.digest}",
    ]


def test_a_base_layer_does_not_stop_in_the_store(world: Outside) -> None:
    world.escrow()
    assert not [layer for layer in world.made.layers if world.tiny.store.has(Digest.of(layer))]


def test_a_patch_set_is_kept_with_modes_and_links(world: Outside) -> None:
    world.escrow("patched")
    world.forget()
    world.lose()
    project, now = world.tiny.world()
    pin = project.genesis["v1"]
    found = materials(project, project.variant("patched"), now)
    assert [(file.path, file.mode, file.data) for file in found.payload(pin).files] == [
        ("__init__.py", "100644", b""),
        ("link", "120000", b"run"),
        ("run", "100755", b"#!/bin/sh\n"),
    ]
    plugin = found.plugin(pin)
    assert plugin is not None
    assert [file.path for file in plugin.files] == ["setup.py"]


def test_what_the_project_has_is_not_kept(tiny: Tiny) -> None:
    tiny.variant("it", base="scratch")
    done = tiny.run("escrow", "it", "--to", "oci:kept", "--json")
    assert (done.status, done.json) == (0, {"pins": []})
    assert not (tiny.root / "kept").exists()


# --- platforms -----------------------------------------------------------------------------------


def test_a_base_is_kept_for_its_platform_or_with_all_that_its_index_has(
    world: Outside, registry: StandIn, kept: StandIn
) -> None:
    other = image(BASE, architecture="arm64")
    index = index_of((world.made.manifest, "linux", "amd64"), (other.manifest, "linux", "arm64"))
    serve(registry, other)
    serve_index(registry, index)
    world.tiny.pin(world.made, index=str(index.digest))
    world.tiny.variant("it")
    entry = world.escrow()["base"].entry
    assert entry is not None
    assert entry.digest == world.made.digest
    assert ("acme/escrow", str(other.digest)) not in kept.manifests
    done = world.run("escrow", "it", "--to", TO, "--all-platforms", "--json")
    assert done.json["pins"][0]["digest"] == str(index.digest)
    names = [name for repository, name in kept.manifests if repository == "acme/escrow"]
    assert names.index(str(other.digest)) < names.index(name_of(index.digest))
    assert kept.manifests["acme/escrow", name_of(index.digest)] == (OCI_INDEX, index.raw)
    assert {*other.blobs, *world.made.blobs} <= held(kept)


def test_an_index_of_which_a_part_is_gone_is_not_kept(world: Outside, registry: StandIn) -> None:
    index = index_with_attestation(amd64=world.made)
    serve_index(registry, index)
    world.tiny.pin(world.made, index=str(index.digest))
    before = world.tiny.snapshot()
    done = world.run("escrow", "patched", "--to", TO, "--all-platforms", "--json")
    assert (done.status, [item["name"] for item in done.json["pins"]]) == (7, ["base", "v1"])
    assert "gone" in done.json["pins"][0]
    after = world.tiny.snapshot()
    assert [file for file in after if after[file] != before[file]] == ["lockfiles/genesis.yaml"]


def test_a_base_of_which_the_lock_knows_only_the_index_is_not_kept_by_halves(
    tiny: Tiny, registry: StandIn
) -> None:
    made = base_image()
    index = index_with_attestation(amd64=made)
    serve(registry, made)
    serve_index(registry, index)
    tiny.pin(made, index=str(index.digest), platforms={})
    tiny.variant("it")
    before = tiny.snapshot()
    done = tiny.run("escrow", "it", "--to", "oci:kept")
    assert (done.status, done.err.splitlines()) == (
        3,
        [
            (
                "builder: error: lockfiles/vllm.yaml:4: vllm.base: no manifest is pinned for"
                " platform 'linux/amd64', and the index alone is not kept"
            ),
            (
                f"  hint: write {made.digest} into the lock as its manifest, or keep all that the"
                " index has: --all-platforms"
            ),
        ],
    )
    assert tiny.snapshot() == before


# --- broken off ----------------------------------------------------------------------------------


def test_a_run_that_broke_off_goes_on_with_what_is_missing(world: Outside, kept: StandIn) -> None:
    last = world.made.manifest.layers[1].digest

    def refuse(call: Call) -> Reply | None:
        return Reply(status=403) if call.query.get("digest") == [str(last)] else None

    kept.on("PUT", "/v2/acme/escrow/blobs/uploads/.*", *[refuse] * 3)
    with pytest.raises(NetworkError):
        world.escrow()
    sent = held(kept)
    assert last not in sent
    assert len(sent) == 2
    assert "escrow" not in world.lock_text("vllm")
    kept.calls.clear()
    again = world.escrow()["base"]
    assert (again.present, again.copied) == (2, 1)
    assert again.copied_bytes == world.made.manifest.layers[1].size
    bodies = [call for call in uploads(kept) if call.query.get("digest") == [str(last)]]
    assert sum(len(call.body) for call in bodies) == again.copied_bytes


def test_a_pin_that_nobody_has_any_more_does_not_hold_up_the_others(world: Outside) -> None:
    world.origin.manifests.clear()
    done = world.run("escrow", "it", "--to", TO, "--json")
    assert done.status == 7
    (base, *others) = done.json["pins"]
    assert base == {"kind": "vllm", "name": "base", "gone": done.json["error"]["message"]}
    assert [item["known"] for item in others] == [False, False]
    assert "escrow" in world.lock_text("sources")
    assert "escrow" not in world.lock_text("vllm")


def test_a_lock_that_changed_meanwhile_is_not_overwritten(world: Outside) -> None:
    project, now = world.tiny.world()
    place = opened(
        parse("oci:kept", root=world.tiny.root, at="--to"),
        root=world.tiny.root,
        registry=lambda: now.registry,
        make_layout=now.make_layout,
        progress=now.progress,
    )
    found = list(keep(project, ["it"], place, world=now, platform=AMD64))
    world.tiny.pin(world.made, locked="2026-01-01T00:00:00Z")
    before = world.tiny.snapshot()
    with pytest.raises(ProjectError, match="changed while the project was read"):
        record(project, found)
    assert world.tiny.snapshot() == before


def test_runs_at_once_lose_nothing_of_each_other(world: Outside) -> None:
    def escrow(to: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command("escrow", "it", "--to", to),
            cwd=world.tiny.root,
            env=clean_environment(world.tiny.root.parent, world.tiny.store_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    runs = [(to, escrow(to)) for to in ("oci:one", "oci:one", "oci:two")]
    for to, run in runs:
        _, said = run.communicate(timeout=60)
        if run.returncode:  # whoever was slower is told, and goes on where it stood
            assert (run.returncode, "changed" in said) == (3, True)
            again = world.run("escrow", "it", "--to", to, "--json")
            assert again.json["pins"][0]["blobs"]["present"] == 3
    pin = Project(world.tiny.root).images["base"]
    assert {item.layout for item in pin.escrow} == {"one", "two"}
    assert len(pin.escrow) == 2


# --- where to ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "said", "hint"),
    [
        pytest.param(
            "kept",
            "--to: 'kept' names no registry",
            "write oci:kept for a directory, or docker.io/library/kept for that repository",
            id="a directory without oci",
        ),
        pytest.param(
            "ghcr.io/acme/kept:tag",
            "--to: 'ghcr.io/acme/kept:tag': a repository is wanted, without tag or digest",
            "what is kept is found by its digest",
            id="a tag",
        ),
        pytest.param(
            "oci:../kept",
            "--to: oci:../kept: not a directory below the project",
            "the lock would name a place that other machines do not have: use a registry, or a"
            " directory in the project, which may be a link",
            id="outside",
        ),
        pytest.param(
            "oci:/var/kept",
            "--to: oci:/var/kept: not a directory below the project",
            "the lock would name a place that other machines do not have: use a registry, or a"
            " directory in the project, which may be a link",
            id="elsewhere",
        ),
        pytest.param(
            "oci:a/..",
            "--to: oci:a/..: not a directory below the project",
            "the lock would name a place that other machines do not have: use a registry, or a"
            " directory in the project, which may be a link",
            id="the project itself",
        ),
    ],
)
def test_a_place_that_a_lock_cannot_name_is_refused(
    tiny: Tiny, to: str, said: str, hint: str
) -> None:
    tiny.variant("it", base="scratch")
    done = tiny.run("escrow", "it", "--to", to)
    assert (done.status, done.err.splitlines()) == (
        2,
        [f"builder: error: {said}", f"  hint: {hint}"],
    )


def test_without_a_place_it_asks_for_one_and_settings_may_have_it(world: Outside) -> None:
    done = world.run("escrow", "patched")
    assert (done.status, done.first) == (
        2,
        "builder: error: nowhere to keep it: neither --to nor 'escrow' in builder.yaml",
    )
    settings = world.tiny.root / "builder.yaml"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"escrow": "oci:a/../kept"}))
    assert world.run("escrow", "patched").status == 0
    assert "layout: kept" in world.lock_text("genesis")
    assert (world.tiny.root / "kept/oci-layout").is_file()


def test_a_directory_of_something_else_is_left_alone(world: Outside) -> None:
    done = world.run("escrow", "it", "--to", "oci:lockfiles")
    assert (done.status, done.err.splitlines()) == (
        9,
        [
            (
                "builder: error: store 'lockfiles': not an OCI image layout: it has 'genesis.yaml'"
                " and no 'oci-layout'"
            ),
            "  hint: choose an empty or a new directory, or a layout: --to oci:DIR",
        ],
    )


def test_a_layout_with_any_name_that_a_file_can_have(world: Outside) -> None:
    world.escrow(to="oci:tief/ünï côde: x #1")
    world.forget()
    world.lose()
    assert world.bake().base is not None


def test_a_layout_may_be_elsewhere_behind_a_link(world: Outside, tmp_path: Path) -> None:
    (tmp_path / "big-disk").mkdir()
    (world.tiny.root / "kept").symlink_to(tmp_path / "big-disk")
    entry = world.escrow("patched", to=f"oci:{world.tiny.root}/kept")["base"].entry
    assert entry == Escrow(layout="kept", digest=world.made.digest)
    assert (tmp_path / "big-disk/index.json").is_file()


def test_where_nothing_comes_from_outside_that_is_said(tiny: Tiny) -> None:
    tiny.variant("it", base="scratch")
    done = tiny.run("escrow", "it", "--to", "oci:kept")
    assert (done.status, done.out) == (
        0,
        "nothing to keep: all that they need is in the project\n",
    )
    assert tiny.run("escrow", "it", "--to", "oci:kept", "--json").json == {"pins": []}
