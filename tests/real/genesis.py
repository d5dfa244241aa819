"""Genesis on the nearest real tree: the wheel of vLLM 0.20.2, which it was made for but for the
name. The flags are those of variants/tq3-mtp-genesis.yaml."""

import json
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from builder import notes
from builder.adapters.store import FileStore
from builder.cli.settings import Settings
from builder.digest import Digest
from builder.errors import GoneError, NetworkError
from builder.project import Project
from tests.adapters.sandbox.image import system
from tests.bench.patch_set import PatchSet
from tests.claims import Claims
from tests.commands import ROOT, CommandError
from tests.flow.images import Layer as Packed
from tests.flow.images import image, push
from tests.plugins.requires import missing
from tests.real.genesis_eras import eras
from tests.real.genesis_facts import lacking
from tests.real.trial import BASE, TRIAL, WHEEL, Trial
from tests.real.workshop import Workshop
from tests.services_docker import running_dockerd

RECIPE = "tq3-mtp-genesis"
_UNTIL = timedelta(days=30)
_P65 = "GENESIS_ENABLE_P65_TURBOQUANT_SPEC_CG_DOWNGRADE"


def proofs(shop: Workshop, claims: Claims) -> None:
    """All of them; where the repository or the wheel is not to be had, that is said."""
    claim = "Genesis 7b9fd319 on vLLM 0.20.2"
    try:
        shop.fetch_wheel(Project(ROOT).wheels[WHEEL])
    except (GoneError, NetworkError) as error:
        claims.not_run(claim, f"the wheel is not to be had: {error}")
        return
    trial = _trial(shop)
    trial.write()
    refused = trial.refusal()
    if refused is not None and refused.status in (GoneError.exit_status, NetworkError.exit_status):
        why = f"its repository is not to be had: {refused.said}"
        claims.not_run(claim, why, wants=lacking())
        return
    with claims.group(claim):
        _allowlist(trial, refused, claims)
        _in_a_container(trial, _bake(trial, claims), claims)
        _hints(trial, claims)
        _lint(trial, claims)
        eras(trial, claims)
    shop.drop(trial.builder)


def _trial(shop: Workshop) -> Trial:
    root = shop.scratch / "genesis-project"
    shutil.copytree(ROOT / "lockfiles", root / "lockfiles", ignore=lambda *_: ["images"])
    (root / "variants").mkdir()
    recipe = yaml.safe_load((ROOT / "variants" / f"{RECIPE}.yaml").read_text())
    builder = replace(shop.builder("genesis"), project=root)
    return Trial(shop=shop, builder=builder, environment=recipe["image"]["env"])


def waived(shop: Workshop) -> Trial:
    """A trial whose base may pass.

    Raises:
        BuilderError: The wheel is not to be had.
    """
    shop.fetch_wheel(Project(ROOT).wheels[WHEEL])
    trial = _trial(shop)
    trial.write()
    _waive(trial)
    return trial


def baked(trial: Trial) -> PatchSet:
    """For measuring: built in this process."""
    settings = Settings(
        directory=trial.root, store=trial.builder.store, environment=trial.builder.environment
    )
    return PatchSet.make(settings, TRIAL)


def _allowlist(trial: Trial, refused: CommandError | None, claims: Claims) -> None:
    """The base is not listed; a waiver lets it pass."""
    claims.holds(
        "vLLM 0.20.2 is on no list of Genesis 7b9fd319, and is refused with status 5",
        refused is not None and refused.status == 5,
        "" if refused is None else refused.said,
    )
    _waive(trial)


def _waive(trial: Trial) -> None:
    until = (datetime.now(UTC).date() + _UNTIL).isoformat()
    said = ("--reason", "the nearest tree that can be had", "--author", "make real")
    trial.builder.run("waive", TRIAL, *said, "--until", until)


def _bake(trial: Trial, claims: Claims) -> str:
    """Bake, and hold what came of it to what is known of it; the digest of the layer."""
    trial.builder.run("build", BASE)
    document, first = trial.builder.ask("build", TRIAL)
    claims.holds("Genesis is baked in under 5 s, the base being there", first < 5, f"{first:.2f} s")
    for row in baked(trial).rows(claims, 3, what="Genesis 7b9fd319", times_own=1.5):
        row.judge(claims, times_count=False)
    step = document["images"][0]["layers"][-1]
    patches = {patch["name"]: patch for patch in step["patches"]}
    summary = trial.builder.run("build", TRIAL).text
    files = {path for patch in patches.values() for path in patch.get("files", ())}
    claims.equal("Genesis changes files of vLLM", len(files), 37)
    claims.holds("and leaves 60 markers in them", "37 files, 60 markers" in summary)
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
    return str(step["digest"])


def _in_a_container(trial: Trial, layer: str, claims: Claims) -> None:
    """The same in a container of a real engine, in a store that has nothing of it."""
    claim = "a container of the Docker Engine gives the same layer"
    if why := missing("dockerd", "root"):
        claims.not_run(claim, why)
        return
    made = image(Packed(system(), "tar"))
    python = f"{trial.shop.second.host}/sandbox/python"
    push(made, f"{python}:t")
    settings = {"use": "docker-engine", "image": f"{python}@{made.digest}"}
    file = trial.root / "builder.yaml"
    file.write_text(json.dumps({"version": 1, "sandbox": settings}))
    other = trial.shop.builder("genesis-in-a-container")
    place = trial.shop.scratch / "engine"
    place.mkdir()
    with running_dockerd(place) as host:
        environment = {**other.environment, "DOCKER_HOST": host}
        other = replace(other, project=trial.root, environment=environment)
        document, seconds = other.ask("build", TRIAL)
    file.unlink()
    step = document["images"][0]["layers"][-1]
    claims.equal(f"{claim} ({seconds:.1f} s, the wheel unpacked with it)", step["digest"], layer)
    claims.equal("and its record says so", _sandbox(other.store, document), "docker-engine")
    trial.shop.drop(other)


def _sandbox(store: Path, document: dict[str, Any]) -> str | None:
    """Where the last step of a build ran, by its record."""
    digest = Digest.parse(document["images"][0]["digest"])
    record = json.loads(FileStore(store).note(notes.IMAGE, digest.hex) or b"{}")
    sandbox: str | None = record["steps"][-1]["output"]["sandbox"]
    return sandbox


def _hints(trial: Trial, claims: Claims) -> None:
    """What is not said to the patch set is missed."""
    trial.write(speculative=None)
    refused = trial.refusal()
    claims.holds(
        "without the speculative hint the accepted outcomes are not met: status 4, P67 named",
        refused is not None and refused.status == 4 and "P67" in str(refused),
        "" if refused is None else refused.said,
    )


def _lint(trial: Trial, claims: Claims) -> None:
    trial.write(GENESIS_ENABLE_PN54="0", GENESIS_ENABLE_P4="1")
    refused = str(trial.refusal())
    claims.holds(
        "the flags of the archived deployment: GENESIS_ENABLE_PN54 is unknown, its real name told",
        "GENESIS_ENABLE_PN54_GDN_CONTIGUOUS_DEDUP" in refused,
    )
    claims.holds("and so is GENESIS_ENABLE_P4", "GENESIS_ENABLE_P4" in refused)
    trial.write(**{_P65: "1"})
    refused = str(trial.refusal())
    claims.holds("P65 with P67 is a conflict", "P65" in refused and "P67" in refused)
    trial.write()
