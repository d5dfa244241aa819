"""Where each value of a document stands: what an editor of its text goes by.

Apart from ``reader``, because only editing needs it, and reading is on the way of every build.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from builder.strict_yaml.reader import _LOADER

BLOCK: Final = "block"
FLOW: Final = "flow"

COMMENT: Final = re.compile(r"#[^\r\n]*")
# Between two values of a document stand only blanks, line ends, comments and these.
_SIGN: Final = re.compile(rf"{COMMENT.pattern}|[-?:,]")


class Span(NamedTuple):
    """One value, from the first to behind its last character. A block collection ends with its
    last value, whatever blank lines and comments follow."""

    start: int
    end: int
    column: int
    """Of the first character; of its keys or dashes, for a block collection."""
    kind: str
    """``scalar``, ``mapping`` or ``sequence``."""
    style: str
    """``block`` or ``flow`` for a collection; a scalar's quotes, ``|`` or ``>``, or nothing."""
    slots: "tuple[Slot, ...]" = ()
    text: str = ""


class Slot(NamedTuple):
    """A place in a collection: a key with its value, or an item. It starts with its ``?`` or
    ``-``, where it has one. ``colon`` is behind the colon of a key."""

    start: int
    key: str | None
    colon: int
    value: Span


def spans(text: str) -> Span:
    """The root of a document that the reader accepts (of no other one)."""
    events = iter(yaml.parse(text, Loader=_LOADER))
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            return _span(next(events), events, text)
    raise ValueError("no document")


def signs(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """What stands between two values beside blanks and comments: places and characters."""
    for found in _SIGN.finditer(text, start, end):
        if not found[0].startswith("#"):
            yield found.start(), found[0]


def _span(event: Any, events: Iterator[Any], text: str) -> Span:
    start, column = event.start_mark.index, event.start_mark.column
    if isinstance(event, yaml.ScalarEvent):
        end = _end(event)
        if event.style in {"|", ">"}:
            end = start + len(text[start:end].rstrip())
        return Span(start, end, column, "scalar", event.style or "", text=event.value)
    is_mapping = isinstance(event, yaml.MappingStartEvent)
    style = FLOW if event.flow_style else BLOCK
    slots: list[Slot] = []
    while not isinstance(item := next(events), yaml.CollectionEndEvent):
        since = slots[-1].value.end if slots else start
        first = _span(item, events, text)
        colon, value = first.end, first
        if is_mapping:
            value = _span(next(events), events, text)
            colon = _sign(text, first.end, value.start, ":", usual=first.end - 1) + 1
        before = "?" if is_mapping else "-" if style == BLOCK else "none"
        begin = _sign(text, since, first.start, before, usual=first.start)
        slots.append(Slot(begin, first.text if is_mapping else None, colon, value))
    end = _end(item) if style == FLOW else slots[-1].value.end
    return Span(start, end, column, "mapping" if is_mapping else "sequence", style, tuple(slots))


def _end(event: Any) -> int:
    end: int = event.end_mark.index
    return end


def _sign(text: str, start: int, end: int, sign: str, *, usual: int) -> int:
    return next((place for place, found in signs(text, start, end) if found == sign), usual)
