"""The header of a safetensors file (case 16)."""

import io
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import IntegrityError
from builder.models.safetensors import HEADER_LIMIT, Header, read_header
from tests.models.worlds import safetensors


def read(data: bytes) -> Header:
    return read_header(io.BytesIO(data), size=len(data), at="a.safetensors")


def raw(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def one(**changed: Any) -> dict[str, Any]:
    return {"t": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]} | changed}


def test_names_and_dtypes_are_read_whatever_the_order_of_the_data() -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "b": {"dtype": "BF16", "shape": [], "data_offsets": [4, 6]},
        "a": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]},
        "none": {"dtype": "F32", "shape": [0, 3], "data_offsets": [6, 6]},
        "f4": {"dtype": "F4", "shape": [4], "data_offsets": [6, 8]},
        "new": {"dtype": "Q7_NEW", "shape": [9], "data_offsets": [8, 9]},
    }
    assert read(raw(header, bytes(9))) == Header(
        dtypes={"b": "BF16", "a": "F32", "none": "F32", "f4": "F4", "new": "Q7_NEW"}
    )


def test_a_tensor_may_have_64_dimensions() -> None:
    assert read(raw(one(shape=[1] * 63 + [2]), bytes(4))).dtypes == {"t": "F16"}


def test_a_header_may_be_padded_with_blanks() -> None:
    assert read(raw(json.dumps(one()).encode() + b"   ", bytes(4))).dtypes == {"t": "F16"}


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(b"", "0 bytes cannot have a header of 0", id="empty"),
        pytest.param(b"1234567", "no safetensors file", id="seven bytes"),
        pytest.param(b"<html><body>", "no safetensors file", id="a page"),
        pytest.param(b"version https://git-lfs", "no safetensors file", id="pointer"),
        pytest.param(raw(b""), "not JSON", id="no header"),
        pytest.param(raw([]), "expected an object, got", id="a list"),
        pytest.param(raw(b'{"t": 1, "t": 2}'), "duplicate key 't'", id="twice"),
        pytest.param(raw(b"{" * 5000), "not JSON", id="nested"),
        pytest.param(raw({"__metadata__": {"a": 1}}), "no object of texts", id="metadata"),
        pytest.param(raw({"__metadata__": ["a"]}), "no object of texts", id="metadata is a list"),
        pytest.param(raw({"t": 1}), "expected dtype, shape", id="no tensor"),
        pytest.param(raw(one(extra=1)), "expected dtype, shape", id="unknown key"),
        pytest.param(raw(one(dtype=16)), "are none", id="dtype"),
        pytest.param(raw(one(shape=[-2])), "are none", id="negative"),
        pytest.param(raw(one(shape=[2.0])), "are none", id="float"),
        pytest.param(raw(one(shape=[True])), "are none", id="bool"),
        pytest.param(raw(one(shape=[1 << 63])), "are none", id="over 63 bits"),
        pytest.param(raw(one(shape=[1] * 65)), "are none", id="65 dimensions"),
        pytest.param(raw(one(shape=2)), "are none", id="a number for a shape"),
        pytest.param(raw(one(shape={})), "are none", id="an object for a shape"),
        pytest.param(raw(one(data_offsets=[0])), "are none", id="one offset"),
        pytest.param(raw(one(data_offsets=[4, 0])), "does not take", id="backwards"),
        pytest.param(
            raw(one() | {"u": one(dtype="X9", data_offsets=[4, 0])["t"]}),
            r"X9 of shape \[2\] does not take the bytes 4 to 0",
            id="backwards, of a size that nobody knows",
        ),
        pytest.param(raw(one(shape=[3])), r"F16 of shape \[3\] does not take", id="shape"),
        pytest.param(raw(one(), bytes(3)), "speaks of 4 bytes, 3 follow", id="cut"),
        pytest.param(raw(one(), bytes(5)), "speaks of 4 bytes, 5 follow", id="more"),
        pytest.param(raw(one(data_offsets=[1, 5]), bytes(5)), "at 0, got one at 1", id="hole"),
        pytest.param(
            raw(one() | {"u": one()["t"] | {"data_offsets": [2, 6]}}, bytes(6)),
            "a tensor at 4, got one at 2",
            id="overlap",
        ),
    ],
)  # fmt: skip
def test_what_is_no_safetensors_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(IntegrityError, match=rf"a\.safetensors.*{message}"):
        read(data)


def test_a_header_over_the_limit_is_refused_unread() -> None:
    length = HEADER_LIMIT + 1
    start = io.BytesIO(length.to_bytes(8, "little"))
    with pytest.raises(IntegrityError, match=f"a header of {length} bytes, the limit is"):
        read_header(start, size=length + 100, at="a.safetensors")


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.binary(max_size=20), max_size=5))
def test_what_was_written_is_read(tensors: dict[str, bytes]) -> None:
    tensors.pop("__metadata__", None)
    assert read(safetensors(tensors)).dtypes == dict.fromkeys(tensors, "U8")


@given(st.data())
def test_no_bytes_are_a_bug(data: st.DataObject) -> None:
    good = bytearray(safetensors({"a": b"12", "b": b"345"}, format="pt"))
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    with suppress(IntegrityError):
        read(bytes(good[:cut]))
