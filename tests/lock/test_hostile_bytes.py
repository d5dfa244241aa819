"""Any bytes at all: a value or a ProjectError, never another exception."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import ProjectError
from builder.schema_check import check
from builder.strict_yaml import read
from tests.lock.documents import DOCUMENTS, FILES, READERS

PIECES = (
    b"\n", b" ", b"  ", b"- ", b": ", b"{", b"}", b"[", b"]", b'"', b"'", b"|\n", b"&a ", b"*a",
    b"!!x ", b"\t", b"\0", b"\xff", b"?", b"#", b"%", b"---\n", b"~", b"9" * 5000, b"\xe2\x80\xa8",
)  # fmt: skip


def refusal(read_it: Callable[[], object]) -> str | None:
    """The message of the ProjectError, if it is refused. Anything else goes through."""
    try:
        read_it()
    except ProjectError as error:
        return error.message
    return None


@settings(max_examples=150)
@given(st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join))
def test_any_bytes_are_a_tree_or_a_project_error(data: bytes) -> None:
    message = refusal(lambda: read(data, file="f"))
    assert message is None or message.startswith("f:")


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_document_with_any_damage_is_a_value_or_a_project_error(kind: str) -> None:
    whole = DOCUMENTS[kind].encode()

    @settings(max_examples=30)
    @given(
        st.integers(0, len(whole)),
        st.integers(0, 30),
        st.binary(max_size=4) | st.sampled_from(PIECES),
    )
    def holds(start: int, length: int, piece: bytes) -> None:
        data = whole[:start] + piece + whole[start + length :]
        for reader in (
            READERS[kind],
            lambda data: check(data, kind=kind, file=FILES[kind]),
        ):
            message = refusal(partial(reader, data)) or FILES[kind]
            assert message.startswith((FILES[kind], "overlays/demo/"))
            assert "\n" not in message

    holds()


@pytest.mark.parametrize("kind", [kind for kind in DOCUMENTS if kind != "overlay"])
def test_codec_and_schema_agree_about_any_damage_within_one_line(kind: str) -> None:
    """What the codec accepts, the schema accepts: a schema in an editor cries no wolf."""
    lines = DOCUMENTS[kind].splitlines(keepends=True)

    @settings(max_examples=30)
    @given(st.integers(0, len(lines) - 1), st.sampled_from(["", "x", "0", "null", '""', "/", "é"]))
    def holds(number: int, piece: str) -> None:
        key, colon, _ = lines[number].partition(": ")
        if not colon:
            return
        data = "".join([*lines[:number], f"{key}: {piece}\n", *lines[number + 1 :]]).encode()
        if refusal(lambda: READERS[kind](data)) is None:
            check(data, kind=kind, file=FILES[kind])

    holds()
