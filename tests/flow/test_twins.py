"""A copy whose layers somebody packed anew: the same config and files, other blobs, another image.
It will do where nothing else is left, and never without being named."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from tests.flow.conftest import Log
from tests.flow.escrow_world import KEPT, Based, based
from tests.flow.images import Layer, MadeImage, image, serve, write_layout
from tests.flow.worlds import BASE, at_packages, base_image, content
from tests.standin.registry import StandIn, stand_in


@pytest.fixture
def kept() -> Iterator[StandIn]:
    """The registry that keeps copies."""
    with stand_in() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, registry: StandIn, kept: StandIn) -> Based:
    return based(tmp_path, registry, kept, base_image())


def twin_of(made: MadeImage) -> MadeImage:
    """The same files and config; every layer packed in another way."""
    twin = image(Layer({"etc/hostname": b"base\n"}, "zstd"), Layer(BASE, "tar"))
    assert twin.config == made.config
    assert twin.digest != made.digest
    return twin


@pytest.fixture
def with_twin(world: Based, kept: StandIn) -> MadeImage:
    """The base is gone, and our registry has a twin of it."""
    twin = twin_of(world.made)
    serve(kept, twin, repository="acme/twin")
    copy = {"registry": f"{KEPT}/acme/twin", "digest": str(twin.digest)}
    world.tiny.pin(world.made, escrow=[copy])
    world.forget()
    return twin


def test_a_twin_gives_the_same_files_and_another_image_and_is_named(
    world: Based, with_twin: MadeImage, log: Log
) -> None:
    before = world.bake()
    world.forget()
    world.origin.manifests.clear()
    after = world.bake()
    assert after.image.config == before.image.config
    assert after.image.own == before.image.own
    assert after.image.base_layers == with_twin.manifest.layers
    assert after.image.digest != before.image.digest
    assert content(after, at_packages("vllm/config.py"), world.tiny.store) == b"SIZE = 256\n"
    line = [line for line in log.lines if "twin" in line][-1]
    assert line == (
        f"lockfiles/vllm.yaml:4: vllm.base: manifest {with_twin.digest} is a recompressed twin of"
        f" {world.made.digest}: the same config {Digest.of(world.made.config)}, other blobs;"
        " images on it have the same files and another digest"
    )


def test_a_twin_shows_in_the_table_in_json_and_where_results_are_compared(
    world: Based, with_twin: MadeImage
) -> None:
    assert world.run("accept", "it").status == 0
    world.forget()
    world.origin.manifests.clear()
    said = f"a recompressed twin of {world.made.digest}, at {KEPT}/acme/twin"
    assert f"base  {said}" in world.run("build", "it").out.splitlines()
    assert world.run("build", "it", "--json").json["images"][0]["twin"] == {
        "of": str(world.made.digest),
        "manifest": str(with_twin.digest),
        "at": f"{KEPT}/acme/twin",
    }
    done = world.run("build", "it", "--locked")
    assert done.status == 4
    assert f"; the base is {said}" in done.err


def test_an_exact_copy_goes_before_a_twin(world: Based, with_twin: MadeImage) -> None:
    before = world.bake()
    write_layout(world.tiny.root / "kept", world.made)
    copies = [
        {"registry": f"{KEPT}/acme/twin", "digest": str(with_twin.digest)},
        {"layout": "kept", "digest": str(world.made.digest)},
    ]
    world.tiny.pin(world.made, escrow=copies)
    world.forget()
    world.origin.manifests.clear()
    assert world.bake().image == before.image


def test_a_push_of_a_twin_mounts_its_own_layers(world: Based, with_twin: MadeImage) -> None:
    world.origin.manifests.clear()
    done = world.run("push", "it", f"{KEPT}/out:it", "--json")
    assert done.json["blobs"] == {"present": 0, "mounted": 2, "uploaded": 2}


def test_another_image_is_no_twin(world: Based, kept: StandIn) -> None:
    other = image(BASE)
    serve(kept, other, repository="acme/twin")
    copy = {"registry": f"{KEPT}/acme/twin", "digest": str(other.digest)}
    world.tiny.pin(world.made, escrow=[copy])
    world.origin.manifests.clear()
    with pytest.raises(IntegrityError) as caught:
        world.bake()
    assert caught.value.message == (
        f"lockfiles/vllm.yaml:4: vllm.base: {KEPT}/acme/twin: the lock pins config"
        f" {Digest.of(world.made.config)}, the manifest has {Digest.of(other.config)}"
    )
    assert world.tiny.references() == {}


def test_a_twin_whose_layers_are_not_what_they_say_is_refused(
    world: Based, kept: StandIn, with_twin: MadeImage
) -> None:
    lie = replace(
        with_twin,
        manifest=type(with_twin.manifest).parse(
            with_twin.manifest.raw.replace(
                str(with_twin.manifest.layers[1].digest).encode(),
                str(kept.add_blob("acme/twin", image(BASE, {"x": b"y"}).layers[1]).digest).encode(),
            )
        ),
    )
    serve(kept, lie, repository="acme/twin")
    copy = {"registry": f"{KEPT}/acme/twin", "digest": str(lie.digest)}
    world.tiny.pin(world.made, escrow=[copy])
    world.origin.manifests.clear()
    with pytest.raises(IntegrityError):
        world.bake()


def test_without_a_config_in_the_lock_nothing_is_taken_for_a_twin(
    world: Based, with_twin: MadeImage
) -> None:
    platforms = {"linux/amd64": {"manifest": str(world.made.digest)}}
    copy = {"registry": f"{KEPT}/acme/twin", "digest": str(with_twin.digest)}
    world.tiny.pin(world.made, platforms=platforms, escrow=[copy])
    world.origin.manifests.clear()
    with pytest.raises(GoneError):
        world.bake()
