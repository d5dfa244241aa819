"""The patch set: its trees by era, and the refs that lead to a commit of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from builder.digest import Digest, ObjectId
from builder.errors import IntegrityError
from builder.lock.model import Escrow, GenesisPin, Subtree
from builder.reference import Reference
from tests.adapters.git_world import git
from tests.resolve.commits import NOW, THEN, URL, CommitWorld

ESCROW = Escrow(registry=Reference.parse("ghcr.io/acme/escrow"), digest=Digest.of(b"copy"))

V7 = {
    "vllm/_genesis/dispatcher.py": b"7",
    "vllm/_genesis/patches/apply_all.py": b"7",
    "vllm/_genesis/guards.py": b"7",
}
V8 = {"vllm/sndr_core/dispatcher/registry.py": b"8", "vllm/sndr_core/apply/__main__.py": b"8"}
V12 = {"sndr/dispatcher/registry.py": b"12", "sndr/apply/__main__.py": b"12"}


@pytest.fixture
def world(tmp_path: Path) -> CommitWorld:
    return CommitWorld(tmp_path)


def tree(world: CommitWorld, commit: str, path: str) -> Subtree:
    made = git(world.upstream.path, "rev-parse", f"{commit}:{path}")
    return Subtree(path=path, tree=ObjectId.parse(made))


def test_a_commit_is_pinned_with_its_trees_and_what_leads_to_it(world: CommitWorld) -> None:
    commit = world.commit("dev", {**V7, "tools/genesis_vllm_plugin/setup.py": b"p"})
    world.commit("refs/pull/9/head", V7, commit)
    world.commit("main", V12)
    world.upstream.tag("v7.72.2", commit)
    found = world.genesis("v7.72.2", follows="dev")
    assert found.pin == GenesisPin(
        name="patches",
        repository=URL,
        follows="dev",
        commit=ObjectId.parse(commit),
        tree=ObjectId.parse(git(world.upstream.path, "rev-parse", f"{commit}^{{tree}}")),
        payload=tree(world, commit, "vllm/_genesis"),
        plugin=tree(world, commit, "tools/genesis_vllm_plugin"),
        reachable=("refs/heads/dev", "refs/pull/9/head", "refs/tags/v7.72.2"),
        locked=THEN,
    )
    assert found.remarks == ()


@pytest.mark.parametrize(
    "files, payload, plugin, beside",
    [
        pytest.param(V7, "vllm/_genesis", None, (), id="v7"),
        pytest.param(
            {**V7, "genesis_vllm_plugin/setup.py": b"p"},
            "vllm/_genesis",
            "genesis_vllm_plugin",
            (),
            id="v7 with its plugin at the top",
        ),
        pytest.param({"vllm/_genesis/a.py": b"1"}, "vllm/_genesis", None, (), id="the first of v7"),
        pytest.param(V8, "vllm/sndr_core", None, (), id="v8"),
        pytest.param(
            {**V8, "genesis_vllm_plugin/setup.py": b"p"},
            "vllm/sndr_core",
            None,
            (),
            id="v8, whose plugin is in the payload",
        ),
        pytest.param(V12, "sndr", None, (), id="v12"),
        pytest.param(
            {**V7, "vllm/sndr_core/apply/__main__.py": b"8"},
            "vllm/_genesis",
            None,
            ("vllm/sndr_core",),
            id="v7 while v8 is being written",
        ),
        pytest.param({**V8, **V12}, "sndr", None, ("vllm/sndr_core",), id="v12 with shims of v8"),
        pytest.param({**V8, "sndr": b"a file"}, "vllm/sndr_core", None, (), id="a file in the way"),
    ],
)
def test_payload_and_plugin_are_where_the_era_has_them(
    world: CommitWorld,
    files: Mapping[str, bytes],
    payload: str,
    plugin: str | None,
    beside: tuple[str, ...],
) -> None:
    commit = world.commit("main", files)
    found = world.genesis("main")
    assert found.pin.payload == tree(world, commit, payload)
    assert found.pin.plugin == (plugin and tree(world, commit, plugin))
    assert found.remarks == tuple(
        f"beside {payload} it has {other}, which is not taken" for other in beside
    )


def test_a_commit_without_a_payload_is_no_patch_set(world: CommitWorld) -> None:
    commit = world.commit("main", {"README": b"x", "vllm/_genesis": ("120000", b"x")})
    with pytest.raises(IntegrityError) as caught:
        world.genesis("main")
    assert caught.value.message == (
        f"genesis 'patches': {URL} at {commit} has its payload in none of vllm/_genesis,"
        " vllm/sndr_core, sndr"
    )


def test_a_commit_that_only_pull_requests_lead_to_is_told(world: CommitWorld) -> None:
    old = world.commit("dev", V7)
    pin = world.genesis(old, follows="dev").pin
    new = world.commit("refs/pull/25/head", {**V7, "a": b"1"}, old)
    world.upstream.set_refs({"refs/pull/28/head": new})
    found = world.genesis(new, follows="dev", before=pin)
    assert found.pin.reachable == ("refs/pull/25/head", "refs/pull/28/head")
    (remark,) = found.remarks
    assert remark == (
        f"no branch or tag leads to {new[:12]}, only pull requests: refs/pull/25/head,"
        " refs/pull/28/head"
    )
    assert found.distance is not None
    assert [commit.id for commit in found.distance.ahead] == [new]
    assert found.pin.locked == NOW


def test_a_commit_that_no_ref_leads_to_is_told(world: CommitWorld) -> None:
    world.commit("main", V7)
    fork = world.commit("refs/hidden/x", V7)
    world.upstream.set_refs({"refs/hidden/x": None})
    found = world.genesis(fork)
    assert found.pin.reachable == ()
    assert found.remarks == (
        f"no ref of the repository leads to {fork[:12]}: it may be from any fork",
    )


def test_a_branch_that_was_re_rooted_is_told(world: CommitWorld) -> None:
    old = world.commit("main", V7)
    world.upstream.set_refs({"refs/heads/dev": old})
    pin = replace(world.genesis("main").pin, escrow=(ESCROW,), failing=("v",))
    new = world.commit("main", V12)
    found = world.genesis(None, before=pin)
    assert str(found.pin.commit) == new
    assert (found.pin.escrow, found.pin.failing) == ((), ())
    assert found.remarks == (
        f"refs/heads/main was re-rooted: its history has nothing in common with {old[:12]}",
        "the payload moved from vllm/_genesis to sndr",
    )


def test_a_pin_that_has_not_moved_is_the_same_whatever_leads_to_it_now(world: CommitWorld) -> None:
    commit = world.commit("main", V7)
    world.upstream.set_refs({"refs/heads/dev": commit})
    pin = replace(world.genesis("main").pin, escrow=(ESCROW,))
    assert pin.reachable == ("refs/heads/dev", "refs/heads/main")
    world.upstream.set_refs({"refs/heads/new": commit, "refs/heads/dev": None})
    found = world.genesis(None, before=replace(pin, failing=("v",)))
    assert found.pin == pin
    assert found.remarks == ("what led to it when it was locked does not any more: refs/heads/dev",)


def test_what_a_pin_lacked_is_filled_in(world: CommitWorld) -> None:
    world.commit("main", V7)
    whole = world.genesis("main").pin
    found = world.genesis(None, before=replace(whole, payload=None, reachable=()))
    assert found.pin == replace(whole, locked=NOW)
