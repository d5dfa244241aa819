"""An image that is verified where there is no network: by its layout, and, baked again, by the
copies of what it stands on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.escrow_world import TO, Based, based
from tests.flow.worlds import Done, base_image
from tests.signers import p256
from tests.standin.registry import StandIn, stand_in

ASKED = "  hint: run once without --offline"


@pytest.fixture
def kept() -> Iterator[StandIn]:
    """The registry that keeps copies."""
    with stand_in() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, registry: StandIn, kept: StandIn) -> Based:
    """A base from outside; an image on it, signed, in the layout ``layout``."""
    found = based(tmp_path, registry, kept, base_image())
    key = tmp_path / "key.pem"
    key.write_bytes(p256().pem)
    key.chmod(0o600)
    key.with_suffix(".pub").write_bytes(p256().public.pem)
    assert found.run("build", "it", "--out", str(tmp_path / "layout")).status == 0
    ran = found.run("sign", "it", "../layout", "--key", str(key), "--allow-plaintext")
    assert ran.status == 0, ran.err
    return found


def verify(world: Based, *more: str) -> Done:
    """On an empty machine, which may ask nobody."""
    world.forget()
    world.origin.calls.clear()
    world.kept.calls.clear()
    done = world.run("verify", "oci:../layout", "--key", "../key.pub", "--offline", *more)
    assert (world.origin.calls, world.kept.calls) == ([], [])
    return done


def test_to_verify_a_layout_takes_no_base_and_no_network(world: Based) -> None:
    done = verify(world)
    assert (done.status, done.err) == (0, "")
    assert "layers: 2 of the base, 1 of ours, each in its place" in done.out


def test_to_bake_it_again_takes_the_base_from_the_layout_that_the_lock_notes(world: Based) -> None:
    world.escrow(to="oci:kept")
    world.lose()
    done = verify(world, "--rebuild")
    assert done.status == 0, done.err
    assert "\n  rebuilt here: the same image\n" in f"{done.out}\n"
    assert done.err.count("using the copy at oci:kept") == 1


def test_without_a_copy_that_may_be_asked_it_says_how_to_have_one(world: Based) -> None:
    hint = f"{ASKED}; builder escrow V --to oci:DIR keeps what --offline takes"
    manifest = f"base@{world.made.digest}: --offline forbids to ask"
    done = verify(world, "--rebuild")
    assert (done.status, manifest in done.first, done.err.splitlines()[-1]) == (8, True, hint)
    world.escrow(to=TO)
    done = verify(world, "--rebuild")
    assert (done.status, manifest in done.first, done.err.splitlines()[-1]) == (8, True, hint)
    assert f"and the copy at {TO}: " in done.first


@pytest.mark.parametrize("whole", [False, True], ids=["a blob is lost", "not checked out"])
def test_where_the_layout_of_the_lock_is_not_there_it_says_so(world: Based, whole: bool) -> None:
    world.escrow(to=TO)
    world.escrow(to="oci:kept")
    kept = world.tiny.root / "kept"
    if whole:
        kept.rename(kept.with_name("elsewhere"))
        wanted = "the copy at oci:kept: kept: not an OCI image layout: it has no file 'oci-layout'"
    else:
        (kept / "blobs/sha256" / world.made.digest.hex).unlink()
        wanted = f"the copy at oci:kept: kept: no blob {world.made.digest} in the layout"
    done = verify(world, "--rebuild")
    assert (done.status, done.first.endswith(wanted)) == (8, True), done.err
    assert done.err.splitlines()[-1] == (
        f"{ASKED}; or put oci:kept back: the lock says that a copy is there"
    )


def test_a_copy_that_was_altered_is_never_taken(world: Based) -> None:
    world.escrow(to="oci:kept")
    blob = world.tiny.root / "kept/blobs/sha256" / world.made.digest.hex
    blob.chmod(0o600)
    blob.write_bytes(blob.read_bytes() + b" ")
    done = verify(world, "--rebuild")
    assert (done.status, f"expected {world.made.digest}, got " in done.first) == (4, True)
