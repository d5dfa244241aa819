"""``builder nightly`` as CI runs it: the demo in a clone, a remote, and a stand-in for GitHub."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builder.lock import codec
from builder.lock.edit import remove
from builder.lock.model import GenesisPin, ImagePin, PullPin, SourcePin
from tests.adapters.git_world import git
from tests.cli.conftest import Ran
from tests.flow.worlds import ROOT
from tests.nightly.forge import TOKEN, Forge, serve
from tests.nightly.repository import FILES, Repository

pytestmark = pytest.mark.requires("git")
BRANCH = "builder/bump/genesis/demo-patches"
TITLE = "bump genesis demo-patches: f9ca82f4f9d5 -> 1a62f7ce434a"
OTHERS = (
    (codec.GENESIS, GenesisPin, "genesis-v7.72.2"),
    (codec.IMAGES, ImagePin, "nightly-01d4d1ad"),
    (codec.IMAGES, ImagePin, "vllm-0.22.0-wheel"),
    (codec.PULLS, PullPin, "pr40391-v0.22.0"),
    (codec.SOURCES, SourcePin, "club-3090"),
    (codec.SOURCES, SourcePin, "club-pr40391-v0.22.0"),
)
"""What the demo does not need, and the network would be asked for."""


@pytest.fixture
def demo(repository: Repository, forge: Forge) -> Repository:
    """The demo of this repository, in one of its own."""
    root = repository.project
    for name in FILES:
        (root / name).unlink()
    for name in ("demo", "lockfiles", "overlays"):
        shutil.copytree(ROOT / name, root / name, dirs_exist_ok=True)
    shutil.copy(ROOT / "variants/demo.yaml", root / "variants")
    for file, kind, name in OTHERS:
        path = root / file
        path.write_bytes(remove(path.read_bytes(), kind, name))
    settings = (ROOT / "builder.yaml").read_text()
    (root / "builder.yaml").write_text(f"{settings}forges:\n  forge.test: {{api: '{forge.api}'}}\n")
    repository.save("the demo")
    serve(forge)
    return repository


def run(repository: Repository, *arguments: str, **environment: str) -> Ran:
    directory = repository.clone.parent
    done = subprocess.run(
        [sys.executable, "-m", "builder", *arguments],
        cwd=repository.project,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "PYTHONPATH": str(ROOT),
            "BUILDER_STORE": str(directory / "store"),
            "GIT_AUTHOR_NAME": "Night Ly",
            "GIT_AUTHOR_EMAIL": "night@example.org",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def pins(ran: Ran) -> dict[str, Any]:
    return {f"{pin['kind']} {pin['name']}": pin for pin in ran.json["pins"]}


def test_the_night_of_the_demo(demo: Repository, forge: Forge, tmp_path: Path) -> None:
    before, branches = demo.state(), demo.branches()
    summary = tmp_path / "summary.md"
    tried = run(demo, "nightly", GITHUB_STEP_SUMMARY=str(summary))
    assert tried.status == 0, tried.err
    lines = tried.out.splitlines()
    assert "genesis demo-patches: passes" in lines
    assert f"  {TITLE}" in lines
    assert "pull demo-three-bit-kv: current" in lines
    assert "wheel demo-vllm: left alone: a wheel stays at its version, 0.22.0+demo" in lines
    assert f"### `{TITLE}`" in summary.read_text()
    assert (demo.state(), demo.branches(), forge.server.calls) == (before, branches, [])

    first = run(demo, "nightly", "--propose", "--json", GITHUB_TOKEN=TOKEN)
    assert first.status == 0, first.err
    found = pins(first)
    assert {name: pin["state"] for name, pin in found.items() if pin["kind"] != "wheel"} == {
        "genesis demo-patches": "passes",
        "pull demo-three-bit-kv": "current",
        "source demo-chat-template": "current",
    }
    proposal = found["genesis demo-patches"]["proposal"]
    assert (proposal["branch"], proposal["state"]) == (BRANCH, "opened")
    assert demo.branches() == branches | {BRANCH: proposal["pushed"]}
    changed = git(demo.remote, "diff", "--name-only", "main", BRANCH).splitlines()
    assert changed == [codec.GENESIS, "lockfiles/images/demo.yaml"]
    assert demo.state() == before
    (pull,) = forge.pulls
    assert (pull["title"], pull["base"]) == (TITLE, {"ref": "main"})
    assert "| `demo` | | **passes** |" in pull["body"]
    assert "Merging this accepts the images above" in pull["body"]
    assert TOKEN not in first.out + first.err

    again = run(demo, "nightly", "--propose", GITHUB_TOKEN=TOKEN)
    assert again.status == 0
    assert f"  {pull['html_url']} is up to date" in again.out.splitlines()
    assert demo.branches() == branches | {BRANCH: proposal["pushed"]}
    assert len(forge.writes) == 1


def test_a_night_that_fails_for_some_proposes_the_others(
    demo: Repository, forge: Forge, tmp_path: Path
) -> None:
    path = demo.project / codec.SOURCES
    path.write_text(path.read_text().replace("refs/heads/main", "refs/heads/gone"))
    demo.save("follow what is not there")
    summary = tmp_path / "summary.md"
    ran = run(demo, "nightly", "--propose", "--json", "--summary", str(summary), GH_TOKEN=TOKEN)
    assert ran.status == 7
    assert ran.json["status"] == 7
    found = pins(ran)
    assert found["source demo-chat-template"]["state"] == "unknown"
    assert found["source demo-chat-template"]["error"]["exit_status"] == 7
    assert found["genesis demo-patches"]["proposal"]["state"] == "opened"
    assert "| `source demo-chat-template` | **unknown** |" in summary.read_text()


def test_a_host_that_refuses_is_told_for_the_pin(demo: Repository, forge: Forge) -> None:
    forge.server._rules.clear()
    ran = run(demo, "nightly", "--propose", "--json", GITHUB_TOKEN=TOKEN)
    assert ran.status == 7
    pin = pins(ran)["genesis demo-patches"]
    assert (pin["state"], pin["proposal"]) == ("passes", None)
    assert pin["error"]["message"] == (
        f"pull request from {BRANCH}: {forge.server.host} answered 404 Not Found"
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "status", "said"),
    [
        (
            ("--propose",),
            {},
            8,
            "--propose: there is no token to open pull requests at forge.test with",
        ),
        (
            ("--propose",),
            {"GITHUB_TOKEN": "two words"},
            8,
            "--propose: GITHUB_TOKEN holds blanks or other characters that no token has",
        ),
        (
            ("--summary", "no/such/place.md"),
            {},
            2,
            "--summary: no/such/place.md: cannot be written: No such file or directory",
        ),
        (("--base", "main"), {}, 2, "--base is the branch that proposals are for"),
        (
            ("--propose",),
            {"GITHUB_TOKEN": TOKEN, "GIT_AUTHOR_NAME": ""},
            9,
            "--propose: git knows no author for the commits",
        ),
        (
            ("--propose", "--base", "release"),
            {"GITHUB_TOKEN": TOKEN},
            3,
            "branch 'release' at origin: there is none",
        ),
    ],
)
def test_what_cannot_be_proposed_is_said_before_anything_is_tried(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    status: int,
    said: str,
    demo: Repository,
    forge: Forge,
) -> None:
    ran = run(demo, "nightly", *arguments, **environment)
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.splitlines()[0] == f"builder: error: {said}"
    assert forge.server.calls == []


def test_a_remote_at_no_known_host(demo: Repository) -> None:
    demo.git("config", "remote.origin.url", f"https://me:secret@other.test/{demo.remote.name}")
    ran = run(demo, "nightly", "--propose", GITHUB_TOKEN=TOKEN)
    assert ran.status == 3
    assert ran.err.splitlines()[0] == (
        "builder: error: --propose: nobody knows an API for pull requests at"
        " https://other.test/remote.git"
    )


def test_a_night_that_is_broken_off_leaves_its_summary(demo: Repository, tmp_path: Path) -> None:
    (demo.project / codec.WHEELS).write_text("version: 1\nwheels: 3\n")
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    ran = run(demo, "nightly", "--json", "--summary", str(summary))
    assert ran.status == 3
    assert json.loads(ran.out)["error"]["exit_status"] == 3
    assert summary.read_text() == "before\n## builder nightly\n\n**no pins**\n"
