"""Registries of patches."""

import re
from typing import Any

import pytest

from builder.errors import ProjectError
from builder.genesis import Patch, read_facts
from builder.genesis.literals import NotLiteral
from tests.genesis.payloads import V7, registry, v7

OLD = "GENESIS_LEGACY_P1"


def test_an_entry_is_read_whatever_its_era() -> None:
    facts = v7(
        P1={},
        P2={
            "title": "everything",
            "env_flag": "GENESIS_ENABLE_P2_ALL",
            "env_flag_aliases": ["GENESIS_ENABLE_P0"],
            "default_on": True,
            "conflicts_with": ("P1",),
            "requires_patches": "P3",
            "lifecycle": "experimental",
            "deprecated": True,
            "superseded_by": "vllm#7",
            "vllm_version_range": ">=0.20.0, <0.21.0",
            "applies_to": {"vllm_version_range": (">=0.20.0", "<0.20.2"), "is_hybrid": [True]},
            "upstream_pr": 41,
            "a_key_of_the_future": {"not": "ours"},
        },
        P3={"env_flag": None, "conflicts_with": None, "superseded_by": ["P1", "P2"]},
    )
    assert facts.patches == (
        Patch(id="P1", title="about P1", flag="GENESIS_ENABLE_P1"),
        Patch(
            id="P2",
            title="everything",
            flag="GENESIS_ENABLE_P2_ALL",
            aliases=("GENESIS_ENABLE_P0",),
            default_on=True,
            conflicts=("P1",),
            requires=("P3",),
            lifecycle="experimental",
            deprecated=True,
            superseded_by=("vllm#7",),
            versions=(">=0.20.0", "<0.21.0", "<0.20.2"),
            pulls=(41,),
        ),
        Patch(id="P3", title="about P3", superseded_by=("P1", "P2")),
    )


@pytest.mark.parametrize(
    "upstream, pulls",
    [
        ("https://github.com/vllm-project/vllm/pull/41", (41,)),
        ("https://github.com/vllm-project/vllm/pull/41 (merged)", (41,)),
        ("https://github.com/vllm-project/vllm/issues/41", ()),
        ("https://github.com/acme/vllm/pull/41", ()),
        (f"https://github.com/vllm-project/vllm/pull/{5000 * '4'}", ()),
        (None, ()),
    ],
)
def test_an_address_counts_when_it_is_that_of_a_pull_request(
    upstream: str | None, pulls: tuple[int, ...]
) -> None:
    assert v7(P1={"upstream_pr": upstream}).patches[0].pulls == pulls


@pytest.mark.parametrize(
    "entry, message",
    [
        ({"env_flag": 3}, "['env_flag']: expected str, got 3"),
        ({"default_on": "yes"}, "['default_on']: expected bool, got 'yes'"),
        ({"conflicts_with": ["P1", 2]}, "['conflicts_with']: expected str, got 2"),
        ({"applies_to": []}, "['applies_to']: expected dict, got []"),
        ({"applies_to": {"vllm_version_range": 1}},
         "['applies_to']['vllm_version_range']: expected str, got 1"),
        ({"upstream_pr": True}, "['upstream_pr']: expected the number of a pull request, got True"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_with_its_place(
    entry: dict[str, Any], message: str
) -> None:
    wanted = f"vllm/_genesis/dispatcher.py: PATCH_REGISTRY['P1']{message}"
    with pytest.raises(ProjectError, match=f"^{re.escape(wanted)}$"):
        v7(P1=entry)


@pytest.mark.parametrize("source", [b"PATCH_REGISTRY = []", b"PATCH_REGISTRY = {'P1': 'on'}"])
def test_a_registry_of_another_shape_is_refused(source: bytes) -> None:
    with pytest.raises(
        ProjectError, match=r"^vllm/_genesis/dispatcher\.py: PATCH_REGISTRY.*: expected a dict"
    ):
        read_facts(V7, {"dispatcher.py": source})  # fmt: skip


def test_a_registry_that_is_not_literal_is_an_error_of_its_own() -> None:
    source = registry(P1={}) + b"for n in range(9): PATCH_REGISTRY[f'P{n}'] = {}\n"
    with pytest.raises(NotLiteral, match="PATCH_REGISTRY is changed after it was assigned"):
        read_facts(V7, {"dispatcher.py": source})


def test_a_payload_without_a_registry_has_no_patches() -> None:
    assert read_facts(V7, {"dispatcher.py": b"def decide(): ..."}).patches == ()
    assert read_facts(V7, {}).patches == ()


@pytest.mark.parametrize(
    "entry, retired, always",
    [
        ({"env_flag": OLD, "default_on": True}, False, True),
        ({"env_flag": OLD, "default_on": False}, False, False),
        ({"env_flag": OLD, "default_on": True, "lifecycle": "retired"}, True, False),
        ({"default_on": True}, False, False),
        ({"deprecated": True}, True, False),
    ],
)  # fmt: skip
def test_a_patch_is_always_on_when_its_flag_is_made_up(
    entry: dict[str, Any], retired: bool, always: bool
) -> None:
    patch = v7(P1=entry).patches[0]
    assert (patch.retired, patch.always) == (retired, always)
