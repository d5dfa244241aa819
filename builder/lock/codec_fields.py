"""What the pins of several kinds have in common, both ways."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from builder.lock.model import Escrow
from builder.node import (
    Cursor,
    digest,
    file_path,
    name,
    reference,
    sequence_of,
    shortened,
    text,
    unique,
)
from builder.strict_yaml import Writable

_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z")
_BLANK = re.compile(r"\s")


def locked(node: Cursor) -> str:
    """When the pin was resolved: a full timestamp in UTC, ``2026-05-11T00:00:00Z``.

    It stays a text: it is shown and compared, never computed with.
    """
    value = text(node)
    try:
        if not _TIMESTAMP.fullmatch(value):
            raise ValueError(value)
        datetime.fromisoformat(value)
    except ValueError as error:
        raise node.error(
            f"expected a UTC timestamp, got {shortened(value)!r}",
            hint="for example 2026-05-11T00:00:00Z",
        ) from error
    return value


def repository(node: Cursor) -> str:
    """Where a git repository or a model is: a URL, a path, ``owner/name``.

    Which of them can be used is for those who fetch to say. Here: no blanks, and nothing that a
    command would take for an option.
    """
    value = text(node)
    if value.startswith("-") or _BLANK.search(value):
        raise node.error(f"expected a repository, got {shortened(value)!r}")
    return value


def ref(node: Cursor) -> str:
    """A branch, a tag or a full ref, as git takes it (git-check-ref-format, in part)."""
    value = text(node)
    if (
        value.startswith("-")
        or _BLANK.search(value)
        or ".." in value
        or set(value) & set("~^:?*[\\")
    ):
        raise node.error(f"expected a branch, a tag or a ref, got {shortened(value)!r}")
    return value


def escrow(node: Cursor) -> Escrow:
    """A place of ours: ``registry`` or ``layout``, and the digest to ask for."""
    if node.choice("registry", "layout") == "registry":
        place = node.take("registry", reference)
        if place.digest is not None:
            raise node.error(
                "the registry names a digest", hint="write the digest under 'digest' only"
            )
        value = Escrow(registry=place, digest=node.take("digest", digest))
    else:
        value = Escrow(layout=node.take("layout", file_path), digest=node.take("digest", digest))
    node.done()
    return value


def failing(node: Cursor) -> tuple[str, ...]:
    """Names of variants, each once."""
    return unique(sequence_of(name))(node)


def escrow_record(value: Escrow) -> Mapping[str, Writable]:
    """The entry of an escrow place."""
    return present(
        registry=optional_text(value.registry), layout=value.layout, digest=str(value.digest)
    )


def by_key(items: Iterable[tuple[str, Writable]]) -> Mapping[str, Writable]:
    """A mapping to write, in the order given.

    Raises:
        ValueError: A key twice, which a file cannot hold: a bug of the caller.
    """
    value: dict[str, Writable] = {}
    for key, item in items:
        if value.setdefault(key, item) is not item:
            raise ValueError(f"{key!r} stands twice")
    return value


def optional_text(value: object | None) -> str | None:
    """The text of a digest, an id, a reference, where there is one."""
    return None if value is None else str(value)


def present(**fields: "Writable | None") -> dict[str, Writable]:
    """The fields that are known: what is ``None`` or empty is left out, not written as null."""
    return {
        key: value
        for key, value in fields.items()
        if value is not None and (isinstance(value, int) or value)
    }
