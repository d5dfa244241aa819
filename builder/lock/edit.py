"""Lockfiles that are there, changed: one entry, and every other byte as it was.

What is left as it was: comments, the order of keys and of names, blank lines, quotes, what stands
in braces, the kind of line end, a missing one at the end of the file. Within an entry, too, only
what differs is touched. Comments go only with the lines of a key that goes.
"""

from collections.abc import Mapping
from typing import Any

from builder.lock import codec
from builder.lock.codec_images import results_record
from builder.lock.model import Pin, Result, Waiver
from builder.strict_yaml import Writable
from builder.strict_yaml.edit import edited


def file_of(pin: Pin | Waiver) -> str:
    """The lockfile of a pin's kind."""
    return codec.kind_of(type(pin)).file


def put(data: bytes | None, pin: Pin | Waiver) -> bytes:
    """The lockfile of the pin's kind with this pin in it, added or in place of the one of its name.

    A new entry goes where its name sorts, where the names are sorted, otherwise to the end.
    ``data`` is ``None`` for a lockfile that is not there yet. Platforms, files and patches of an
    entry stay in the order that they have in the file, which means nothing.

    Raises:
        ProjectError: ``data`` is not what the lockfile must be, or would not be.
        ValueError: The result would not say the same pins and this one: a bug.
    """
    kind = codec.kind_of(type(pin))
    if data is None:
        return codec.write_pins(type(pin), {pin.name: pin})
    before = kind.read(data)
    return _changed(data, kind, before, _placed(before, pin.name, pin))


def remove(data: bytes, kind: type, name: str) -> bytes:
    """The lockfile of ``kind`` (:class:`PullPin`, say) without the entry ``name``.

    Raises:
        ProjectError: As for :func:`put`.
        KeyError: There is no such entry.
        ValueError: As for :func:`put`.
    """
    found = codec.kind_of(kind)
    before = found.read(data)
    if name not in before:
        raise KeyError(name)
    return _changed(data, found, before, {key: before[key] for key in before if key != name})


def put_result(data: bytes | None, result: Result) -> bytes:
    """The results of a variant with this one in them, in place of that of its platform.

    Raises:
        ProjectError: ``data`` is not what the file must be, or would not be.
        ValueError: As for :func:`put`.
    """
    if data is None:
        return codec.write_results(result.variant, (result,))
    file = codec.results_file(result.variant)
    before = {str(item.platform): item for item in codec.read_results(data, file=file)[1]}
    after = _placed(before, str(result.platform), result)
    old, new = results_record(before.values()), results_record(after.values())
    made = edited(data, {"results": old}, {"results": new}, at=file)
    _check(results_record(codec.read_results(made, file=file)[1]), new, file)
    return made


def _placed(before: Mapping[str, Any], name: str, value: object) -> Mapping[str, Any]:
    names = [*before] if name in before else [*before, name]
    if [*before] == sorted(before):
        names.sort()
    return {key: value if key == name else before[key] for key in names}


def _changed(
    data: bytes, kind: codec.Kind, before: Mapping[str, Any], after: Mapping[str, Any]
) -> bytes:
    entries: list[Mapping[str, Writable]]
    entries = [{name: kind.record(pin) for name, pin in pins.items()} for pins in (before, after)]
    made = edited(data, {kind.key: entries[0]}, {kind.key: entries[1]}, at=kind.file)
    found = {name: kind.record(pin) for name, pin in kind.read(made).items()}
    _check(found, entries[1], kind.file)
    return made


def _check(found: Writable, wanted: Writable, file: str) -> None:
    """Records compare without the order of their keys."""
    if found != wanted:
        raise ValueError(f"{file}: edited, it says {found!r}, wanted {wanted!r}")
