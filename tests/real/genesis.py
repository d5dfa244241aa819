"""Genesis on the nearest real tree: the wheel of vLLM 0.20.2, which it was made for but for the
name. The flags are those of variants/tq3-mtp-genesis.yaml."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from builder.project import Project
from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError
from tests.real.workshop import Workshop

RECIPE = "tq3-mtp-genesis"
PIN = "genesis-v7.72.2"
WHEEL = "vllm-0.20.2"
TRIAL = "trial"
_UNTIL = timedelta(days=30)
_P65 = "GENESIS_ENABLE_P65_TURBOQUANT_SPEC_CG_DOWNGRADE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A project of its own: this one's pins, and one variant on a base made of the wheel."""

    builder: Builder
    environment: Mapping[str, str] = field(repr=False)

    @property
    def root(self) -> Path:
        return self.builder.project

    def write(self, *, speculative: str | None = "mtp", **flags: str | None) -> None:
        """Write the variant; ``flags`` change its environment, ``None`` takes one away."""
        step: dict[str, Any] = {"genesis": PIN, "platform": "cuda-8.6"}
        if speculative is not None:
            step["speculative"] = speculative
        env = {**self.environment, **flags}
        recipe = {
            "version": 1,
            "base": "scratch",
            "python": {
                "version": "3.12",
                "packages": "usr/local/lib/python3.12/dist-packages",
            },
            "steps": [{"wheels": [WHEEL]}, step],
            "image": {"env": {name: value for name, value in env.items() if value is not None}},
        }
        (self.root / "variants" / f"{TRIAL}.yaml").write_text(json.dumps(recipe, indent=1))

    def refusal(self, *arguments: str) -> CommandError | None:
        """How ``builder`` refuses; ``None`` where it does not."""
        try:
            self.builder.run(*arguments)
        except CommandError as error:
            return error
        return None


def proofs(shop: Workshop, claims: Claims) -> None:
    """All of them; where the repository or the wheel is not to be had, that is said."""
    shop.fetch_wheel(Project(ROOT).wheels[WHEEL])
    trial = _trial(shop)
    trial.write()
    refused = trial.refusal("build", TRIAL)
    if refused is not None and refused.status in (7, 8):
        claims.not_run("Genesis on vLLM 0.20.2", f"its repository is not to be had: {refused.said}")
        return
    _allowlist(trial, refused, claims)
    _bake(trial, claims)
    _hints(trial, claims)
    _lint(trial, claims)
    shop.drop(trial.builder)


def _trial(shop: Workshop) -> Trial:
    root = shop.scratch / "genesis-project"
    shutil.copytree(ROOT / "lockfiles", root / "lockfiles", ignore=lambda *_: ["images"])
    (root / "variants").mkdir()
    recipe = yaml.safe_load((ROOT / "variants" / f"{RECIPE}.yaml").read_text())
    builder = replace(shop.builder("genesis"), project=root)
    return Trial(builder=builder, environment=recipe["image"]["env"])


def _allowlist(trial: Trial, refused: CommandError | None, claims: Claims) -> None:
    """The base is not listed; a waiver lets it pass."""
    claims.holds(
        "vLLM 0.20.2 is on no list of Genesis 7b9fd319, and is refused with status 5",
        refused is not None and refused.status == 5,
        "" if refused is None else refused.said,
    )
    until = (datetime.now(UTC).date() + _UNTIL).isoformat()
    said = ("--reason", "the nearest tree that can be had", "--author", "make real")
    trial.builder.run("waive", TRIAL, *said, "--until", until)


def _bake(trial: Trial, claims: Claims) -> None:
    document, first = trial.builder.ask("build", TRIAL)
    step = document["images"][0]["layers"][-1]
    patches = {patch["name"]: patch for patch in step["patches"]}
    files = {path for patch in patches.values() for path in patch.get("files", ())}
    claims.equal("Genesis changes files of vLLM", len(files), 37)
    marked = sum(len(patch.get("files", ())) for patch in patches.values())
    claims.equal("and each patch that changes one leaves its marker there", marked, 60)
    count = {
        state: sum(patch["state"] == state for patch in patches.values())
        for state in ("applied", "runtime-only", "skipped")
    }
    claims.equal(
        "what became of its patches", count, {"applied": 48, "runtime-only": 7, "skipped": 64}
    )
    claims.holds("P67 is baked", patches["P67"]["state"] == "applied", patches["P67"]["files"])
    claims.holds("P67b is baked", patches["P67b"]["state"] == "applied")
    trial.builder.run("accept", TRIAL)
    start = time.perf_counter()
    again, _ = trial.builder.ask("build", TRIAL)
    seconds = time.perf_counter() - start
    claims.holds(
        "a second build runs nothing",
        again["images"][0]["layers"][-1]["cached"] is True,
        f"{seconds:.2f} s after {first:.2f} s",
    )
    claims.equal(
        "and gives the same layer", again["images"][0]["layers"][-1]["digest"], step["digest"]
    )


def _hints(trial: Trial, claims: Claims) -> None:
    """What is not said to the patch set is missed."""
    trial.write(speculative=None)
    refused = trial.refusal("build", TRIAL)
    claims.holds(
        "without the speculative hint the accepted outcomes are not met: status 4, P67 named",
        refused is not None and refused.status == 4 and "P67" in str(refused),
        "" if refused is None else refused.said,
    )


def _lint(trial: Trial, claims: Claims) -> None:
    trial.write(GENESIS_ENABLE_PN54="0", GENESIS_ENABLE_P4="1")
    refused = str(trial.refusal("build", TRIAL))
    claims.holds(
        "the flags of the archived deployment: GENESIS_ENABLE_PN54 is unknown, its real name told",
        "GENESIS_ENABLE_PN54_GDN_CONTIGUOUS_DEDUP" in refused,
    )
    claims.holds("and so is GENESIS_ENABLE_P4", "GENESIS_ENABLE_P4" in refused)
    trial.write(**{_P65: "1"})
    refused = str(trial.refusal("build", TRIAL))
    claims.holds("P65 with P67 is a conflict", "P65" in refused and "P67" in refused)
    trial.write()
