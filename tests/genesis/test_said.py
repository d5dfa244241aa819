"""What a bake told: lines and markers."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import SandboxError
from builder.genesis.said import ended, markers, parse


def _line(patch: str, says: str = "applied", reason: str = "", wrote: tuple[str, ...] = ()) -> str:
    return json.dumps({"patch": patch, "says": says, "reason": reason, "wrote": wrote}) + "\n"


def test_a_patch_is_known_by_its_first_word_and_a_second_one_by_its_title() -> None:
    text = _line("P7 wider cache", wrote=("a.py",)) + _line("P7 V6 of it", "skipped", "opt-in")

    first, second = parse(text.encode())

    assert (first.name, first.title, first.says, first.wrote) == (
        "P7",
        "P7 wider cache",
        "applied",
        ("a.py",),
    )
    assert (second.name, second.reason) == ("P7 V6 of it", "opt-in")


def test_nothing_that_is_told_later_takes_the_place_of_a_failure() -> None:
    text = (
        _line("P1 wide", "failed", "no anchor")
        + _line("P1")
        + _line("P1 wide")
        + _line("P1 wide", "skipped")
    )

    assert [(item.name, item.says) for item in parse(text.encode())] == [
        ("P1", "failed"),
        ("P1 (2)", "applied"),
        ("P1 wide", "applied"),
        ("P1 wide (2)", "skipped"),
    ]


def test_names_and_reasons_can_be_written_down_and_shown() -> None:
    text = (
        _line("P1\ud800\0 wide", reason="\x1b[31mred\n\tand  more\udfff")
        + _line(" ", reason="x" * 5000)
        + _line("y" * 5000)
    )

    first, second, third = parse(text.encode())

    assert (first.name, first.title, first.reason) == ("P1", "P1 wide", "[31mred and more")
    assert (second.name, second.reason) == ("?", "x" * 2000)
    assert third.name == "y" * 200


def test_more_patches_than_any_set_has_are_refused() -> None:
    parse(_line("P1").encode() * 4096)
    with pytest.raises(SandboxError, match="the bake told of 4097 patches, the limit is 4096"):
        parse(_line("P1").encode() * 4097)


def test_the_end_is_told_once_and_last() -> None:
    end = b'{"ended": true}\n'
    told = _line("P1").encode()

    assert parse(told + end) == parse(told)
    assert [ended(text) for text in (told + end, told, b"", end[:-1])] == [
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(SandboxError, match="line 1 of what the bake told"):
        parse(end + told)


@pytest.mark.parametrize(
    "line",
    [
        b"hello\n",
        b"[]\n",
        b"{}\n",
        b'{"patch": "P1", "says": "done", "reason": "", "wrote": []}\n',
        b'{"patch": 1, "says": "applied", "reason": "", "wrote": []}\n',
        b'{"patch": "P1", "says": "applied", "reason": "", "wrote": [1]}\n',
        b'{"patch": "P1", "says": "applied", "reason": "", "wrote": null}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\n",
    ],
)
def test_what_the_harness_did_not_write_is_refused_with_its_line(line: bytes) -> None:
    with pytest.raises(SandboxError, match="line 2 of what the bake told"):
        parse(_line("P1").encode() + line)


@given(st.binary())
def test_nothing_but_a_refusal_comes_of_any_bytes(data: bytes) -> None:
    with suppress(SandboxError):
        parse(data)


def test_markers_are_whole_lines_of_comment() -> None:
    data = (
        b"# [Genesis wiring marker: Genesis P67 wider v7]\n"
        b"# [Genesis wiring marker: P68/P69 longer]\n"
        b'x = "# [Genesis wiring marker: Genesis P1 no]"\n'
        b"  # [Genesis wiring marker: Genesis P2 no]\n"
        b"# [Genesis wiring marker: Genesis P38B]\n"
    )

    assert list(markers(data)) == ["P67", "P68/P69", "P38B"]
