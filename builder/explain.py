"""Why two builds differ. Pure over their records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder import canonical
from builder.build_record import Record, RecordedStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which two builds differ: where, and the two values."""

    where: str
    first: str | None
    second: str | None


def differences(first: Record, second: Record) -> tuple[Difference, ...]:
    """Everything that was asked differently, then everything that came out differently. Steps are
    matched by name."""
    return (*_asked(first, second), *_came_out(first, second))


def _asked(first: Record, second: Record) -> Iterator[Difference]:
    yield from _compare("platform", first.platform, second.platform)
    yield from _compare("base", _base(first), _base(second))
    yield from _compare("settings", _plain(first.settings), _plain(second.settings))
    ours = {step.name: step for step in first.steps}
    theirs = {step.name: step for step in second.steps}
    for name in dict.fromkeys([*ours, *theirs]):
        one, two = ours.get(name), theirs.get(name)
        if one is None or two is None:
            yield Difference(
                where=f"step {name}",
                first=None if one is None else ", ".join(one.pins),
                second=None if two is None else ", ".join(two.pins),
            )
        else:
            yield from _compare(f"step {name}: kind", one.kind, two.kind)
            yield from _compare(f"step {name}", _plain(one.inputs), _plain(two.inputs))
    common = [name for name in ours if name in theirs]
    if common != [name for name in theirs if name in ours]:
        yield Difference(
            where="order of steps",
            first=", ".join(ours),
            second=", ".join(theirs),
        )


def _came_out(first: Record, second: Record) -> Iterator[Difference]:
    ours, theirs = _patches(first.steps), _patches(second.steps)
    for name in dict.fromkeys([*ours, *theirs]):
        yield from _compare(f"patch {name}", ours.get(name), theirs.get(name))
    ours, theirs = _posts(first.steps), _posts(second.steps)
    for path in sorted({*ours, *theirs}):
        yield from _compare(f"file {path}", ours.get(path), theirs.get(path))
    yield from _compare("image", str(first.digest), str(second.digest))


def _patches(steps: Sequence[RecordedStep]) -> dict[str, str]:
    """What became of each patch of a patch set."""
    return {patch.name: str(patch.state) for step in steps for patch in step.output.patches}


def _posts(steps: Sequence[RecordedStep]) -> dict[str, str]:
    return {
        file.path: "removed" if file.post is None else str(file.post)
        for step in steps
        for file in step.output.files
    }


def _base(record: Record) -> dict[str, Any]:
    """Of ``scratch``, nothing: each of the other's has a row of its own."""
    if (base := record.base) is None:
        return {}
    return {
        "manifest": str(base.manifest),
        "index": None if base.index is None else str(base.index),
        "reference": base.reference,
    }


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _compare(where: str, first: Any, second: Any) -> Iterator[Difference]:
    if first == second:
        return
    if isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys([*first, *second]):
            yield from _compare(f"{where}.{key}", first.get(key), second.get(key))
        return
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, pair in enumerate(zip(first, second, strict=True)):
            yield from _compare(f"{where}[{number}]", *pair)
        return
    yield Difference(where=where, first=_text(first), second=_text(second))


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return canonical.encode(value).decode()
