"""JSON that is read, whoever wrote it: the one place where ``json`` parses.

The parser of the standard library recurses once for each level, and gives up where the stack ends:
how deep that is depends on who asked, and a garbage collection that falls into that moment loses
the finalizers it wanted to run (their call ends with ``RecursionError``, on stderr). So the depth
is bounded before anything is parsed.
"""

import json
import re
from collections.abc import Callable
from typing import Any

DEPTH_LIMIT = 100
"""Arrays and objects within each other. An image's config has 3, a statement of the demo 10."""

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""A text, also one that does not end: looking for an end again from each quote in it would take
time that grows with the square of its length. The parser refuses it."""
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ALIKE = bytes.maketrans(b"{}", b"[]")


def loads(
    data: bytes,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
) -> Any:
    """Parse UTF-8 JSON, as :func:`json.loads` does; what is stricter is with the caller.

    Args:
        data: The bytes.
        pairs: Makes the value of an object (``object_pairs_hook``).
        constant: Makes the value of ``NaN`` and the infinities, which are no JSON
            (``parse_constant``).

    Raises:
        ValueError: Not UTF-8, not JSON, nested deeper than :data:`DEPTH_LIMIT`.
    """
    if _is_deep(data):
        raise ValueError(f"nested deeper than {DEPTH_LIMIT}")
    return json.loads(data.decode(), object_pairs_hook=pairs, parse_constant=constant)


def _is_deep(data: bytes) -> bool:
    """Whether brackets outside of strings are nested deeper than the limit.

    Each round takes away the innermost pairs, so that as many rounds empty a text as it is deep.
    One whose brackets do not match is left to the parser, unless it opens too many.
    """
    if data.count(b"[") + data.count(b"{") <= DEPTH_LIMIT:
        return False
    brackets = _STRING.sub(b"", data).translate(_ALIKE, _ALL_BUT_BRACKETS)
    for _ in range(DEPTH_LIMIT):
        if b"[]" not in brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return b"[]" in brackets or brackets.count(b"[") > DEPTH_LIMIT
