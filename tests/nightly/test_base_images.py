"""Base images that follow tags, through the whole command line: the newest is found, and tried."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.digest import Digest
from builder.oci import Manifest
from tests.adapters.git_world import Upstream
from tests.flow.images import PACKAGES, MadeImage, image, serve
from tests.flow.worlds import CONFIG, REGISTRY, Tiny
from tests.resolve.image_world import SYSTEM, vllm
from tests.standin.registry import StandIn

URL = "https://code.example/acme/vllm"
TARGET = f"{PACKAGES}/vllm/config.py"


def nightly(day: int, config: bytes) -> MadeImage:
    """A base with vLLM, made on that day."""
    made = image({**SYSTEM, "etc/day": b"%d" % day}, {**vllm(), TARGET: config})
    raw = json.dumps(json.loads(made.config) | {"created": f"2026-05-{day:02}T00:00:00Z"}).encode()
    document = json.loads(made.manifest.raw)
    document["config"] |= {"digest": str(Digest.of(raw)), "size": len(raw)}
    return replace(made, config=raw, manifest=Manifest.parse(json.dumps(document).encode()))


@pytest.fixture
def project(tiny: Tiny, registry: StandIn) -> Tiny:
    """A variant on the nightly of the second."""
    made = nightly(2, CONFIG)
    serve(registry, made, tag="nightly-b")
    follows = {"image": f"{REGISTRY}/base", "tag": "nightly-b", "tags": "nightly-*"}
    tiny.pin(made, follows=follows)
    tiny.edit("sizes", "vllm/config.py", "SIZE = 128", "SIZE = 256")
    tiny.variant("it", "sizes")
    completed = tiny.run("lock")
    assert completed.status == 0, completed.err
    return tiny


def pin(ran: Any) -> Any:
    (found,) = ran.json["pins"]
    return found


def test_a_newer_one_that_takes_the_patches_passes(project: Tiny, registry: StandIn) -> None:
    serve(registry, nightly(3, b"# new\n" + CONFIG), tag="nightly-a")
    serve(registry, nightly(1, CONFIG), tag="nightly-c")
    before = project.snapshot()
    ran = project.run("nightly", "--json")
    assert ran.status == 0, ran.err
    found = pin(ran)
    assert (found["state"], found["kind"]) == ("passes", "vllm")
    assert found["report"]["moves"][0]["to"].startswith("nightly-a@")
    assert [item["variant"] for item in found["images"]] == ["it"]
    assert project.snapshot() == before


def test_a_newer_one_on_which_a_patch_is_dead_fails(project: Tiny, registry: StandIn) -> None:
    serve(registry, nightly(3, b"SIZE = 64\n"), tag="nightly-a")
    ran = project.run("nightly", "--json")
    assert ran.status == 6
    found = pin(ran)
    assert (found["state"], found["images"]) == ("fails", [])
    (variant,) = found["report"]["variants"]
    assert variant["steps"][0]["verdict"] == "drift-anchor"


def test_nothing_newer_is_current(project: Tiny, registry: StandIn) -> None:
    serve(registry, nightly(1, CONFIG), tag="nightly-c")
    ran = project.run("nightly", "--json")
    assert (ran.status, pin(ran)["state"]) == (0, "current")


def test_a_registry_that_is_away_is_no_dead_patch(project: Tiny) -> None:
    ran = project.run("nightly", "--json", "--offline")
    assert (ran.status, pin(ran)["state"]) == (8, "unknown")


def test_the_commits_of_vllm_between_two_nightlies_are_told(
    tiny: Tiny, registry: StandIn, tmp_path: Path
) -> None:
    """They are named by commits of a repository, which the pin knows."""
    upstream = Upstream.make(tmp_path / "vllm.git")
    old = upstream.commit("refs/heads/main", {"a": b"1"})
    new = upstream.commit("refs/heads/main", {"a": b"2"}, parent=old)
    for commit in (old, new):
        version = f"__version__ = version = '0.1'\n__commit_id__ = commit_id = 'g{commit[:9]}'\n"
        made = image(SYSTEM, {**vllm(version), TARGET: CONFIG})
        serve(registry, made, tag=f"nightly-{commit}")
        if commit == old:
            follows = {
                "image": f"{REGISTRY}/base",
                "tag": f"nightly-{old}",
                "tags": "nightly-*",
                "commits": URL,
            }
            tiny.pin(made, follows=follows)
    tiny.variant("it")
    mirrors = f"{URL}={upstream.path}"
    completed = tiny.run("lock", BUILDER_MIRRORS=mirrors)
    assert completed.status == 0, completed.err
    words = ("bump", "vllm", "base", "--latest", "--json")
    (move,) = tiny.run(*words, "--dry-run", BUILDER_MIRRORS=mirrors).json["moves"]
    assert [item["id"] for item in move["commits"]] == [new]
    assert (move["lost_commits"], move["remarks"]) == ([], [])
    away = f"{URL}=http://127.0.0.1:1/nobody"
    words = ("bump", "vllm", "base", f"nightly-{new}", "--json")
    ran = tiny.run(*words, store=tmp_path / "other", BUILDER_MIRRORS=away)
    (move,) = ran.json["moves"]
    assert ran.status == 0, "that nobody can say it stops no bump"
    assert move["commits"] is None
    (remark,) = move["remarks"]
    assert remark.startswith(f"what lies between vLLM {old[:12]} and {new[:12]} is not known: ")
