"""A JSON document with one thing wrong at a time."""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
OTHER: tuple[Any, ...] = (None, True, 7, "", "odd", [], ["odd"], {}, {"odd": 1})
"""Values to put in another's place."""


def shown(path: Path) -> str:
    """A path for people: ``a.b[0]``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a document."""
    yield path
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from paths(item, (*path, key))


def without(document: Any) -> Iterator[tuple[str, bytes]]:
    """Each key left out."""
    for path in paths(document):
        if path:
            yield shown(path), _raw(_edited(document, path, delete=True))


def with_another(document: Any) -> Iterator[tuple[str, Any, bytes]]:
    """Each value of another type, or another text."""
    for path in paths(document):
        for other in OTHER:
            if _at(document, path) != other:
                yield shown(path), other, _raw(_edited(document, path, other))


def with_one_more(document: Any) -> Iterator[tuple[str, bytes]]:
    """A key in each object that does not belong there."""
    for path in paths(document):
        value = _at(document, path)
        if isinstance(value, dict):
            yield shown(path), _raw(_edited(document, path, {**value, "odd": 1}))


def twice(document: Any) -> Iterator[tuple[str, bytes]]:
    """Each key twice, once with the value it has."""
    for path in paths(document):
        if path and isinstance(path[-1], str):
            marked = _edited(document, path, {"\0": _at(document, path)})
            text = json.dumps(marked, separators=(",", ":"))
            inner = json.dumps(_at(document, path), separators=(",", ":"))
            key = json.dumps(path[-1])
            hole = f'{key}:{{"\\u0000":{inner}}}'
            assert text.count(hole) == 1
            yield shown(path), text.replace(hole, f"{key}:{inner},{key}:{inner}").encode()


def flipped(raw: bytes, *, one_each: bool = False) -> Iterator[tuple[int, bytes]]:
    """Each bit of each byte; or one of each byte, another from byte to byte."""
    for position in range(len(raw)):
        for bit in [position % 7] if one_each else range(8):
            changed = bytearray(raw)
            changed[position] ^= 1 << bit
            yield position, bytes(changed)


def _raw(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _edited(document: Any, path: Path, new: Any = None, *, delete: bool = False) -> Any:
    if not path:
        return new
    copy = json.loads(json.dumps(document))
    holder = _at(copy, path[:-1])
    if delete:
        del holder[path[-1]]
    else:
        holder[path[-1]] = new
    return copy
