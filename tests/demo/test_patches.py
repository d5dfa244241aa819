"""The demo's patch set: what it holds, and that it has every trap that such a patch set has."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builder.lock.model import GenesisPin, Subtree
from builder.project import Project
from tests.adapters.git_world import git
from tests.demo.machine import ROOT, Machine, repository

pytestmark = pytest.mark.requires("git")

SECOND = "1a62f7ce434ae78b04eb968be74baa32b4271cd8"
"""The other commit, for a bump."""
BATCH = {"GENESIS_ENABLE_D2_MTP_BATCH": "1"}
SPECULATIVE = {"GENESIS_FORCE_SPEC_DECODE": "mtp"}
ALONE = {
    "D1": "applied",
    "D2": "skipped",
    "D3": "skipped",
    "D4": "skipped",
    "D5": "skipped",
    "D6": "applied",
    "D7": "applied",
}
"""The outcomes where the environment says nothing."""


@pytest.fixture(name="pin")
def _pin() -> GenesisPin:
    """The pin of the lock."""
    return Project(ROOT).genesis["demo-patches"]


def literal(path: Path, repository: Path, commit: str, name: str) -> Any:
    """The value of a module's assignment, which nothing had to run for."""
    source = git(repository, "show", f"{commit}:{path}")
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            assert node.value is not None
            return ast.literal_eval(node.value)
    raise LookupError(name)


def test_the_lock_names_what_the_stream_holds(pin: GenesisPin, tmp_path: Path) -> None:
    patches = repository(tmp_path)

    def tree(commit: str, path: str = "") -> str:
        return git(patches, "rev-parse", f"{commit}:{path}" if path else f"{commit}^{{tree}}")

    commit = str(pin.commit)
    assert str(pin.tree) == tree(commit)
    for part in (pin.payload, pin.plugin):
        assert isinstance(part, Subtree)
        assert str(part.tree) == tree(commit, part.path)
    holding = git(patches, "for-each-ref", "--format=%(refname)", "--contains", commit)
    assert tuple(holding.split()) == pin.reachable == ("refs/pull/1/head",)
    assert pin.follows is not None
    assert git(patches, "rev-parse", pin.follows) == SECOND


def test_both_versions_list_the_stand_in(pin: GenesisPin, tmp_path: Path) -> None:
    patches = repository(tmp_path)
    guards = Path("vllm/_genesis/guards.py")
    version = Project(ROOT).wheels["demo-vllm"].version
    for commit in (str(pin.commit), SECOND):
        assert version in literal(guards, patches, commit, "KNOWN_GOOD_VLLM_PINS")
    pending = literal(guards, patches, str(pin.commit), "PROMOTION_PENDING_VLLM_PINS")
    assert pending == ("0.23.0+demo",)


def test_the_registry_is_literal_and_names_every_patch(pin: GenesisPin, tmp_path: Path) -> None:
    dispatcher = Path("vllm/_genesis/dispatcher.py")
    registry = literal(dispatcher, repository(tmp_path), str(pin.commit), "PATCH_REGISTRY")
    assert {name for name, entry in registry.items() if entry["default_on"]} == {"D1", "D6", "D7"}
    assert registry["D2"]["conflicts_with"] == ["D3"]
    assert registry["D4"]["requires_patches"] == ["D2"]
    assert registry["D5"]["lifecycle"] == "retired"
    assert registry.keys() == ALONE.keys()


@pytest.mark.parametrize(
    ("world", "environment", "outcomes"),
    [
        pytest.param({}, {}, {}, id="nothing is said"),
        pytest.param({}, BATCH, {}, id="on, and no speculative decoding to be seen"),
        pytest.param({}, BATCH | SPECULATIVE, {"D2": "applied"}, id="on, and the hint"),
        pytest.param({"capability": None}, {}, {"D7": "skipped"}, id="no CUDA"),
        pytest.param({"capability": (7, 5)}, {}, {"D7": "skipped"}, id="an old card"),
        pytest.param({}, {"GENESIS_ENABLE_D5_THREE_BIT_KV": "1"}, {}, id="on, and retired"),
        pytest.param({}, {"GENESIS_ENABLE_D1_KV_SIZE_CHECK": "0"}, {"D1": "skipped"}, id="off"),
    ],
)
def test_hidden_inputs_decide_what_is_applied(
    world: Mapping[str, Any],
    environment: Mapping[str, str],
    outcomes: Mapping[str, str],
    pin: GenesisPin,
    tmp_path: Path,
) -> None:
    ended = Machine.make(tmp_path, commit=str(pin.commit), **world).apply(**environment)
    expected = {**ALONE, **outcomes}
    assert ended.outcomes == expected
    counts = [list(expected.values()).count(word) for word in ("applied", "skipped")]
    assert f"Genesis Results: {counts[0]} applied, {counts[1]} skipped, 0 failed" in ended.said
    assert ended.status == 0


def test_the_command_line_is_a_hint_too(pin: GenesisPin, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    ended = machine.apply("--speculative-config", '{"method": "mtp"}', **BATCH)
    assert ended.outcomes["D2"] == "applied"


def test_the_card_decides_the_text(pin: GenesisPin, tmp_path: Path) -> None:
    texts = []
    for capability in ((8, 6), (9, 0)):
        machine = Machine.make(
            tmp_path / f"{capability}", commit=str(pin.commit), capability=capability
        )
        machine.apply()
        texts.append(machine.sources()["vllm/attention/kv_cache.py"])
    assert [b"fp8_e4m3" in text for text in texts] == [False, True]


def test_without_torch_a_patch_fails_and_the_others_are_written(
    pin: GenesisPin, tmp_path: Path
) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit), torch=False)
    ended = machine.apply()
    assert ended.outcomes == ALONE | {"D6": "failed"}
    assert ended.status == 1
    assert machine.changed() == ["vllm/attention/kv_cache.py"]


def test_a_conflict_is_said_and_both_are_written(pin: GenesisPin, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    ended = machine.apply(GENESIS_ENABLE_D3_MTP_ONE_TOKEN="1", **BATCH, **SPECULATIVE)
    assert ended.status == 0
    assert "D2 conflicts with D3" in ended.said
    text = machine.sources()["vllm/spec_decode/mtp.py"].decode()
    assert text.startswith(
        "# [Genesis wiring marker: Genesis D3 MTP drafts one token v1]\n"
        "# [Genesis wiring marker: Genesis D2 MTP drafts in whole batches v1]\n"
    )


def test_an_unmet_requirement_is_said_and_the_package_is_broken(
    pin: GenesisPin, tmp_path: Path
) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    ended = machine.apply(GENESIS_ENABLE_D4_BATCH_REPORT="1")
    assert ended.status == 0
    assert "D4 requires D2" in ended.said
    assert "cannot import name 'whole_batches'" in machine.run("vllm").said


def test_the_patched_package_runs_with_the_payload(pin: GenesisPin, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    machine.apply(GENESIS_ENABLE_D4_BATCH_REPORT="1", **BATCH, **SPECULATIVE)
    ran = machine.run("vllm")
    assert ran.status == 0
    assert "3 draft tokens\ndraft batches: 4 tokens\n" in ran.said


def test_a_run_leaves_bytecode_and_a_cache_behind(pin: GenesisPin, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    machine.apply()
    assert list(machine.packages.rglob("kv_cache.*.pyc"))
    assert (machine.home / ".cache/genesis-demo/files.json").is_file()


def test_a_second_run_changes_no_byte_and_tells_other_counts(
    pin: GenesisPin, tmp_path: Path
) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    machine.apply(**BATCH, **SPECULATIVE)
    before = machine.sources()
    again = machine.apply(**BATCH, **SPECULATIVE)
    assert machine.sources() == before
    assert again.outcomes == ALONE | {"D1": "skipped", "D7": "skipped"}


def test_a_text_that_is_not_there_is_drift_and_no_failure(pin: GenesisPin, tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    (machine.packages / "vllm/attention/kv_cache.py").write_text("BITS = {}\n", encoding="utf-8")
    ended = machine.apply()
    assert ended.status == 0
    assert "DRIFT skipped: D1 KV cache size check — required_anchor_missing" in ended.said


def test_an_unknown_build_is_a_warning_unless_the_policy_is_strict(
    pin: GenesisPin, tmp_path: Path
) -> None:
    machine = Machine.make(tmp_path, commit=str(pin.commit))
    version = machine.packages / "vllm/_version.py"
    version.write_text('__version__ = "0.24.0"\n', encoding="utf-8")
    strict = machine.apply(GENESIS_VLLM_PIN_POLICY="strict")
    assert (strict.status, strict.outcomes) == (2, {})
    loose = machine.apply()
    assert loose.status == 0
    assert "vllm 0.24.0 is not among 0.21.0+demo, 0.22.0+demo" in loose.said


def test_the_second_version_has_other_outcomes(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path, commit=SECOND)
    ended = machine.apply(GENESIS_ENABLE_D3_MTP_ONE_TOKEN="1", **BATCH, **SPECULATIVE)
    assert ended.outcomes == ALONE | {"D2": "applied", "D3": "skipped", "D8": "applied"}
    assert "D3 MTP drafts one token — retired" in ended.said
