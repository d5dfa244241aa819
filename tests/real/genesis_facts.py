"""Facts of the real patch set, and a lint of the deployments that are published with it.

Both repositories are read from local copies that ``BUILDER_MIRRORS`` names, with git alone: nothing
of this project's git adapter is asked. Without a copy, what cannot be checked is said.
"""

import ast
import io
import os
import re
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from builder import canonical
from builder.adapters.git_source import Kind, find
from builder.cli import show
from builder.genesis import ERAS, Facts, Listing, Rule, era_of, judge, lint, read_facts
from tests.claims import Claims
from tests.commands import clean_environment, run

PATCH_SET = "https://github.com/Sandermage/genesis-vllm-patches"
DEPLOYMENTS = "https://github.com/noonghunna/club-3090"
DEPLOYED = "4a29ab57d42a1d587de1042fa5dfd9535f94a063"
PINNED = "7b9fd3194ee6efa1644973383cd44ee5604a5d85"

V7, V8, V12 = (era.payload for era in ERAS)
ALLOWLISTS = {
    # commit: when, payload, presence, good, pending, patches, on by default, naming a pull request
    "278b10e30ff336a73ef66832e1c65105252143b5": ("v7.10", V7, "no-list", 0, 0, 0, 0, 0),
    "a8c202d83ab8726f97c8d5afc16cc7a1166ba500": ("v7.51", V7, "no-list", 0, 0, 26, 0, 14),
    "2db18df4bc3abd4eb58a9b2e0342082fa7012c64": ("v7.69", V7, "no-list", 0, 0, 100, 29, 41),
    PINNED: ("v7.72.2", V7, "present", 2, 0, 126, 32, 53),
    "fbecee31fd42fa7de9c2e2e8d780a28c01f46abb": ("v7.72.5", V7, "present", 2, 0, 126, 32, 53),
    "776aa32b1f5b530e6671a23219c9b2bd3197430e": ("v8 gap", V8, "module-missing", 0, 0, 151, 32, 58),
    "4d0c399e2407caa3ee1b21cfb8cfbbb84a6f4616": ("v8", V8, "present", 5, 0, 151, 32, 58),
    "f0e86556f1bc8269b1a188430d638d2873f5126a": ("v11", V8, "present", 15, 8, 229, 51, 89),
    "7aa66f9ac6bc22b8e0d71cff75bf26ebbbd5ae97": ("v12.0.0", V12, "present", 33, 4, 321, 57, 158),
    "126e1807eb345b86711d527a43ab032d33b15507": ("v12+", V12, "present", 37, 4, 321, 57, 158),
}  # fmt: skip

_COMPOSES = "models/qwen3.6-27b/vllm/compose/_archive"
_MTP = ("0.20.2rc1.dev9+g01d4d1ad3", "01d4d1ad375dc5854779c593eee093bcebb0cada")
_CLEAN = ("0.20.2rc1.dev371+gbf610c2f5", "bf610c2f56764e1b30bc6065f4ceace3d6e59036")

NAMES = ("KNOWN_GOOD_VLLM_PINS", "PROMOTION_PENDING_VLLM_PINS", "PATCH_REGISTRY")

_PN54 = "unknown-flag GENESIS_ENABLE_PN54"
_MOST = (
    *("unknown-flag GENESIS_ENABLE_P4", _PN54),
    *("retired P61", "retired PN13", "superseded P94"),
)
LINTED: Mapping[str, tuple[tuple[str, str], tuple[str, ...]]] = {
    "dual/autoround-int4/tq3-mtp-genesis": (_MTP, _MOST),
    "dual/autoround-int4/turbo": (_MTP, _MOST),
    "single/autoround-int4/bounded-thinking": (_MTP, _MOST),
    "single/autoround-int4/long-text": (_MTP, (*_MOST, "conflict PN32, P28")),
    "single/autoround-int4/long-text-no-mtp": (_MTP, (*_MOST, "conflict PN32, P28")),
    "single/autoround-int4/long-vision": (_MTP, _MOST),
    "single/autoround-int4/tools-text": (_CLEAN, (_PN54, "retired PN13", "superseded P94")),
    "single/autoround-int4/tq3-mtp": (_MTP, (_PN54,)),
}  # fmt: skip
"""Each archived deployment that switches patches on: its base, and what is wrong with it."""


def prove(claims: Claims) -> None:
    """Check all claims on the real repositories, or say what is not checked."""
    if (patch_set := copy(PATCH_SET)) is None:
        why = f"BUILDER_MIRRORS has no copy of {PATCH_SET}"
        claims.not_run("facts of the real patch set", why, wants=PATCH_SET)
        return
    _eras(claims, patch_set)
    facts = _pinned(claims, patch_set)
    if (deployments := copy(DEPLOYMENTS)) is None:
        why = f"BUILDER_MIRRORS has no copy of {DEPLOYMENTS}"
        claims.not_run("a lint of the published deployments", why, wants=DEPLOYMENTS)
        return
    _deployments(claims, deployments, facts)


def _eras(claims: Claims, repository: Path) -> None:
    rows = []
    for commit, (when, payload, *wanted) in ALLOWLISTS.items():
        files = _files(repository, commit, payload)
        start = time.perf_counter()
        facts = read_facts(payload, files)
        milliseconds = (time.perf_counter() - start) * 1000
        got = [
            str(facts.allowlist.presence),
            len(facts.allowlist.good),
            len(facts.allowlist.pending),
            len(facts.patches),
            sum(patch.default_on for patch in facts.patches),
            sum(bool(patch.pulls) for patch in facts.patches),
        ]
        claims.count(f"{commit}: {wanted}, got {got}", got == wanted)
        claims.count(f"{commit}: what python reads itself", _by_python(files, payload) == got[1:4])
        size = len(canonical.encode(facts.record()))
        cells = [when, commit[:9], payload, *map(str, got), str(len(facts.names)), str(size)]
        rows.append((*cells, f"{milliseconds:.0f}"))
    headers = ("RELEASE", "COMMIT", "PAYLOAD", "ALLOWLIST", "GOOD", "PENDING", "PATCHES")
    print(show.table((*headers, "DEFAULT", "PULLS", "NAMES", "NOTE", "MS"), rows), flush=True)


def _pinned(claims: Claims, repository: Path) -> Facts:
    """The facts of the commit that the deployments pin."""
    era = era_of(V7)
    assert era is not None
    facts = read_facts(V7, _files(repository, PINNED, V7))
    applied = f"{era.apply.replace('.', '/')}.py"
    paths = _paths(repository, PINNED)
    hooked = f"{era.plugins[0]}/{era.hook.partition(':')[0]}/__init__.py"
    claims.holds(
        "its era says what applies it, and where its plugin is", {applied, hooked} <= paths
    )
    release = judge(facts.allowlist, version="0.20.2", commit=None)
    claims.holds(
        "the release 0.20.2 is not listed",
        release.listing is Listing.NOT_LISTED,
        f"nearest: {', '.join(release.nearest)}",
    )
    flags = {patch.id: patch.flag or "" for patch in facts.patches}
    found = lint({flags["P65"]: "1", flags["P67"]: "1"}, facts, version="0.20.2")
    claims.equal(
        "P65 with P67 is a conflict",
        [item.subject for item in found if item.rule is Rule.CONFLICT],
        ["P65, P67", "P65, P67b"],
    )
    return facts


def _deployments(claims: Claims, repository: Path, facts: Facts) -> None:
    slowest = 0.0
    for name, ((version, commit), wanted) in LINTED.items():
        raw = _git(repository, "show", f"{DEPLOYED}:{_COMPOSES}/{name}.yml")
        environment = _environment(yaml.safe_load(raw))
        judgement = judge(facts.allowlist, version=version, commit=commit)
        start = time.perf_counter()  # not what is imported for the first of all questions
        judge(facts.allowlist, version=version, commit=commit)
        found = lint(environment, facts, version=version)
        slowest = max(slowest, time.perf_counter() - start)
        got = sorted(f"{item.rule} {item.subject}" for item in found)
        claims.equal(f"what is wrong with {name}", "; ".join(got), "; ".join(sorted(wanted)))
        listing = Listing.NOT_LISTED if version == _CLEAN[0] else Listing.LISTED
        claims.equal(f"its base {version}", str(judgement.listing), str(listing))
    claims.noted(
        "allowlist and lint take under a millisecond when the facts are kept",
        slowest < 0.001,
        f"{slowest * 1000:.2f} ms at most",
    )


def _by_python(files: Mapping[str, bytes], payload: str) -> list[int]:
    """Lengths of the two lists and of the registry, by Python's own reader of literals."""
    era = era_of(payload)
    assert era is not None
    found: dict[str, int] = {}
    for path in (*era.guards, *era.registry):
        for node in ast.parse(files.get(path, b"")).body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as literal):
                    if name in NAMES:
                        found[name] = len(ast.literal_eval(literal))
                case _:
                    pass
    return [found.get(name, 0) for name in NAMES]


def _environment(compose: Any) -> dict[str, str]:
    """What the service sets, with the defaults of its placeholders."""
    (service,) = compose["services"].values()
    pairs = (entry.partition("=") for entry in service["environment"])
    return {
        name: re.sub(r"\$\{\w+:-([^{}]*)\}", r"\1", text) for name, equals, text in pairs if equals
    }


def copy(url: str) -> Path | None:
    """Where ``BUILDER_MIRRORS`` says that a local copy of a repository is."""
    pairs = (item.partition("=") for item in os.environ.get("BUILDER_MIRRORS", "").split())
    source = find(url, {prefix: target for prefix, _, target in pairs if "/" in prefix})
    return Path(source.location) if source.local and source.kind is Kind.REPOSITORY else None


def lacking() -> str | None:
    """A repository of which ``BUILDER_MIRRORS`` has no copy."""
    return next((url for url in (PATCH_SET, DEPLOYMENTS) if copy(url) is None), None)


def _git(repository: Path, *arguments: str) -> bytes:
    given = ["git", f"--git-dir={repository}", *arguments]
    return run(given, environment=clean_environment()).stdout


def _paths(repository: Path, commit: str) -> frozenset[str]:
    return frozenset(_git(repository, "ls-tree", "-r", "--name-only", commit).decode().splitlines())


def _files(repository: Path, commit: str, directory: str) -> dict[str, bytes]:
    packed = _git(repository, "archive", commit, directory)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        opened = ((item.name, archive.extractfile(item)) for item in archive if item.isfile())
        return {name.removeprefix(f"{directory}/"): file.read() for name, file in opened if file}
