"""One JSON encoding for everything that is hashed, and one strict reader for JSON from outside.

The encoding is that of RFC 8785 for the values we allow (no floats): keys sorted, no blanks,
UTF-8, no escapes beyond those that JSON demands. Keys are ASCII in every document of ours, so that
sorting by code point and by UTF-16 unit agree.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from builder import json_text
from builder.errors import IntegrityError


def encode(value: object) -> bytes:
    """Encode to canonical bytes. Tuples count as arrays.

    Raises:
        TypeError: A float, or a type that JSON does not have: a bug of the caller.
        IntegrityError: A text that no UTF-8 can hold: a file name in another encoding, half of a
            surrogate pair.
    """
    _refuse_floats(value)
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = error.object[max(0, error.start - 40) : error.end + 40]
        raise IntegrityError(
            f"not Unicode, and cannot be recorded: {around!r}",
            hint="names and texts must be UTF-8",
        ) from error


def _refuse_floats(value: object) -> None:
    if isinstance(value, float):
        raise TypeError(f"canonical JSON has no floats, got {value!r}")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"canonical JSON takes string keys, got {key!r}")
            _refuse_floats(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_floats(item)


def decode(data: bytes, *, at: str, limit: int = 16 << 20) -> Any:
    """Parse JSON that came from outside, refusing what two readers could read differently.

    Args:
        data: The bytes.
        at: What they are, for the message.
        limit: The most bytes that are looked at.

    Raises:
        IntegrityError: Too large, not UTF-8, not JSON, a duplicate key, ``NaN``, nested too deep,
            half of a surrogate pair (RFC 7493, 2.1), which no encoding has.
    """
    if len(data) > limit:
        raise IntegrityError(f"{at}: {len(data)} bytes of JSON, the limit is {limit}")
    try:
        value = json_text.loads(data, pairs=_unique(at), constant=_refuse_constant(at))
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError as error:  # also digits without end
        raise IntegrityError(f"{at}: not JSON: {error}") from error
    return value


def spellings(*names: str) -> Mapping[str, str]:
    """Names of fields, for :func:`refuse_alike`."""
    return {name.casefold(): name for name in names}


def refuse_alike(fields: Mapping[str, Any], known: Mapping[str, str], *, at: str) -> None:
    """Refuse a key that is a known one but for its case: engines are written in Go, whose reader of
    JSON takes either for the field, and of both the last.

    Args:
        fields: An object with fields. What is a map there (annotations) knows case.
        known: The names of its fields, by :func:`spellings`.

    Raises:
        IntegrityError: There is one.
    """
    for key in fields:
        if (wanted := known.get(key.casefold(), key)) != key:
            raise IntegrityError(f"{at}: the key {key!r}, which some readers take for {wanted!r}")


def _unique(at: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(items)
        if len(value) != len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise IntegrityError(f"{at}: duplicate key {twice!r}")
        return value

    return pairs


def _refuse_constant(at: str) -> Any:
    def refuse(text: str) -> NoReturn:
        raise IntegrityError(f"{at}: {text} is not JSON")

    return refuse
