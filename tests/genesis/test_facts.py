"""Facts: which names count, how a commit decides, and that they can be kept."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import canonical
from builder.errors import ProjectError
from builder.genesis import Allowlist, Facts, Patch, Presence, Reading, read_facts
from tests.genesis.payloads import V7, V8, v7, v8


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(b'os.environ.get("GENESIS_MODE", "")', id="read"),
        pytest.param(b"MODE = 'GENESIS_MODE'", id="kept in a constant"),
        pytest.param(b'text = "os.environ.get(\\"GENESIS_MODE\\")"', id="in code that is written"),
        pytest.param(b"text = \"os.getenv('GENESIS_MODE')\"", id="in code, other quotes"),
        pytest.param(b'command = "test ${GENESIS_MODE:-0} = 1"', id="in a shell command"),
    ],
)
def test_a_name_counts_when_something_reads_it(source: bytes) -> None:
    assert v7(source).names == {"GENESIS_MODE"}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(b'"""Set GENESIS_MODE=1 to try it."""', id="prose"),
        pytest.param(b"# GENESIS_MODE", id="a comment"),
        pytest.param(b'log("GENESIS_MODE is off")', id="a part of a text"),
        pytest.param(b"preset = {'GENESIS_MODE': '1'}", id="a key, where it is set"),
        pytest.param(b"preset = {'GENESIS_MODE' : '1'}", id="a key with a blank"),
        pytest.param(b'x.startswith("GENESIS_")', id="a prefix"),
        pytest.param(b"'MY_GENESIS_MODE'", id="another name"),
    ],
)
def test_a_name_that_nothing_reads_does_not_count(source: bytes) -> None:
    assert v7(source).names == frozenset()


def test_tests_and_files_that_are_no_python_are_not_searched() -> None:
    source = b"get('GENESIS_MODE')"
    files = {"tests/test_a.py": source, "compat/tests/b.py": source, "preset.yaml": source}
    assert read_facts(V7, files).names == frozenset()
    assert read_facts(V7, {"compat/b.py": source}).names == {"GENESIS_MODE"}


def test_where_names_are_put_together_both_prefixes_count() -> None:
    source = b"""get_sndr_env("PORT"); get_sndr_env_int(\n    'HOST', 1); is_enabled("A1")"""
    wanted = {f"{p}_{n}" for p in ("SNDR", "GENESIS")
              for n in ("PORT", "HOST", "ENABLE_A1", "DISABLE_A1")}  # fmt: skip
    assert v8(source).names == wanted
    assert v7(source).names == frozenset()


def test_flags_that_are_named_in_one_place_count() -> None:
    flags = b"class Flags:\n    A1 = 'A1_LONG'\n    B2: str = \"B2\"\nother = 'NOT'\n"
    names = read_facts(V8, {"env.py": flags}).names
    assert {"GENESIS_ENABLE_A1_LONG", "SNDR_DISABLE_B2"} <= names
    assert len(names) == 8


@pytest.mark.parametrize(
    "deciding, reading",
    [
        (b"", Reading(twins=True)),
        (b"from env import is_disabled", Reading(twins=True, disabling=True)),
        (b"is_disabled; 'GENESIS_LEGACY_DEFAULT_ON'",
         Reading(twins=True, disabling=True, opt_in=True)),
    ],
)  # fmt: skip
def test_how_flags_are_read_is_told_by_the_module_that_decides(
    deciding: bytes, reading: Reading
) -> None:
    assert v8(b"", deciding).reading == reading
    assert v7(deciding).reading == Reading()


def test_a_payload_of_no_era_is_refused() -> None:
    message = (
        "a patch set has its payload in vllm/_genesis or vllm/sndr_core or sndr, got 'vllm/other'"
    )
    with pytest.raises(ProjectError, match=f"^{re.escape(message)}$"):
        read_facts("vllm/other", {})


def test_facts_know_their_era() -> None:
    assert v8().era.name == "v8-v11"


def test_facts_of_another_format_are_refused() -> None:
    record = v7(P1={}).record()
    with pytest.raises(ValueError, match=r"^format 0, wanted 1$"):
        Facts.parse(record | {"format": 0})


WORDS = st.lists(st.text(max_size=8), max_size=3).map(tuple)
PATCHES = st.builds(
    Patch,
    id=st.text(max_size=8),
    title=st.text(max_size=8),
    flag=st.none() | st.text(min_size=1, max_size=8),
    aliases=WORDS,
    default_on=st.booleans(),
    conflicts=WORDS,
    requires=WORDS,
    lifecycle=st.none() | st.text(min_size=1, max_size=8),
    deprecated=st.booleans(),
    superseded_by=WORDS,
    versions=WORDS,
    pulls=st.lists(st.integers(0, 99999), max_size=2).map(tuple),
)
FACTS = st.builds(
    Facts,
    payload=st.sampled_from([V7, V8]),
    allowlist=st.builds(
        Allowlist,
        presence=st.sampled_from(Presence),
        file=st.none() | st.text(),
        good=WORDS,
        pending=WORDS,
    ),
    patches=st.lists(PATCHES, max_size=3).map(tuple),
    names=st.frozensets(st.text(max_size=8), max_size=3),
    reading=st.builds(Reading, opt_in=st.booleans(), disabling=st.booleans(), twins=st.booleans()),
)


@given(FACTS)
def test_facts_are_kept_as_canonical_json_and_read_back(facts: Facts) -> None:
    note = canonical.encode(facts.record())
    again: Any = canonical.decode(note, at="note")
    assert Facts.parse(again) == facts
    assert canonical.encode(Facts.parse(again).record()) == note
