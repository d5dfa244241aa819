"""Damaged records: what is wrong with them is said, and nothing else happens."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import canonical
from builder.attest.statement import envelope
from builder.build_record import parse
from builder.errors import BuilderError, IntegrityError
from builder.statements import statements
from tests.statements.rich import document
from tests.statements.test_manifest import changed, leaves, words

RECORD = document()
RAW = canonical.encode(RECORD)
ODD: tuple[Any, ...] = (None, 7, "", "sha256:", "é\x00\n", [], ["x"], {}, {"x": 1}, True)


def said(raw: bytes) -> None:
    """Say all that can be said, or refuse; anything else is an error of the test."""
    with suppress(BuilderError):
        for item in statements(parse(raw, at="a record"), name="x"):
            assert envelope(item).payload


def test_another_value_anywhere_ends_in_statements_or_in_a_refusal() -> None:
    paths = {words(path): path for path in leaves(RECORD)}
    for number, path in enumerate(paths.values()):
        for value in (ODD[number % len(ODD)], ODD[(number + 3) % len(ODD)]):
            said(canonical.encode(changed(RECORD, path, value)))


def test_another_value_in_the_place_of_everything_below_ends_the_same() -> None:
    for key in RECORD:
        for value in ODD:
            said(canonical.encode({**RECORD, key: value}))
        said(canonical.encode({name: RECORD[name] for name in RECORD if name != key}))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(RAW[:-1], id="all but the end"),
        pytest.param(RAW + b"\n", id="a line end"),
        pytest.param(RAW.replace(b'"assembly":1', b'"assembly":1.0'), id="a fraction"),
        pytest.param(RAW.replace(b'"assembly":1', b'"assembly":1,"assembly":1'), id="a key twice"),
        pytest.param(json.dumps(RECORD, indent=1).encode(), id="blanks"),
        pytest.param(RAW.replace(b"rich", b"\xff"), id="no UTF-8"),
        pytest.param(RAW.replace(b'"rich"', b'"\\ud800"'), id="half of a pair"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"version":2,"x":"' + b"x" * (17 << 20) + b'"}', id="large"),
    ],
)
def test_bytes_that_we_did_not_write_are_no_record(raw: bytes) -> None:
    with pytest.raises(IntegrityError, match="a record"):
        parse(raw, at="a record")


@given(st.integers(0, len(RAW) - 1), st.binary(max_size=4), st.integers(0, 9))
@settings(max_examples=60)
def test_bytes_that_fell_out_or_in_end_in_statements_or_in_a_refusal(
    place: int, data: bytes, lost: int
) -> None:
    said(RAW[:place] + data + RAW[place + lost :])
