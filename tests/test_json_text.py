import gc
import json
import sys
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.json_text import DEPTH_LIMIT, loads

LISTS = b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT


def depth(value: Any) -> int:
    """The oracle: of what the parser made of it."""
    if isinstance(value, dict):
        return 1 + max((depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth(item) for item in value), default=0)
    return 0


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(LISTS, id="lists"),
        pytest.param(b'{"a":' * DEPTH_LIMIT + b"1" + b"}" * DEPTH_LIMIT, id="objects"),
        pytest.param(b'{"a":[' * 50 + b"]}" * 50, id="both"),
        pytest.param(b"[" + b"[]," * 100_000 + b"[]]", id="beside each other"),
        pytest.param(b"[" * 99 + b"[" + b"]" * 100, id="at the end"),
        pytest.param(b"[" + json.dumps("[" * 1000).encode() + b"]", id="brackets in a text"),
        pytest.param(rb'["\\\"' + b"[" * 1000 + rb'\\"]', id="a text with quotes"),
        pytest.param(b'{"' + b"{" * 1000 + b'":1}', id="a key of brackets"),
    ],
)
def test_what_is_not_too_deep_is_read_as_the_standard_library_reads_it(data: bytes) -> None:
    assert loads(data) == json.loads(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" + LISTS + b"]", id="one more"),
        pytest.param(b'{"a":' + LISTS + b"}", id="one more object"),
        pytest.param(b"[" * 100_000, id="without end"),
        pytest.param(b'{"a":' * 2000, id="objects without end"),
        pytest.param(b"[[]," * 101 + b"1" + b"]" * 101, id="with others beside"),
        pytest.param(b'["]]]]",' * 101 + b"1" + b"]" * 101, id="closed in texts"),
        pytest.param(b'["\\"]]]]",' * 101 + b"1" + b"]" * 101, id="closed after a quote"),
    ],
)
def test_what_is_too_deep_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=f"^nested deeper than {DEPTH_LIMIT}$"):
        loads(data)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"]" * 500 + b"[" * 100, id="closed first"),
        pytest.param(b'["' + b"[" * 99, id="a text without end"),
        pytest.param(b'["' + b"[" * 1000 + b'\\"' * 1_000_000, id="a text of quotes without end"),
        pytest.param(b'["' + b"[" * 1000 + b"\\", id="a text that ends in an escape"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_json_is_told_by_the_parser(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^(?!nested)"):
        loads(data)


TEXTS = st.text(alphabet='[]{}"\\,:a', max_size=8)
VALUES = st.recursive(
    TEXTS | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(value=VALUES, around=st.integers(min_value=0, max_value=DEPTH_LIMIT + 2))
def test_the_depth_is_that_of_the_value(value: Any, around: int) -> None:
    for _ in range(around):
        value = [value, "]"]
    data = json.dumps(value).encode()
    if depth(value) > DEPTH_LIMIT:
        with pytest.raises(ValueError, match="nested deeper"):
            loads(data)
    else:
        assert loads(data) == value


def test_a_collection_in_between_loses_no_finalizer() -> None:
    """Where the stack ends a finalizer cannot run, and is gone all the same. A collection starts
    after so many objects as the threshold says: at every depth, one after the other."""
    ran: list[int] = []
    before = gc.get_threshold()
    thresholds = range(1, sys.getrecursionlimit())
    gc.freeze()
    try:
        for threshold in thresholds:
            gc.set_threshold(0)
            gc.collect()
            weakref.finalize(Cycle(), ran.append, threshold)
            gc.set_threshold(threshold)
            with pytest.raises(ValueError, match="nested deeper"):
                loads(b"[" * 100_000)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
    gc.collect()
    assert sorted(ran) == list(thresholds)


class Cycle:
    """What a collection alone finds."""

    def __init__(self) -> None:
        self.itself = self
