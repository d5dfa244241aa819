"""Complaints: each rule, its words, and its silence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.genesis import Complaint, Facts, Rule, lint
from tests.genesis.payloads import v7, v8

P2 = "GENESIS_ENABLE_P2_FAST_KERNEL"
P3 = "GENESIS_ENABLE_P3_SLOW_KERNEL"
SOURCE = b"get('GENESIS_MODE'); get('GENESIS_ENABLE_EXTRA'); get('GENESIS_DISABLE_P7')"
FACTS = v7(
    SOURCE,
    P1={"env_flag": "GENESIS_LEGACY_P1", "default_on": True},
    P7={"env_flag": "GENESIS_LEGACY_P7", "default_on": True},
    P2={"env_flag": "GENESIS_ENABLE_P2_FAST_KERNEL", "conflicts_with": ["P1", "P3", "P2"]},
    P3={"env_flag": "GENESIS_ENABLE_P3_SLOW_KERNEL", "conflicts_with": ["P2"]},
    P4={"requires_patches": ["P3", "P99"]},
    P5={"lifecycle": "retired", "superseded_by": "P2"},
    P6={"superseded_by": "vllm#41 (merged)"},
    P8={"default_on": True},
    P9={"deprecated": True},
    PN1={"applies_to": {"vllm_version_range": (">=0.20.1rc1.dev16+g0123456", "<0.21.0")}},
)


def _lint(
    environment: dict[str, str], facts: Facts = FACTS, version: str | None = "0.20.2"
) -> list[tuple[str, str, str]]:
    """Rule and subject, message and hint of each complaint."""
    found = lint(environment, facts, version=version)
    return [(f"{item.rule}: {item.subject}", item.message, item.hint) for item in found]


def _switch(**flags: str) -> dict[str, str]:
    return {f"GENESIS_ENABLE_{name}": text for name, text in flags.items()}


def test_an_environment_that_is_in_order_has_no_complaints() -> None:
    settings = {"GENESIS_MODE": "any text", "PATH": "/bin"}
    assert _lint(settings | _switch(P3_SLOW_KERNEL="1", EXTRA="0")) == []


@pytest.mark.parametrize(
    "name, hint",
    [
        pytest.param("GENESIS_ENABLE_P2", f"did you mean {P2!r}?", id="an id"),
        pytest.param("GENESIS_ENABLE_P2_FAST", f"did you mean {P2!r}?",
                     id="the beginning of one"),
        pytest.param("GENESIS_ENABLE_P3_SLOW_KERNELS", f"did you mean {P3!r}?",
                     id="a slip"),
        pytest.param("GENESIS_P3_SLOW_KERNEL", f"did you mean {P3!r}?",
                     id="a flag without its prefix"),
        pytest.param("SNDR_ENABLE_P3_SLOW_KERNEL", f"did you mean {P3!r}?",
                     id="a prefix of another era"),
        pytest.param("GENESIS_MOOD", "did you mean 'GENESIS_MODE'?", id="a slip in a setting"),
        pytest.param("GENESIS_ENABLE_P1", "leave it out: P1 is always applied, and has no switch",
                     id="a patch that has no switch"),
        pytest.param("GENESIS_ENABLE_P7", "leave it out: P7 is always applied, "
                     "and only GENESIS_DISABLE_P7=1 switches it off",
                     id="a patch that can only be switched off"),
        pytest.param("GENESIS_DISABLE_P2_FAST_KERNEL", "leave it out", id="never the opposite"),
        pytest.param("GENESIS_ENABLE_SOMETHING_ELSE", "leave it out", id="nothing like it"),
    ],
)  # fmt: skip
def test_a_variable_that_nothing_reads_is_told_with_what_was_meant(name: str, hint: str) -> None:
    assert lint({name: "0"}, FACTS, version=None) == (
        Complaint(
            rule=Rule.UNKNOWN_FLAG,
            subject=name,
            message=f"{name} is read by nothing in this commit of the patch set",
            hint=hint,
        ),
    )


def test_a_flag_that_is_neither_on_nor_off_is_told() -> None:
    hint = "write 1 to switch it on, 0 to switch it off"
    assert _lint(_switch(P3_SLOW_KERNEL="2", EXTRA="enabled", P9="")) == [
        (
            "odd-value: GENESIS_ENABLE_EXTRA",
            "GENESIS_ENABLE_EXTRA: expected 1 or 0, got 'enabled', which counts as off",
            hint,
        ),
        (f"odd-value: {P3}", f"{P3}: expected 1 or 0, got '2', which counts as off", hint),
    ]


def test_a_flag_that_decides_nothing_is_told() -> None:
    environment = {"GENESIS_LEGACY_P1": "1", "GENESIS_LEGACY_P7": "0", "GENESIS_ENABLE_P8": "0"}
    assert _lint(environment) == [
        (
            "no-effect: GENESIS_LEGACY_P1",
            "GENESIS_LEGACY_P1 decides nothing: P1 is always applied",
            "leave it out",
        ),
        (
            "no-effect: GENESIS_LEGACY_P7",
            "GENESIS_LEGACY_P7 decides nothing: P7 is always applied",
            "leave it out; GENESIS_DISABLE_P7=1 switches P7 off",
        ),
        (
            "no-effect: GENESIS_ENABLE_P8",
            "GENESIS_ENABLE_P8 is '0', and P8 is on all the same: its flag can only switch it on",
            "leave it out",
        ),
    ]


def test_a_conflict_is_told_once_and_with_patches_that_are_on_by_default() -> None:
    assert _lint(_switch(P2_FAST_KERNEL="1", P3_SLOW_KERNEL="1")) == [
        (
            "conflict: P1, P2",
            f"P1 (on by default) conflicts with P2 ({P2}), and both are on",
            f"set {P2} to 0",
        ),
        (
            "conflict: P2, P3",
            f"P2 ({P2}) conflicts with P3 ({P3}), and both are on",
            f"set {P2} or {P3} to 0",
        ),
    ]


def test_two_defaults_that_conflict_are_told_too() -> None:
    facts = v7(P1={"default_on": True, "conflicts_with": ["P2"]}, P2={"default_on": True})
    assert _lint({}, facts) == [
        (
            "conflict: P1, P2",
            "P1 (on by default) conflicts with P2 (on by default), and both are on",
            "pin another commit of the patch set: both are its own defaults",
        )
    ]


def test_a_requirement_that_is_off_or_unknown_is_told() -> None:
    assert _lint(_switch(P4="1")) == [
        (
            "unmet-requirement: P4",
            "P4 (GENESIS_ENABLE_P4) requires P3, which is off",
            f"switch P3 on ({P3}) or set GENESIS_ENABLE_P4 to 0",
        ),
        (
            "unmet-requirement: P4",
            "P4 (GENESIS_ENABLE_P4) requires P99, which this commit does not have",
            "set GENESIS_ENABLE_P4 to 0",
        ),
    ]


def test_patches_that_were_given_up_are_told_when_they_are_asked_for() -> None:
    called = "is switched on, and the patch set calls it"
    assert _lint(_switch(P5="1", P6="1", P9="1")) == [
        (
            "retired: P5",
            f"P5 (GENESIS_ENABLE_P5) {called} retired, superseded by 'P2'",
            "set GENESIS_ENABLE_P5 to 0",
        ),
        (
            "retired: P9",
            f"P9 (GENESIS_ENABLE_P9) {called} deprecated",
            "set GENESIS_ENABLE_P9 to 0",
        ),
        (
            "superseded: P6",
            f"P6 (GENESIS_ENABLE_P6) {called} superseded by 'vllm#41 (merged)'",
            "set GENESIS_ENABLE_P6 to 0 where the base has that",
        ),
    ]


@pytest.mark.parametrize(
    "version, within",
    [
        ("0.20.1", True),
        ("0.20.1rc1.dev16+g0123456ab", True),
        ("0.20.1rc1.dev15+g0123456ab", False),
        ("0.21.0", False),
        ("0.22.0rc1", False),
        (None, True),
        ("unknown", True),
    ],
)
def test_a_patch_for_other_versions_is_told_when_it_is_on(
    version: str | None, within: bool
) -> None:
    ranges = "'>=0.20.1rc1.dev16+g0123456,<0.21.0'"
    wanted = (
        "version-range: PN1",
        f"PN1 (GENESIS_ENABLE_PN1) is for vLLM {ranges}, got {version!r}",
        "set GENESIS_ENABLE_PN1 to 0",
    )
    assert _lint(_switch(PN1="1"), version=version) == ([] if within else [wanted])
    assert _lint(_switch(PN1="0"), version=version) == []


@pytest.mark.parametrize("text", ["~0.20", f">={5000 * '1'}"])
def test_a_range_that_cannot_be_read_excludes_nothing(text: str) -> None:
    assert _lint(_switch(P1="1"), v7(P1={"vllm_version_range": text})) == []


def test_variables_that_switch_off_are_known_where_the_commit_has_that_rule() -> None:
    facts = v8(b"", b"is_disabled", P1={})
    environment = {"GENESIS_DISABLE_P1": "1", "SNDR_DISABLE_P1": "0", "SNDR_ENABLE_P1": "1"}
    assert _lint(environment, facts) == []
    ((rule, _, _),) = _lint({"GENESIS_DISABLE_P1": "1"}, v8(P1={}))
    assert rule == "unknown-flag: GENESIS_DISABLE_P1"


NAMES = st.sampled_from(
    [flag for patch in FACTS.patches if (flag := patch.flag)] + sorted(FACTS.names)
) | st.text(max_size=9).map(lambda text: f"GENESIS_{text}")


@given(st.dictionaries(NAMES, st.sampled_from(["0", "1", "on", "", "x"]) | st.text(max_size=5)))
def test_any_environment_is_linted_and_in_any_order_the_same(environment: dict[str, str]) -> None:
    found = lint(environment, FACTS, version="0.20.2")
    assert found == lint(dict(reversed(environment.items())), FACTS, version="0.20.2")
    ranks = [list(Rule).index(item.rule) for item in found]
    assert ranks == sorted(ranks)
    assert len(set(found)) == len(found)
