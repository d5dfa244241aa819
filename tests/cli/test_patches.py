"""``builder patches``: what became of each patch of a patch set, and whether it was asked for."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from builder import canonical, notes
from builder.build_record import Record, RecordedStep
from builder.cli.patches import _text
from builder.digest import Digest
from builder.genesis.facts import read_facts
from builder.outcome import Output, PatchOutcome, PatchState
from builder.patched import Patched, patched
from tests.cli.conftest import DEMO, Builder
from tests.memory_store import MemoryStore

TREE = "9" * 40
BELOW = "usr/lib/python3.12/site-packages/vllm"
DISPATCHER = b"""\
PATCH_REGISTRY = {
    "P1": {"title": "one", "env_flag": "GENESIS_ENABLE_P1_ONE"},
    "P2": {"title": "two", "env_flag": "GENESIS_ENABLE_P2", "default_on": True},
    "P3": {"title": "three", "env_flag": "GENESIS_ENABLE_P3"},
    "P4": {"title": "four", "env_flag": "GENESIS_ENABLE_P4"},
}
"""


def outcome(name: str, state: str, reason: str = "", *files: str) -> PatchOutcome:
    paths = tuple(f"{BELOW}/{file}" for file in files)
    return PatchOutcome(name=name, state=PatchState(state), reason=reason, files=paths)


def record(*patches: PatchOutcome, **environment: str) -> Record:
    """A build of one patch set."""
    step = RecordedStep(
        name="set",
        kind="genesis",
        pins=("genesis set",),
        derivation=Digest.of(b"it"),
        inputs={"payload": TREE, "environment": environment},
        output=Output(layer=None, patches=patches),
    )
    return Record(
        variant="it",
        platform="linux/amd64",
        digest=Digest.of(b"image"),
        base=None,
        settings={},
        steps=(step,),
    )


@pytest.fixture
def store() -> MemoryStore:
    """A store that knows the registry of the patch set."""
    made = MemoryStore()
    facts = read_facts("vllm/_genesis", {"guards.py": b"", "dispatcher.py": DISPATCHER})
    made.take_note(notes.FACTS, TREE, canonical.encode(facts.record()))
    return made


def asked(items: tuple[Patched, ...]) -> dict[str, Any]:
    return {item.outcome.name: (item.on, item.by, item.lost) for item in items}


def test_a_patch_that_a_flag_switches_on_and_that_did_nothing_is_lost(store: MemoryStore) -> None:
    built = record(
        outcome("P1", "skipped", "the anchor is gone"),
        outcome("P2", "skipped", "vLLM has it"),
        outcome("P3", "skipped", "opt-in"),
        outcome("P4", "runtime-only", "hook registered"),
        GENESIS_ENABLE_P1_ONE="1",
        GENESIS_ENABLE_P3="0",
        GENESIS_ENABLE_P4="yes",
    )
    assert asked(patched(built, store)) == {
        "P1": (True, "GENESIS_ENABLE_P1_ONE", True),
        "P2": (True, None, False),
        "P3": (False, None, False),
        "P4": (True, "GENESIS_ENABLE_P4", False),
    }


def test_one_that_does_the_work_of_two_is_on_for_either(store: MemoryStore) -> None:
    built = record(
        outcome("P3/p4", "skipped"), outcome("P9", "applied", "", "a"), GENESIS_ENABLE_P4="1"
    )
    assert asked(patched(built, store)) == {
        "P3/p4": (True, "GENESIS_ENABLE_P4", True),
        "P9": (None, None, False),
    }


@pytest.mark.parametrize("note", [None, b"{", b'{"format": 0}'])
def test_without_a_registry_nobody_knows_what_was_asked_for(note: bytes | None) -> None:
    store = MemoryStore()
    if note is not None:
        store.take_note(notes.FACTS, TREE, note)
    built = record(outcome("P1", "skipped"), GENESIS_ENABLE_P1_ONE="1")
    assert asked(patched(built, store)) == {"P1": (None, None, False)}


def test_people_read_files_below_one_directory_or_the_reason(store: MemoryStore) -> None:
    built = record(
        outcome("P1", "applied", "2 files", "v1/engine/core.py", "v1/worker.py"),
        outcome("P2", "runtime-only", "hook\n registered"),
        outcome("P3", "skipped", "opt-in: \x1b[1mset it"),
        outcome("P4", "skipped", "the anchor is gone"),
        outcome("P9", "skipped"),
        GENESIS_ENABLE_P1_ONE="1",
        GENESIS_ENABLE_P4="1",
    )
    assert _text(built, patched(built, store)) == (
        f"set: files in /{BELOW}/v1\n"
        "PATCH  ON       STATE         FILES, OR WHY NONE\n"
        "P1     flag     applied       engine/core.py, worker.py\n"
        "P2     default  runtime-only  hook registered\n"
        "P3     -        skipped       opt-in: [1mset it\n"
        "P4     flag     skipped       the anchor is gone\n"
        "P9     ?        skipped\n"
        "switched on, and nothing came of it: P4"
    )


def test_a_variant_without_a_patch_set_says_so(builder: Builder) -> None:
    digest = builder("build", "hello", "--json").json["images"][0]["digest"]
    for name in ("hello", digest):
        ran = builder("patches", name)
        assert (ran.status, ran.out, ran.err) == (0, "hello has no patch set\n", "")
    assert builder("patches", "hello", "--json").json == {
        "variant": "hello",
        "image": digest,
        "patches": [],
    }


def test_a_variant_that_was_not_built_has_none_to_show(builder: Builder, project: Path) -> None:
    ran = builder("patches", "hello")
    assert (ran.status, ran.out) == (3, "")
    assert ran.err == (
        "builder: error: variant 'hello' was not built for linux/amd64 yet\n"
        "  hint: builder build hello\n"
    )
    assert builder("patches", "sha256:12").status == 2


def test_a_build_tells_which_flags_came_to_nothing_when_it_finds_out(
    builder: Builder, demo: Path
) -> None:
    shutil.copy(DEMO / "builder.yaml", demo)
    variant = demo / "variants/demo.yaml"
    text = variant.read_text()
    variant.write_text(
        text.replace("    speculative: mtp\n", "").replace(
            '    GENESIS_ENABLE_D4_BATCH_REPORT: "1"\n', ""
        )
    )
    first = builder("-C", demo, "build", "demo")
    again = builder("-C", demo, "build", "demo")

    told = [line for line in first.err.splitlines() if "nothing came of it" in line]
    (line,) = told
    assert line == (
        "builder: step demo-patches: D2 is switched on by GENESIS_ENABLE_D2_MTP_BATCH, and nothing"
        " came of it: no speculative decoding"
    )
    assert (first.status, again.status) == (0, 0)
    assert "nothing came of it" not in again.err


def test_whatever_builds_first_tells_it_also_where_the_outcome_is_refused(
    builder: Builder, demo: Path
) -> None:
    shutil.copy(DEMO / "builder.yaml", demo)
    assert builder("-C", demo, "accept", "demo").status == 0
    variant = demo / "variants/demo.yaml"
    variant.write_text(variant.read_text().replace("    speculative: mtp\n", ""))
    refused = builder("-C", demo, "build", "demo")
    assert refused.status == 4
    assert "D2 is switched on by GENESIS_ENABLE_D2_MTP_BATCH, and nothing came of it" in refused.err
    shutil.rmtree(demo / "lockfiles/images")
    variant.write_text(variant.read_text().replace("cuda-8.6", "cuda-8.9"))
    accepted = builder("-C", demo, "accept", "demo")
    assert accepted.status == 0
    assert "D2 is switched on by GENESIS_ENABLE_D2_MTP_BATCH" in accepted.err
