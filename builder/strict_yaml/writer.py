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

# A colon is part of a text as long as no blank follows it (YAML 1.2.2, section 7.3.3, ns-plain).
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./@+-]*(?::[A-Za-z0-9_./@+-]+)*")
# YAML 1.1, types bool and null (http://yaml.org/type/), in any case.
_TYPED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = re.compile('["\\\\\0-\x1f\x7f-\xa0\xad\u2028\u2029\ud800-\udfff\ufeff\ufff0-\uffff]')
_IN_SINGLE = re.compile(r'["\\]')
_SINGLE = "'"
_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_SIMPLE_KEY_LIMIT = 1024
"""A key that stands before its colon on one line (YAML 1.2.2, section 7.4.2)."""


def write(value: Mapping[str, Writable], *, at: str) -> bytes:
    """The document that holds ``value``: keys in the order given, a line feed at the end.

    Raises:
        ProjectError: A text holds half of a surrogate pair (a file name that is not UTF-8, say).
            ``at`` names the document for the message.
    """
    return encoded("".join(f"{line}\n" for line in block(value)) or "{}\n", at=at)


def encoded(text: str, *, at: str) -> bytes:
    """The bytes of a document.

    Raises:
        ProjectError: As for :func:`write`.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        piece = text[max(0, error.start - 40) : error.end]
        raise ProjectError(
            f"{at}: a text that is not UTF-8 cannot be written: {piece!r}"
        ) from error


def block(value: Writable, *, step: int = 2) -> Iterator[str]:
    """The lines of a collection that is not empty, without the indentation of where it stands;
    each mapping in it ``step`` blanks further in than its key."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entry(key, item, step)
    elif isinstance(value, Sequence):
        for item in value:
            first, *rest = [flow(item)] if _is_inline(item) else block(item, step=step)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)


def _entry(key: str, item: Writable, step: int) -> Iterator[str]:
    name = _text(key)
    if len(name) >= _SIMPLE_KEY_LIMIT:
        yield f"? {name}"
        name = ""
    if _is_inline(item):
        yield f"{name}: {flow(item)}"
        return
    yield f"{name}:"
    yield from (f"{'':{step}}{line}" for line in block(item, step=step))


def _is_inline(value: Writable) -> bool:
    return isinstance(value, str | int) or not value


def flow(value: Writable) -> str:
    """A value on one line."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(flow_entry(key, item) for key, item in value.items())}}}"
    return f"[{', '.join(flow(item) for item in value)}]"


def flow_entry(key: str, item: Writable) -> str:
    """A key with its value, for a mapping on one line."""
    name = _text(key)
    return f"{'? ' if len(name) >= _SIMPLE_KEY_LIMIT else ''}{name}: {flow(item)}"


def quoted(text: str, style: str) -> str:
    """A text in quotes of this ``style`` where it can stand in them; without a style, as
    :func:`write` has it."""
    if style == '"' or (style == "'" and (_ESCAPED.search(_IN_SINGLE.sub("", text)))):
        return f'"{_ESCAPED.sub(_escape, text)}"'
    return f"'{text.replace(_SINGLE, 2 * _SINGLE)}'" if style == _SINGLE else _text(text)


def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _TYPED else quoted(text, '"')


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if 0xD800 <= code < 0xE000:  # no escape can carry it either; encoding refuses it
        return character
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
