"""Copies in real registries: what upstream deletes, and collects, is built and pushed from ours."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from builder.lock import codec
from builder.lock.model import ImagePin
from builder.project import Project
from tests.flow.images import image, push
from tests.flow.worlds import BASE, Tiny
from tests.services import RunningRegistry, running_registry

pytestmark = pytest.mark.requires("docker-registry")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningRegistry, ...]]:
    """Upstream's registry, ours for copies, and ours for images."""
    first, second, third = (tmp_path_factory.mktemp("registry") for _ in range(3))
    with (
        running_registry(first) as upstream,
        running_registry(second) as kept,
        running_registry(third) as out,
    ):
        yield upstream, kept, out


@pytest.mark.requires("skopeo")
def test_a_base_that_upstream_deletes_and_collects_is_built_and_pushed_from_ours(
    tmp_path: Path, places: tuple[RunningRegistry, ...]
) -> None:
    upstream, kept, out = places
    made = image({"usr/big": bytes(range(256)) * 50_000}, BASE)
    push(made, f"{upstream.host}/vllm/vllm-openai:nightly-1")
    tiny = Tiny.make(tmp_path)
    tiny.pin(made, repository=f"{upstream.host}/vllm/vllm-openai")
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    lock = tiny.root / codec.IMAGES
    lock.write_bytes(codec.write_pins(ImagePin, Project(tiny.root).images))
    before = lock.read_text().splitlines()
    built = tiny.run("build", "it", "--push", f"{out.host}/first/it:1").out

    assert tiny.run("escrow", "it", "--to", f"{kept.host}/acme/escrow").status == 0
    assert tiny.run("escrow", "it", "--to", "oci:kept").status == 0
    new = [line for line in lock.read_text().splitlines() if line not in before]
    assert [line.split(":")[0].strip() for line in new] == [
        *("escrow", "- registry", "digest"),
        *("- layout", "digest"),
    ]

    # The manifest is deleted, with its tag; the blobs stay.
    url = f"http://{upstream.host}/v2/vllm/vllm-openai/manifests/{made.digest}"
    assert requests.delete(url, timeout=10).status_code == 202
    shutil.rmtree(tiny.store_path)
    again = tiny.run("build", "it")
    assert again.out == built.partition("at    ")[0]
    assert (
        "answered 404 Not Found: MANIFEST_UNKNOWN: manifest unknown; using the copy at" in again.err
    )

    # Everything is collected. A third registry gets all of it from ours.
    shutil.rmtree(upstream.storage)
    shutil.rmtree(tiny.store_path)
    done = tiny.run("push", "it", f"{out.host}/second/it:1", "--json")
    digest = done.json["digest"]
    assert f"image {digest}" in built
    inspected = _skopeo("inspect", "--tls-verify=false", f"docker://{out.host}/second/it:1")
    assert json.loads(inspected)["Digest"] == digest

    # Our registry is gone, too: the layout is left.
    shutil.rmtree(kept.storage)
    shutil.rmtree(tiny.store_path)
    last = tiny.run("push", "it", f"{out.host}/third/it:1", "--json")
    assert last.json["digest"] == digest
    assert last.err.count("using the copy at oci:kept") == 1
    assert _skopeo("inspect", f"oci:{tiny.root}/kept:escrow-sha256-{made.digest.hex}")


def test_copies_that_nothing_but_their_tag_leads_to_survive_a_collection(
    tmp_path: Path, places: tuple[RunningRegistry, ...]
) -> None:
    upstream, kept, _ = places
    made = image({"etc/one": b"1\n"}, BASE)
    push(made, f"{upstream.host}/other/base:t")
    tiny = Tiny.make(tmp_path)
    tiny.pin(made, repository=f"{upstream.host}/other/base")
    tiny.variant("it")
    assert tiny.run("escrow", "it", "--to", f"{kept.host}/survives/it").status == 0
    configuration = kept.storage.parent / "config.yml"
    subprocess.run(
        ("docker-registry", "garbage-collect", "--delete-untagged", str(configuration)),
        check=True,
        capture_output=True,
    )
    done = tiny.run("escrow", "it", "--to", f"{kept.host}/survives/it", "--json")
    assert done.json["pins"][0]["blobs"] == {"present": 3, "mounted": 0, "copied": 0}


def _skopeo(*arguments: str) -> str:
    return subprocess.run(("skopeo", *arguments), check=True, capture_output=True, text=True).stdout
