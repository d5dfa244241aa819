"""Accepted results, and a store whose bytes are not what they were."""

import json
from pathlib import Path

import pytest

from builder.adapters.store.verify import verify
from builder.digest import Digest
from builder.errors import IntegrityError
from tests.flow.images import serve
from tests.flow.worlds import CONFIG, REGISTRY, Tiny, at_packages, base_image, blobs, content
from tests.standin.registry import StandIn


@pytest.fixture
def project(tiny: Tiny, registry: StandIn) -> Tiny:
    """Two steps on the usual base; the second one reads what the first one made."""
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.edit("one", "vllm/config.py", "128", "256")
    tiny.edit("two", "vllm/config.py", "256", "384")
    tiny.variant("it", "one", "two")
    return tiny


def spoil(project: Tiny, digest: Digest | str) -> Path:
    """Flip one bit in the middle of a blob of the store."""
    text = str(digest).removeprefix("sha256:")
    path = project.store_path / "blobs" / "sha256" / text
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    return path


# --- accepted results ----------------------------------------------------------------------------


def test_locked_demands_a_result_that_somebody_accepted(project: Tiny) -> None:
    done = project.run("build", "it", "--locked")
    assert (done.status, done.err) == (
        4,
        (
            "builder: error: lockfiles/images/it.yaml: no accepted result for linux/amd64\n"
            "  hint: look at the build, then: builder accept it\n"
        ),
    )
    assert project.references() == {}


def test_accepting_writes_what_locked_compares(project: Tiny) -> None:
    accepted = project.run("accept", "it", "--json").json["accepted"]
    build = project.bake(locked=True)
    assert accepted == [
        {
            "variant": "it",
            "digest": str(build.image.digest),
            "file": "lockfiles/images/it.yaml",
        }
    ]
    assert project.references() == {"it": str(build.image.digest)}
    (file,) = (project.root / "lockfiles" / "images").iterdir()
    text = file.read_text()
    assert str(Digest.of(CONFIG)) in text  # pre-image of the first step,
    assert str(Digest.of(b"SIZE = 384\n")) in text  # post-image of the last one,
    assert str(Digest.of(b"SIZE = 256\n")) not in text  # and nothing in between
    before = project.snapshot()
    assert project.run("accept", "it").status == 0
    assert project.snapshot() == before


def test_a_refused_result_leaves_the_reference_where_it_was_and_names_the_files(
    project: Tiny,
) -> None:
    project.run("accept", "it")
    accepted = project.references()
    project.edit("two", "vllm/config.py", "256", "512")
    before = project.snapshot()
    done = project.run("build", "it", "--locked", "--push", f"{REGISTRY}/out:it")
    now = project.bake("it", locked=False).image.digest
    assert done.status == 4
    assert done.first == (
        f"builder: error: lockfiles/images/it.yaml:4: results.linux/amd64: expected image"
        f" {accepted['it']}, the build gave {now}; files that differ:"
        f" {at_packages('vllm/config.py')}"
    )
    assert project.snapshot() == before


def test_a_refused_result_is_neither_referenced_nor_pushed(
    project: Tiny, registry: StandIn
) -> None:
    project.run("accept", "it")
    accepted = project.references()
    project.edit("two", "vllm/config.py", "256", "512")
    registry.calls.clear()
    done = project.run("build", "it", "--locked", "--push", f"{REGISTRY}/out:it", "--json")
    assert done.status == 4
    assert json.loads(done.out)["error"]["exit_status"] == 4
    assert project.references() == accepted
    assert registry.calls == []


def test_a_build_never_writes_into_the_project(project: Tiny) -> None:
    project.run("accept", "it")
    before = project.snapshot()
    project.edit("two", "vllm/config.py", "256", "384")
    assert project.run("build", "it").status == 0
    assert project.run("build", "it", "--check", "--strict", "--locked").status == 0
    assert project.snapshot() == before


# --- damage --------------------------------------------------------------------------------------


def test_a_layer_that_was_damaged_is_not_pushed_and_can_be_repaired(
    project: Tiny, registry: StandIn
) -> None:
    build = project.bake()
    lost = blobs(build)[1]
    path = spoil(project, lost)
    bad = Digest.of(path.read_bytes())
    at = f"blobs/sha256/{lost.removeprefix('sha256:')}"

    done = project.run("push", "it", f"{REGISTRY}/out:it")
    assert done.status == 4
    assert lost in done.first
    assert ("out", "it") not in registry.manifests
    assert ("out", Digest.parse(lost)) not in registry.blobs

    done = project.run("store", "verify")
    assert done.status == 4
    problem = f"{at}: the bytes ({path.stat().st_size}) are {bad}"
    assert done.out.splitlines()[0] == problem
    assert done.first == f"builder: error: store: 1 errors, the first at {problem}"

    done = project.run("store", "verify", "--repair", "--json")
    assert (done.status, done.json["repaired"]) == (0, [lost])
    assert project.bake().image == build.image
    assert verify(project.store).ok
    assert project.run("push", "it", f"{REGISTRY}/out:it").status == 0
    assert registry.blobs["out", Digest.parse(lost)] == path.read_bytes()


def test_a_damaged_layer_is_not_exported(project: Tiny, tmp_path: Path) -> None:
    build = project.bake()
    spoil(project, blobs(build)[0])
    done = project.run("build", "it", "--out", str(tmp_path / "layout"))
    assert done.status == 4
    assert blobs(build)[0] in done.first
    index = tmp_path / "layout" / "index.json"
    assert not index.exists() or json.loads(index.read_bytes())["manifests"] == []


def test_a_step_does_not_read_from_a_damaged_layer(project: Tiny) -> None:
    build = project.bake()
    path = project.store_path / "blobs" / "sha256" / blobs(build)[0].removeprefix("sha256:")
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data.replace(b"SIZE = 256", b"SIZE = 666"))
    project.edit("two", "vllm/config.py", "256", "512")
    with pytest.raises(IntegrityError) as caught:
        project.bake()
    assert caught.value.message == (
        f"layer {blobs(build)[0]}: {at_packages('vllm/config.py')!r}: expected"
        f" {Digest.of(b'SIZE = 256' + bytes([10]))}, got {Digest.of(b'SIZE = 666' + bytes([10]))}"
        " (11 bytes)"
    )
    assert project.references() == {"it": str(build.image.digest)}


@pytest.mark.parametrize("which", ["manifest", "config", "pack", "index", "table"])
def test_whatever_is_damaged_is_named_and_comes_back(project: Tiny, which: str) -> None:
    build = project.bake()
    base = build.base
    assert base is not None
    digests = {
        "manifest": base.manifest.digest,
        "config": build.image.manifest.config.digest,
    }
    if which in {"pack", "index", "table"}:
        key = base.manifest.layers[1].digest.hex
        note = json.loads(project.store.note("layer", key) or b"")
        digests[which] = Digest.parse(note[which])
    spoil(project, digests[which])
    done = project.run("store", "verify", "--repair", "--json")
    assert done.json["repaired"] == [str(digests[which])]
    project.edit("two", "vllm/config.py", "256", "512")
    again = project.bake()
    assert content(again, at_packages("vllm/config.py"), project.store) == b"SIZE = 512\n"
    project.edit("two", "vllm/config.py", "256", "384")
    assert project.bake().image == build.image
    assert verify(project.store).ok
