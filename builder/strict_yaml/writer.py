"""Values to YAML text, with one way to write each value.

A text is written without quotes only if it is made of letters, digits and a few signs, starts with
a letter, and is no word that YAML 1.1 gives a type to; so every YAML reader takes it for a text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from builder.errors import ProjectError

Writable: TypeAlias = "str | int | Mapping[str, Writable] | Sequence[Writable]"
"""What can be written. ``bool`` is an ``int`` and is written as ``true`` or ``false``."""

# Compiled when something is first written: most commands only read.
# A colon is part of a text as long as no blank follows it (YAML 1.2.2, section 7.3.3, ns-plain).
_PLAIN = r"[A-Za-z][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*"
# YAML 1.1, types bool and null (http://yaml.org/type/), in any case.
_TYPED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = '["\\\\\0-\x1f\x7f-\xa0\xad\u2028\u2029\ud800-\udfff\ufeff\ufff0-\uffff]'
_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_SIMPLE_KEY_LIMIT = 1024
"""A key that stands before its colon on one line (YAML 1.2.2, section 7.4.2)."""


def write(value: Mapping[str, Writable], *, at: str) -> bytes:
    """The document that holds ``value``: keys in the order given, a line feed at the end.

    Raises:
        ProjectError: A text holds half of a surrogate pair (a file name that is not UTF-8, say).
            ``at`` names the document for the message.
    """
    text = "".join(f"{line}\n" for line in _lines(value)) or "{}\n"
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        piece = text[max(0, error.start - 40) : error.end]
        raise ProjectError(
            f"{at}: a text that is not UTF-8 cannot be written: {piece!r}"
        ) from error


def _lines(value: Writable) -> Iterator[str]:
    """The lines of a collection, without the indentation of where it stands."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entry(key, item)
    elif isinstance(value, Sequence):
        for item in value:
            first, *rest = [_inline(item)] if _is_inline(item) else _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)


def _entry(key: str, item: Writable) -> Iterator[str]:
    name = _text(key)
    if len(name) >= _SIMPLE_KEY_LIMIT:
        yield f"? {name}"
        name = ""
    if _is_inline(item):
        yield f"{name}: {_inline(item)}"
        return
    yield f"{name}:"
    yield from (f"  {line}" for line in _lines(item))


def _is_inline(value: Writable) -> bool:
    return isinstance(value, str | int) or not value


def _inline(value: Writable) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return "{}" if isinstance(value, Mapping) else "[]"


def _text(text: str) -> str:
    if re.fullmatch(_PLAIN, text) and text.lower() not in _TYPED:
        return text
    return f'"{re.sub(_ESCAPED, _escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if 0xD800 <= code < 0xE000:  # no escape can carry it either; encoding refuses it
        return character
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
