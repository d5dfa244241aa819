"""Bumps of real pins, on bases made of the real wheels, by the command line alone.

Three variants on one base: the marlin-pad files of club-3090 (said to be PR 40361), its rebase of
PR 42006 for vLLM 0.22.0, and Genesis. All pins are made by ``builder add``.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests

from tests.claims import Claims
from tests.commands import Builder, clean_environment, empty_store, mirrors
from tests.real.genesis_facts import DEPLOYED, DEPLOYMENTS, PATCH_SET, PINNED, copy
from tests.real.upstream import IMAGE, PYTHON, REGISTRY, RELEASES, Upstream

V7_72_5 = "fbecee31fd42fa7de9c2e2e8d780a28c01f46abb"
_KERNELS = "vllm/model_executor/kernels/linear/mixed_precision"
_MARLIN_PAD = "models/qwen3.6-27b/vllm/patches/vllm-marlin-pad"
_PR42006 = "models/gemma-4-31b/vllm/patches/vllm-pr42006-v0.22.0/pr42006-v0.22.0.patch"
_OVERLAY = {
    "marlin.py": "sha256:2bd1c3a7190012ea29bd70ac13103c19dee8ddbc2e9a4b5ef53cd54d190d5277",
    "MPLinearKernel.py": "sha256:76f481bfd9d81ab3a2484377b9d4afd849506297fbbd0a2b22303ad5bdf60f68",
}
_OURS_IN_0_22 = "48062920bb5cbc27"
"""How the sha256 of upstream's own MPLinearKernel.py begins in vLLM 0.22.0."""


def prove(there: Upstream, scratch: Path, claims: Claims) -> None:
    """Check it all, or say what is not at hand. ``scratch`` is an empty directory."""
    what = "bumps on bases made of real wheels"
    for repository in (DEPLOYMENTS, PATCH_SET):
        if copy(repository) is None:
            why = f"BUILDER_MIRRORS has no copy of {repository}"
            claims.not_run(what, why, wants=repository)
            return
    with claims.group(what):
        builder = _project(there, scratch)
        _marlin_pad(builder, claims)
        _pr42006(builder, claims)
        _genesis(builder, claims)
        _escrow(there, builder, scratch, claims)


def _project(there: Upstream, scratch: Path) -> Builder:
    root = scratch / "project"
    (root / "variants").mkdir(parents=True)
    hosts = {REGISTRY: there.registry.host}
    builder = Builder(
        store=empty_store(scratch / "store"),
        project=root,
        environment=clean_environment(BUILDER_MIRRORS=mirrors(hosts)),
    )
    files = [f"{_MARLIN_PAD}/{name}" for name in _OVERLAY]
    builder.run("add", "vllm", RELEASES[0].nightly, "--image", IMAGE, "--name", "base")
    builder.run("add", "source", DEPLOYMENTS, *files, _PR42006, "--at", DEPLOYED, "--name", "club")
    builder.run("add", "pull", "42006", "--published", "club", _PR42006)
    builder.run("add", "genesis", PINNED, "--name", "genesis", "--ref", "refs/heads/dev")
    placed = [
        {
            "from": f"{_MARLIN_PAD}/{name}",
            "to": f"{_KERNELS}/{name}",
            "replaces": digest,
        }
        for name, digest in _OVERLAY.items()
    ]
    _variant(root, "marlin-pad", {"source": "club", "name": "marlin-pad", "files": placed})
    _variant(root, "pr42006", {"pull": "pr42006"})
    _variant(root, "with-genesis", {"genesis": "genesis", "platform": "cuda-8.6"})
    return builder


def _variant(root: Path, name: str, step: Mapping[str, Any]) -> None:
    recipe = {"version": 1, "base": {"pin": "base"}, "python": PYTHON, "steps": [step]}
    (root / "variants" / f"{name}.yaml").write_text(json.dumps(recipe, indent=1))


def _tried(builder: Builder, variant: str, *words: str) -> dict[str, Any]:
    """The report of a bump that writes nothing, about one variant."""
    done = builder.run(
        "bump", *words, "--variant", variant, "--dry-run", "--allow-failing", "--json"
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _marlin_pad(builder: Builder, claims: Claims) -> None:
    for release in RELEASES:
        report = _tried(builder, "marlin-pad", "vllm", "base", release.nightly)
        (step,) = report["variants"][0]["steps"]
        error = step["error"]
        said = [line.partition(":")[0] for line in error["findings"]]
        if release.version != "0.22.0":
            claims.equal(
                f"marlin-pad on vLLM {release.version}: both files are already upstream",
                (step["verdict"], said, report["variants"][0]["passes"]),
                ("already-upstream", ["already-upstream"] * 2, False),
            )
            continue
        claims.equal(
            "marlin-pad on vLLM 0.22.0: marlin.py is upstream's, the other one is not",
            (step["verdict"], said),
            ("refused", ["already-upstream", "refused"]),
        )
        finding = error["findings"][1]
        claims.holds(
            "and would undo upstream's later work",
            f"sha256:{_OURS_IN_0_22}" in finding
            and _OVERLAY["MPLinearKernel.py"] in finding
            and "undo what upstream changed" in error["hint"],
            finding,
        )


def _pr42006(builder: Builder, claims: Claims) -> None:
    for version, offset in (("0.22.0", 12), ("0.20.2", -19)):
        release = next(item for item in RELEASES if item.version == version)
        report = _tried(builder, "pr42006", "vllm", "base", release.nightly)
        (step,) = report["variants"][0]["steps"]
        moved = {
            item["path"].rpartition("/")[2]: found
            for item in step["files"]
            if (found := [n for n in item.get("offsets", []) if n])
        }
        claims.holds(
            f"PR 42006 on vLLM {version}: applies with an offset of {offset} lines",
            step["verdict"] == "applied-with-offset"
            and {n for found in moved.values() for n in found} == {offset},
            str(moved or step["error"]),
        )


def _genesis(builder: Builder, claims: Claims) -> None:
    report = _tried(builder, "with-genesis", "genesis", V7_72_5)
    (move,) = report["moves"]
    claims.equal(
        "Genesis 7b9fd319 to fbecee31: commits between them, and lost ones",
        (len(move["commits"]), len(move["lost_commits"])),
        (11, 0),
    )
    claims.holds(
        "it is told that only pull requests lead there",
        any("refs/pull/25/head" in line for line in move["remarks"]),
        "; ".join(move["remarks"]),
    )
    claims.holds(
        "and that its allowlist is the same",
        any("the same allowlist" in line for line in report["remarks"]),
        "; ".join(report["remarks"]),
    )
    refused = [item["message"] for item in report["variants"][0]["refusals"]]
    claims.holds(
        "which does not list vLLM 0.20.2",
        any("does not list vLLM 0.20.2" in line for line in refused),
        "; ".join(refused),
    )
    claims.equal(
        "its steps are tried all the same",
        [step["verdict"] for step in report["variants"][0]["steps"]],
        ["applied"],
    )


def _escrow(there: Upstream, builder: Builder, scratch: Path, claims: Claims) -> None:
    """The base is kept, then upstream deletes it. A machine that has nothing still builds."""
    built = _image(builder)
    seconds = builder.run("escrow", "pr42006", "--to", "oci:kept").seconds
    digest = there.manifests["0.20.2"].digest
    url = f"http://{there.registry.host}/v2/vllm/vllm-openai/manifests/{digest}"
    claims.equal("upstream deletes the base", requests.delete(url, timeout=30).status_code, 202)
    other = replace(builder, store=empty_store(scratch / "another-machine"))
    claims.equal(f"a build from the copy, kept in {seconds:.1f} s", _image(other), built)
    lock = (builder.project / "lockfiles/vllm.yaml").read_text()
    claims.holds("the lock says where it is kept", "layout: kept" in lock, "oci:kept")


def _image(builder: Builder) -> str:
    (image,) = json.loads(builder.run("build", "pr42006", "--json").stdout)["images"]
    digest: str = image["digest"]
    return digest
