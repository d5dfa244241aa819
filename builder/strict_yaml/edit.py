"""Change what a document says, and leave every byte that says something else.

Two values are compared, what the document says and what it is to say, and only where they differ
its text is touched, in the style that it has there. Comments stay, but for those on the lines of a
key or an item that goes.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from builder.strict_yaml.flow import flow_edits
from builder.strict_yaml.spans import BLOCK, Slot, Span, spans
from builder.strict_yaml.writer import Writable, block, encoded, flow, quoted

_BREAK = re.compile(r"\r\n|\n|\r")
_HEADER = re.compile(r"[|>][0-9+-]*")
_STEP = 2

Edit: TypeAlias = tuple[int, int, str]
"""Characters from, to, and what stands there instead."""
_Item: TypeAlias = "tuple[str | None, Writable]"
"""A key and its value, or an item of a list."""


def edited(data: bytes, old: Writable, new: Writable, *, at: str) -> bytes:
    """``data``, a document that the reader accepts and that says ``old``, made to say ``new``.

    What the document says beside ``old`` stays. The order of keys is that of the document; a new
    one goes behind the one that it follows in ``new``. ``at`` names the document for messages.

    Raises:
        ProjectError: As for :func:`builder.strict_yaml.write`.
    """
    if old == new:
        return data
    text = data.decode()
    pieces, done = [], 0
    edits = _Editor(text).value(Slot(0, None, 0, spans(text)), old, new, step=_STEP)
    for start, end, piece in sorted(edits, key=lambda edit: edit[0]):
        pieces += [text[done:start], piece]
        done = max(done, end)
    return encoded("".join([*pieces, text[done:]]), at=at)


class _Editor:
    """Finds the edits. Those at one place are in the order in which they are to take effect."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = _BREAK.search(text)
        self._usual_break = found[0] if found else "\n"

    def value(
        self,
        slot: Slot,
        old: "Writable | None",
        new: Writable,
        *,
        step: int,
        column: int | None = 0,
    ) -> Iterator[Edit]:
        """Make the value in ``slot`` say ``new``. ``column`` is that of the block mapping that it
        stands in; ``None`` for a flow collection."""
        span = slot.value
        step = _step(span, step)
        inside = self._has_inside(span) and (new or span.style != BLOCK)
        if inside and isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from self._mapping(span, old, new, step=step)
        elif inside and isinstance(old, list | tuple) and isinstance(new, list | tuple):
            yield from self._sequence(span, old, new, step=step)
        elif column is not None and isinstance(new, Mapping | list | tuple) and new:
            yield from self._take_out(slot)
            lines = block(new, step=step)
            yield self._lines_behind(span.end, lines, indent=column + step)
        elif span.style == BLOCK:
            yield from self._take_out(slot)
            yield slot.colon, slot.colon, f" {flow(new)}"
        else:
            yield from self._scalar(span, new)

    def _has_inside(self, span: Span) -> bool:
        """Whether something stands in a collection that is not to go with it: a comment, too."""
        is_scalar = span.kind == "scalar"
        return bool(span.slots) or (not is_scalar and "#" in self._text[span.start : span.end])

    def _scalar(self, span: Span, new: Writable) -> Iterator[Edit]:
        text = quoted(new, span.style) if isinstance(new, str) else flow(new)
        if span.style in {"|", ">"}:
            header = _HEADER.match(self._text, span.start)
            assert header is not None
            yield span.start, header.end(), text
            yield self._line_end(span.start), span.end, ""
        else:
            yield span.start, span.end, text

    def _take_out(self, slot: Slot) -> Iterator[Edit]:
        """Remove a value from behind its key."""
        span = slot.value
        if span.style == BLOCK:
            yield from map(self._without, span.slots)
        else:
            before = self._text[slot.colon : span.start]
            yield slot.colon + len(before.rstrip(" ")), span.end, ""

    def _mapping(
        self,
        span: Span,
        old: Mapping[str, Writable],
        new: Mapping[str, Writable],
        *,
        step: int,
    ) -> Iterator[Edit]:
        places = {slot.key: number for number, slot in enumerate(span.slots)}
        column = span.column if span.style == BLOCK else None
        added: dict[int, list[_Item]] = {}
        behind = -1
        for key, value in new.items():
            place = places.get(key)
            if place is None:
                added.setdefault(behind, []).append((key, value))
                continue
            behind = place
            if key not in old or old[key] != value:
                slot = span.slots[place]
                yield from self.value(slot, old.get(key), value, step=step, column=column)
        kept = {place for key, place in places.items() if key in new or key not in old}
        yield from self._slots(span, kept, added, step=step)

    def _sequence(
        self, span: Span, old: Sequence[Writable], new: Sequence[Writable], *, step: int
    ) -> Iterator[Edit]:
        """Items that are the same from the start and from the end stay as they are."""
        head = _same(old, new)
        tail = min(_same(old[::-1], new[::-1]), len(old) - head, len(new) - head)
        kept = {*range(head), *range(len(old) - tail, len(old))}
        added: list[_Item] = [(None, item) for item in new[head : len(new) - tail]]
        yield from self._slots(span, kept, {head - 1: added} if added else {}, step=step)

    def _slots(
        self,
        span: Span,
        kept: Collection[int],
        added: Mapping[int, Sequence[_Item]],
        *,
        step: int,
    ) -> Iterator[Edit]:
        """Leave the ``kept`` slots; put what is ``added`` behind the slot of its number."""
        if span.style != BLOCK:
            yield from flow_edits(self._text, span, kept, added)
            return
        for number, slot in enumerate(span.slots):
            if number not in kept:
                yield self._without(slot)
        apart = span.slots and self._are_apart(span.slots)
        for number, items in added.items():
            lines: list[str] = []
            for key, value in items:
                lines += [""] if apart and (lines or number >= 0) else []
                lines += block([value] if key is None else {key: value}, step=step)
            lines += [""] if apart and number < 0 else []
            place = (
                self._above(span.slots[0])
                if number < 0
                else self._below(span.slots[number], span.column)
            )
            yield self._lines_behind(place, lines, indent=span.column)

    def _without(self, slot: Slot) -> Edit:
        """The own lines of a slot: with the line end before them, as the last one may have none."""
        start, end = self._line_start(slot.start), self._line_end(slot.value.end)
        if start > 0:
            return _before_break(self._text, start), end, ""
        found = _BREAK.match(self._text, end)
        return start, found.end() if found else end, ""

    def _lines_behind(self, place: int, lines: Iterable[str], *, indent: int) -> Edit:
        """Whole lines, put behind the one on which ``place`` is; before all for a negative one."""
        end = self._line_end(max(0, place))
        found = _BREAK.match(self._text, end)
        line_break = found[0] if found else self._usual_break
        shown = [f"{'':{indent if line else 0}}{line}" for line in lines]
        if place < 0:
            return 0, 0, line_break.join([*shown, ""])
        return end, end, line_break.join(["", *shown])

    def _below(self, slot: Slot, column: int) -> int:
        """The last line of a slot, or of the comments below it that are further in than it."""
        last = place = self._line_end(slot.value.end)
        while found := _BREAK.match(self._text, place):
            place = self._line_end(found.end())
            line = self._text[found.end() : place]
            said = line.lstrip(" ")
            if said.startswith("#") and len(line) - len(said) > column:
                last = place
            elif said:
                break
        return last

    def _above(self, slot: Slot) -> int:
        """The end of the line above a slot and the comments right above it."""
        place = _before_break(self._text, self._line_start(slot.start))
        while place > 0 and self._text[self._line_start(place) : place].lstrip(" ").startswith("#"):
            place = _before_break(self._text, self._line_start(place))
        return place

    def _are_apart(self, slots: Sequence[Slot]) -> bool:
        """Whether an empty line stands between all of them (there being more than one)."""
        return len(slots) > 1 and all(
            any(
                not line.strip()
                for line in _BREAK.split(self._text[one.value.end : other.start])[1:-1]
            )
            for one, other in pairwise(slots)
        )

    def _line_start(self, place: int) -> int:
        return max(self._text.rfind("\n", 0, place), self._text.rfind("\r", 0, place)) + 1

    def _line_end(self, place: int) -> int:
        found = _BREAK.search(self._text, place)
        return found.start() if found else len(self._text)


def _before_break(text: str, line_start: int) -> int:
    """The end of the line before; -1 for the first line."""
    return line_start - (2 if text.startswith("\r\n", line_start - 2) else 1)


def _step(span: Span, usual: int) -> int:
    """How much further in than the keys of a block mapping the mappings in it stand."""
    if span.kind != "mapping" or span.style != BLOCK:
        return usual
    inner = (slot.value for slot in span.slots)
    steps = (
        value.column - span.column
        for value in inner
        if value.kind == "mapping" and value.style == BLOCK
    )
    return next(steps, usual)


def _same(one: Sequence[Writable], other: Sequence[Writable]) -> int:
    """How many items are equal, from the first on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
