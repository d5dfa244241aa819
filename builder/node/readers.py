"""Readers: from a cursor to a text, a number, a digest, a path.

A text is what was written, quotes or not: ``3.10``, ``yes`` and a commit id of digits only are
exact. Only what every YAML reader takes for null is no text. A number or a truth value, in turn,
stands without quotes.
"""

import re
from collections.abc import Callable
from typing import TypeVar

from builder.digest import Digest, ObjectId
from builder.errors import ProjectError, UsageError
from builder.node.cursor import Cursor, describe, shortened
from builder.oci import Platform
from builder.reference import Reference

T = TypeVar("T")
K = TypeVar("K")

TEXT_LIMIT = 4096
"""The most characters of a text on one line: a path, a URL, an option."""
PART_LIMIT = 255
"""The most bytes of one name of a path: that of all file systems."""
NAME_LIMIT = 100
"""The most characters of the name of a pin, a variant, an overlay or a step."""
INTEGER_LIMIT = 2**53
"""Whole numbers stay below this, so that every JSON reader keeps them exact (RFC 8259)."""

_WHITEOUT = ".wh."  # OCI image-spec, layer.md, "Whiteouts"
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
_INTEGER = re.compile("0|[1-9][0-9]{0,15}")
# What image layouts and engines take for a name, too: a variant is called so in a store.
_NAME = re.compile("[a-z0-9]+(?:(?:[._-]|--)[a-z0-9]+)*")
_MODE = re.compile("0[0-7]{3}")
_BOOLEANS = {"true": True, "false": False}


def any_text(node: Cursor) -> str:
    """A text of any length and any lines, empty too (in quotes). No NUL."""
    scalar = node.scalar("a text")
    if scalar.is_null:
        raise node.error(
            "expected a text, got nothing",
            hint='write "" for an empty text, or leave the key out',
        )
    if "\0" in scalar.text:
        raise node.error("a text with a NUL character")
    return scalar.text


def text(node: Cursor) -> str:
    """A text on one line, not empty."""
    if node.scalar("a text").is_null:
        raise node.error("expected a text, got nothing", hint="leave the key out, or give a value")
    value = any_text(node)
    if not value:
        raise node.error("expected a text, got an empty one")
    if len(value) > TEXT_LIMIT:
        raise node.error(f"a text of {len(value)} characters, the limit is {TEXT_LIMIT}")
    if _CONTROL.search(value):
        raise node.error(f"a text on one line, got {shortened(value)!r}")
    return value


def text_or_null(node: Cursor) -> str | None:
    """A text of any lines, or the word ``null``, written out."""
    scalar = node.scalar("a text or null")
    if scalar.is_null and scalar.text:
        return None
    if scalar.is_null:
        raise node.error(
            "expected a text or null, got nothing",
            hint='write null to remove it, or "" for an empty text',
        )
    return any_text(node)


def integer(node: Cursor) -> int:
    """A whole number, 0 or more, in decimal digits without quotes."""
    scalar = node.scalar("a whole number")
    if not scalar.plain or not _INTEGER.fullmatch(scalar.text):
        raise node.error(f"expected a whole number, got {describe(scalar)}")
    number = int(scalar.text)
    if number >= INTEGER_LIMIT:
        raise node.error(f"expected a whole number below 2**53, got {number}")
    return number


def positive(node: Cursor) -> int:
    """A whole number, 1 or more."""
    number = integer(node)
    if number == 0:
        raise node.error("expected a whole number from 1 on, got 0")
    return number


def boolean(node: Cursor) -> bool:
    """``true`` or ``false``, without quotes."""
    scalar = node.scalar("true or false")
    if not scalar.plain or scalar.text not in _BOOLEANS:
        raise node.error(f"expected true or false, got {describe(scalar)}")
    return _BOOLEANS[scalar.text]


def version_1(node: Cursor) -> int:
    """The version of the format: ``1``."""
    number = integer(node)
    if number != 1:
        raise node.error(
            f"version {number} is not supported, wanted 1", hint="upgrade builder to read this file"
        )
    return number


def word(*choices: str) -> Callable[[Cursor], str]:
    """A reader for one of some words."""

    def read(node: Cursor) -> str:
        wanted = " or ".join(repr(choice) for choice in choices)
        scalar = node.scalar(wanted)
        if scalar.text not in choices:
            raise node.error(f"expected {wanted}, got {describe(scalar)}")
        return scalar.text

    return read


def is_name(value: str) -> bool:
    """Whether ``value`` can be the name of a pin, a variant, an overlay or a step."""
    return len(value) <= NAME_LIMIT and _NAME.fullmatch(value) is not None


def name(node: Cursor) -> str:
    """The name of a pin, a variant, an overlay or a step: also a file name, on any system."""
    value = text(node)
    if len(value) > NAME_LIMIT:
        raise node.error(f"a name of {len(value)} characters, the limit is {NAME_LIMIT}")
    if not _NAME.fullmatch(value):
        raise node.error(
            f"{value!r} is not a name",
            hint="a name has lower-case letters and digits, joined by single '.', '_' or '-', or by"
            " '--'",
        )
    return value


def digest(node: Cursor) -> Digest:
    """``sha256:`` and 64 hex digits."""
    return Digest.parse(_short(node), at=node.at)


def object_id(node: Cursor) -> ObjectId:
    """A git object id in full."""
    return ObjectId.parse(_short(node), at=node.at)


def platform(node: Cursor) -> Platform:
    """``os/architecture[/variant]``."""
    value = text(node)
    try:
        return Platform.parse(value, at=node.at)
    except UsageError as error:
        raise ProjectError(error.message, hint=error.hint) from error


def reference(node: Cursor) -> Reference:
    """An image reference, with or without tag and digest."""
    value = text(node)
    try:
        return Reference.parse(value, at=node.at)
    except UsageError as error:
        raise ProjectError(error.message, hint=error.hint) from error


def file_path(node: Cursor) -> str:
    """A relative path with one spelling: no ``.``, ``..`` or empty parts, no backslash."""
    value = text(node)
    if value.startswith("/"):
        raise node.error(f"expected a relative path, got {shortened(value)!r}")
    return _checked_path(node, value, value)


def absolute_path(node: Cursor) -> str:
    """A path from the root, with one spelling. The root itself is ``/``."""
    value = text(node)
    if not value.startswith("/"):
        raise node.error(f"expected a path that starts with '/', got {shortened(value)!r}")
    return value if value == "/" else _checked_path(node, value, value[1:])


def target_path(node: Cursor) -> str:
    """Where a file goes: absolute, or relative to the packages directory of the image. No name of
    it may be one that no file of an image can have."""
    value = text(node)
    path = _checked_path(node, value, value.removeprefix("/"))
    for part in path.split("/"):
        if part.startswith(_WHITEOUT):
            raise node.error(
                f"a name that starts with {_WHITEOUT!r} would delete files: {shortened(value)!r}",
                hint="no file of an image can have it; to delete a file, use 'remove'",
            )
        if len(part.encode("utf-8", "surrogateescape")) > PART_LIMIT:
            raise node.error(f"a name over {PART_LIMIT} bytes: {shortened(value)!r}")
    return path


def target_directory(node: Cursor) -> str:
    """A target, or ``/`` for the image's root, or ``.`` for the packages directory itself."""
    return value if (value := text(node)) in {"/", "."} else target_path(node)


def mode(node: Cursor) -> int:
    """Permission bits in octal: ``"0644"``. Never setuid, setgid or sticky."""
    value = text(node)
    if not _MODE.fullmatch(value):
        raise node.error(
            f"expected a mode of four octal digits that starts with 0, got {shortened(value)!r}",
            hint='for example "0644" or "0755"',
        )
    return int(value, 8)


def sequence_of(reader: Callable[[Cursor], T]) -> Callable[[Cursor], tuple[T, ...]]:
    """A reader for a list."""
    return lambda node: tuple(reader(item) for item in node.elements())


def some_of(reader: Callable[[Cursor], T]) -> Callable[[Cursor], tuple[T, ...]]:
    """A reader for a list that is not empty."""

    def read(node: Cursor) -> tuple[T, ...]:
        if not (items := node.elements()):
            raise node.error("expected a list of one or more, got an empty one")
        return tuple(reader(item) for item in items)

    return read


def unique(reader: Callable[[Cursor], tuple[str, ...]]) -> Callable[[Cursor], tuple[str, ...]]:
    """A reader for a list of texts in which none stands twice."""

    def read(node: Cursor) -> tuple[str, ...]:
        values = reader(node)
        if len(set(values)) != len(values):
            twice = next(value for value in values if values.count(value) > 1)
            raise node.error(f"{twice!r} stands twice")
        return values

    return read


def mapping_of(
    key: Callable[[Cursor], K], reader: Callable[[Cursor], T]
) -> Callable[[Cursor], tuple[tuple[K, T], ...]]:
    """A reader for a mapping with free keys, in the order of the file."""
    return each(key, lambda found, node: (found, reader(node)))


def each(
    key: Callable[[Cursor], K], reader: Callable[[K, Cursor], T]
) -> Callable[[Cursor], tuple[T, ...]]:
    """A reader for a mapping whose values hold their own keys, in the order of the file."""
    return lambda node: tuple(
        reader(key(node.key(found)), child) for found, child in node.entries()
    )


def _short(node: Cursor) -> str:
    """A text that is quoted whole in messages."""
    value = text(node)
    if len(value) > 200:
        raise node.error(f"a text of {len(value)} characters, the limit is 200")
    return value


def _checked_path(node: Cursor, value: str, relative: str) -> str:
    parts = relative.split("/")
    if ".." in parts:
        raise node.error(f"a path that leads out: {shortened(value)!r}", hint="leave '..' out")
    if "" in parts or "." in parts or "\\" in value:
        raise node.error(
            f"not the plain spelling of a path: {shortened(value)!r}",
            hint="leave out empty and '.' parts, a slash at the end, and backslashes",
        )
    return value
