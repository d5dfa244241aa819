"""``builder check`` on a patch set: its base, its environment, the exceptions that were made."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from builder.check import Finding, Severity
from builder.check.genesis import needless_waivers, patch_set, plugins, waivers
from builder.errors import OfflineError
from builder.genesis.facts import Facts, read_facts
from builder.lock import codec
from builder.lock.model import GenesisPin
from builder.project import Project
from tests.cli.conftest import Builder
from tests.patch_world import DISPATCHER, GUARDS, PatchWorld, write_patched

TODAY = date(2026, 12, 31)
COMMIT = "7" * 40
WORLD = PatchWorld(upstream=Path("nowhere"), commit=COMMIT, tree="8" * 40, payload="9" * 40)
FACTS = read_facts(
    "vllm/_genesis", {"guards.py": GUARDS.encode(), "dispatcher.py": DISPATCHER.encode()}
)
AT = "variants/night.yaml:6"
RECORD = (
    "take a base that it lists, or record an exception: builder waive night --reason TEXT --until"
    " DATE"
)


@pytest.fixture
def night(project: Path) -> Path:
    """The project, with a variant on vLLM 0.20.2, which the patch set does not list."""
    write_patched(project, WORLD)
    return project


def waived(project: Path, until: str, *, vllm: str = "0.20.2", genesis: str = COMMIT) -> None:
    (project / codec.WAIVERS).write_text(
        f'version: 1\nwaivers:\n  w:\n    rule: genesis-allowlist\n    genesis: "{genesis}"\n'
        f'    vllm: "{vllm}"\n    reason: tried\n    author: Ada\n    until: "{until}"\n'
    )


def findings(project: Path, facts: Facts | Exception = FACTS) -> list[Finding]:
    opened = Project(project)
    variant = opened.variant("night")

    def given(pin: GenesisPin) -> Facts:
        assert str(pin.commit) == COMMIT
        if isinstance(facts, Exception):
            raise facts
        return facts

    lock = opened.lock_for(variant)
    return list(patch_set(opened, variant, lock, facts=given, today=TODAY))


def told(items: Iterator[Finding] | list[Finding]) -> list[tuple[str, str, str]]:
    return [(str(item.severity), item.where, item.message) for item in items]


def test_a_base_that_is_not_listed_is_an_error_of_policy(night: Path) -> None:
    assert findings(night) == [
        Finding(
            severity=Severity.ERROR,
            where=AT,
            message="steps[1]: allowlist: Genesis 777777777777 does not list vLLM 0.20.2",
            hint=f"the nearest that it lists: '0.20.1'; {RECORD}",
            exit_status=5,
        )
    ]


def test_a_listed_base_is_no_finding(night: Path) -> None:
    write_patched(night, WORLD, vllm="0.20.1")
    assert findings(night) == []


def test_an_environment_that_the_patch_set_does_not_take_is_an_error_of_the_variant(
    night: Path,
) -> None:
    environment = "{GENESIS_ENABLE_P1: '1', GENESIS_ENABLE_P2: '1', GENESIS_ENABLE_P3: '1'}"
    write_patched(night, WORLD, vllm="0.20.1", env=environment)
    found = findings(night)
    assert [(item.severity, item.where, item.exit_status) for item in found] == [
        (Severity.ERROR, AT, 3),
        (Severity.WARNING, AT, 0),
    ]
    assert [item.message.split(": ")[:2] for item in found] == [
        ["steps[1]", "conflict"],
        ["steps[1]", "retired"],
    ]
    (night / "builder.yaml").write_text(
        "version: 1\npolicy: {genesis: {conflict: off, retired: error}}\n"
    )
    assert [item.exit_status for item in findings(night)] == [3]


def test_a_variable_that_is_removed_is_not_set(night: Path) -> None:
    write_patched(night, WORLD, vllm="0.20.1", env="{GENESIS_ENABLE_P9: null}")
    assert findings(night) == []


def test_a_waiver_makes_it_a_warning_and_its_end_an_error_again(night: Path) -> None:
    waived(night, "2026-12-31")
    assert told(findings(night)) == [
        (
            "warning",
            AT,
            (
                "steps[1]: allowlist: Genesis 777777777777 does not list vLLM 0.20.2; waiver 'w'"
                " lets it pass until 2026-12-31: tried (Ada)"
            ),
        )
    ]
    waived(night, "2026-12-30")
    assert [item.exit_status for item in findings(night)] == [5]


def test_a_base_of_which_only_the_tree_can_tell_is_said_to_be_so(night: Path) -> None:
    recipe = night / "variants/night.yaml"
    recipe.write_text(recipe.read_text().replace("  - wheels: [vllm]\n", ""))
    assert told(findings(night)) == [
        (
            "warning",
            "variants/night.yaml:5",
            (
                "steps[0]: allowlist: which vLLM the base holds is found out by a build, and only"
                " then whether Genesis 777777777777 lists it"
            ),
        )
    ]


def test_of_a_patch_set_that_is_not_at_hand_nothing_is_said(night: Path) -> None:
    assert findings(night, OfflineError("check fetches nothing")) == []


def test_a_patch_set_that_cannot_be_read_is_an_error(night: Path) -> None:
    with pytest.raises(Exception, match="KNOWN_GOOD") as caught:
        read_facts("vllm/_genesis", {"guards.py": b"KNOWN_GOOD_VLLM_PINS = f()\n"})
    (finding,) = findings(night, caught.value)
    assert (finding.severity, finding.where, finding.exit_status) == (Severity.ERROR, AT, 3)


def test_settings_that_cannot_be_read_are_said_once_and_the_usual_policy_holds(
    night: Path,
) -> None:
    (night / "builder.yaml").write_text("version: 1\npolicy: {genesis: {allowlist: off}}\n")
    assert [item.exit_status for item in findings(night)] == [5]


@pytest.mark.parametrize(
    ("until", "message", "hint"),
    [
        pytest.param(
            "2026-12-30",
            "waivers.w: ended on 2026-12-30",
            "remove it, or renew it: builder waive",
            id="over",
        ),
        pytest.param(
            "2026-12-31",
            "waivers.w: ends with 2026-12-31, and builds that need it then stop",
            "take a base that is listed, or renew it: builder waive",
            id="its last day",
        ),
        pytest.param(
            "2027-01-14",
            "waivers.w: ends with 2027-01-14, and builds that need it then stop",
            "take a base that is listed, or renew it: builder waive",
            id="two weeks before",
        ),
        pytest.param("2027-01-15", None, None, id="more than two weeks before"),
    ],
)
def test_a_waiver_that_ends_is_named_in_time(
    until: str, message: str | None, hint: str | None, night: Path
) -> None:
    waived(night, until)
    found = list(waivers(Project(night).lock, TODAY))
    wanted = [] if message is None else [("warning", "lockfiles/waivers.yaml:3", message)]
    assert told(found) == wanted
    assert [item.hint for item in found] == [hint for _ in wanted]


def test_a_waiver_for_a_commit_that_nothing_pins_is_needless(night: Path) -> None:
    waived(night, "2027-12-31")
    assert list(needless_waivers(Project(night).lock)) == []
    waived(night, "2027-12-31", genesis="6" * 40)
    assert told(needless_waivers(Project(night).lock)) == [
        (
            "warning",
            "lockfiles/waivers.yaml:3",
            "waivers.w: no pin of a patch set has the commit 666666666666",
        )
    ]


def test_waivers_are_looked_at_with_the_project(night: Path, builder: Builder) -> None:
    (night / "variants/night.yaml").unlink()
    waived(night, "2020-02-29", genesis="6" * 40)
    found = builder("check", "hello", "--json").json["findings"]
    plugin = "genesis.v1: no 'plugin': vLLM's processes do not call the patch set, and what it does"
    assert [item["message"] for item in found] == [
        f"{plugin} in memory is lost",
        "waivers.w: ended on 2020-02-29",
    ]
    assert "genesis_vllm_plugin" in found[0]["hint"]
    found = builder("check", "--json").json["findings"]
    assert "waivers.w: no pin of a patch set has the commit 666666666666" in {
        item["message"] for item in found
    }


def test_a_pin_with_its_plugin_or_of_an_era_without_one_is_complete(night: Path) -> None:
    file = night / "lockfiles/genesis.yaml"
    without = file.read_text()
    plugin = f"    plugin: {{path: tools/genesis_vllm_plugin, tree: '{'a' * 40}'}}\n"
    for text in (without + plugin, without.replace("vllm/_genesis", "sndr")):
        file.write_text(text)
        assert list(plugins(Project(night).lock)) == []


def test_a_pin_without_a_payload_is_said_once(night: Path, builder: Builder) -> None:
    file = night / "lockfiles/genesis.yaml"
    file.write_text(file.read_text().partition("    payload:")[0])
    found = builder("check", "night", "--json").json["findings"]
    assert [item["message"] for item in found if "payload" in item["message"]] == [
        "genesis.v1: no 'payload', so that nothing says what the patch set installs"
    ]
