"""What a bake told: lines and markers."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import SandboxError
from builder.genesis.said import markers, parse


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
