"""What an environment switches on, era by era."""

from typing import Any

import pytest

from builder.genesis import Facts, switched
from tests.genesis.payloads import v7, v8

PATCHES: dict[str, dict[str, Any]] = {
    "P1": {},
    "P2": {"default_on": True},
    "P3": {"default_on": True, "env_flag": "GENESIS_LEGACY_P3"},
    "P4": {"default_on": True, "lifecycle": "retired"},
    "P5": {"env_flag": "GENESIS_ENABLE_P5_NEW", "env_flag_aliases": ["GENESIS_ENABLE_P5_OLD"]},
    "P6": {"env_flag": None},
}
SEVEN = v7(b"get('GENESIS_DISABLE_P3'); get('GENESIS_DISABLE_P2')", **PATCHES)
EIGHT = v8(b"", **PATCHES)
ELEVEN = v8(b"", b"is_disabled; 'GENESIS_LEGACY_DEFAULT_ON'", **PATCHES)


@pytest.mark.parametrize(
    "facts, environment, on",
    [
        pytest.param(SEVEN, {}, "P2 P3", id="defaults"),
        pytest.param(SEVEN, {"GENESIS_ENABLE_P1": " Yes "}, "P1 P2 P3", id="a flag"),
        pytest.param(SEVEN, {"GENESIS_ENABLE_P1": "2"}, "P2 P3", id="a value that is no word"),
        pytest.param(SEVEN, {"GENESIS_ENABLE_P2": "0", "GENESIS_LEGACY_P3": "0"}, "P2 P3",
                     id="flags that cannot switch off"),
        pytest.param(SEVEN, {"GENESIS_ENABLE_P4": "1"}, "P2 P3 P4", id="a retired patch"),
        pytest.param(SEVEN, {"GENESIS_ENABLE_P5_OLD": "on"}, "P2 P3 P5", id="an alias"),
        pytest.param(SEVEN, {"SNDR_ENABLE_P1": "1"}, "P2 P3", id="a prefix of another era"),
        pytest.param(SEVEN, {"GENESIS_DISABLE_P2": "1", "GENESIS_DISABLE_P3": "true"}, "",
                     id="switched off by variables that the patches read"),
        pytest.param(SEVEN, {"GENESIS_ENABLE_P1": "1", "GENESIS_DISABLE_P1": "1"}, "P1 P2 P3",
                     id="a variable to switch off that nothing reads"),
        pytest.param(EIGHT, {"SNDR_ENABLE_P1": "1"}, "P1 P2 P3", id="the other prefix"),
        pytest.param(EIGHT, {"SNDR_ENABLE_P1": "0", "GENESIS_ENABLE_P1": "1"}, "P2 P3",
                     id="the new prefix wins"),
        pytest.param(EIGHT, {"GENESIS_DISABLE_P2": "1"}, "P2 P3", id="no rule for switching off"),
        pytest.param(ELEVEN, {}, "P3", id="opt-in"),
        pytest.param(ELEVEN, {"GENESIS_LEGACY_DEFAULT_ON": "1"}, "P2 P3", id="defaults, asked for"),
        pytest.param(ELEVEN, {"GENESIS_ENABLE_P2": "1"}, "P2 P3", id="opted in"),
        pytest.param(ELEVEN, {"GENESIS_ENABLE_P2": "1", "SNDR_DISABLE_P2": "1"}, "P3",
                     id="off wins over on"),
        pytest.param(ELEVEN, {"GENESIS_DISABLE_P5_NEW": "1", "GENESIS_ENABLE_P5_OLD": "1"}, "P3",
                     id="off wins over an alias"),
    ],
)  # fmt: skip
def test_what_is_on_follows_the_commit(facts: Facts, environment: dict[str, str], on: str) -> None:
    assert list(switched(environment, facts).on) == on.split()


def test_it_is_told_what_switched_a_patch_on_and_what_could_not_switch_it_off() -> None:
    environment = {
        "GENESIS_ENABLE_P5_OLD": "1",
        "GENESIS_ENABLE_P2": "off",
        "GENESIS_LEGACY_P3": "1",
    }
    state = switched(environment, SEVEN)
    assert dict(state.on) == {"P2": None, "P3": None, "P5": "GENESIS_ENABLE_P5_OLD"}
    assert dict(state.stubborn) == {"P2": "GENESIS_ENABLE_P2", "P3": "GENESIS_LEGACY_P3"}
