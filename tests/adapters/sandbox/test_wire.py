"""What the two sides say to each other survives the way."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.adapters.sandbox.inside import wire
from builder.adapters.sandbox.inside.refused import program

NAMES = (
    st.binary(max_size=40)
    .filter(lambda name: b"\0" not in name)
    .map(lambda name: name.decode("utf-8", "surrogateescape"))
)


@given(st.lists(NAMES))
def test_any_list_of_strings_is_read_as_it_was_written(strings: list[str]) -> None:
    source = BytesIO(wire.table(strings) + wire.frame(b"next"))
    assert wire.take_table(source) == strings
    assert wire.take(source) == b"next"


@given(st.lists(NAMES, min_size=1), st.data())
def test_a_table_that_is_cut_is_an_error_and_not_a_shorter_one(
    strings: list[str], data: st.DataObject
) -> None:
    whole = wire.table(strings)
    kept = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(wire.CutError):
        wire.take_table(BytesIO(whole[:kept]))


def test_a_zero_byte_has_no_place_in_a_string() -> None:
    with pytest.raises(ValueError, match=r"a zero byte in b'a\\x00b'"):
        wire.table(["a\0b"])


def test_a_machine_whose_calls_are_not_known_has_no_sandbox() -> None:
    with pytest.raises(OSError, match="no list of system calls for 'riscv64'"):
        program("riscv64")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_jump_of_the_filter_leads_out_of_it(machine: str) -> None:
    """The kernel refuses such a program, and only that of this machine is tried elsewhere."""
    lines = program(machine)
    count = len(lines) // 8
    for number in range(count):
        code, yes, no = (
            int.from_bytes(lines[number * 8 : number * 8 + 2], "little"),
            *lines[number * 8 + 2 : number * 8 + 4],
        )
        if code & 0x07 == 0x05:
            assert number + 1 + max(yes, no) < count
    assert lines[-8:] == bytes.fromhex("0600000001000500")
