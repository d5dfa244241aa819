"""The one JSON encoding of what is hashed, and the one reader of JSON from outside."""

from collections import OrderedDict

import pytest

from builder import canonical
from builder.errors import IntegrityError


def test_the_encoding_is_that_of_rfc_8785() -> None:
    value = {"b": [1, True, None, '\u00e9\n"/'], "a": {"z": (), "y": {}}, "A": -1}
    assert canonical.encode(value) == (
        '{"A":-1,"a":{"y":{},"z":[]},"b":[1,true,null,"\u00e9\\n\\"/"]}'.encode()
    )
    assert canonical.encode(OrderedDict(b=1, a=2)) == canonical.encode({"a": 2, "b": 1})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1.0]}, "canonical JSON has no floats, got 1.0"),
        ({"a": {1: "x"}}, "canonical JSON takes string keys, got 1"),
        ({"a": b"x"}, "Object of type bytes is not JSON serializable"),
    ],
)
def test_what_has_no_one_spelling_is_a_bug(value: object, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}$"):
        canonical.encode(value)


def test_what_is_read_is_what_was_written() -> None:
    value = {"a": [1, "\u00e9\U0001f600", {"b": None}]}
    assert canonical.decode(canonical.encode(value), at="it") == value
    assert canonical.decode(b'"\\ud83d\\ude00"', at="it") == "\U0001f600"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b'{"a":{"b":1,"b":1}}', "it: duplicate key 'b'", id="a key twice"),
        pytest.param(b"[NaN]", "it: NaN is not JSON", id="NaN"),
        pytest.param(b"[-Infinity]", "it: -Infinity is not JSON", id="infinity"),
        pytest.param(b"[1,]", "it: not JSON: ", id="a comma too many"),
        pytest.param(b"", "it: not JSON: ", id="nothing"),
        pytest.param(b'"\xff"', "it: not JSON: ", id="not UTF-8"),
        pytest.param(b"\xef\xbb\xbf[]", "it: not JSON: ", id="a byte order mark"),
        pytest.param(b"[" * 100_000, "it: not JSON: nested deeper than 100", id="nested too deep"),
        pytest.param(b"[" + b"9" * 5000 + b"]", "it: not JSON: ", id="digits without end"),
        pytest.param(b'{"\\uD800":1}', "it: not JSON: ", id="half of a surrogate pair"),
        pytest.param(b" " * 33, "it: 33 bytes of JSON, the limit is 32", id="too long"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(data: bytes, message: str) -> None:
    limit = 32 if message.endswith("32") else 1 << 20
    with pytest.raises(IntegrityError) as caught:
        canonical.decode(data, at="it", limit=limit)
    assert caught.value.message.startswith(message)
