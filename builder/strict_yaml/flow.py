"""Edits of a collection in brackets: items go and come between commas, blanks and comments."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from builder.strict_yaml.spans import COMMENT, Span, signs
from builder.strict_yaml.writer import Writable, flow, flow_entry


def flow_edits(
    text: str,
    span: Span,
    kept: Collection[int],
    added: Mapping[int, Sequence[tuple[str | None, Writable]]],
) -> Iterator[tuple[int, int, str]]:
    """Leave the slots that are ``kept``; put what is ``added`` behind the slot of its number. Only
    what stands between kept slots is touched."""
    gaps = _gaps(text, span)
    bounds = [-1, *sorted(kept), len(span.slots)]
    new = {
        left: [text for number in range(left, right) for text in _shown(added.get(number, ()))]
        for left, right in pairwise(bounds)
    }
    between = _between(gaps)
    for left, right in pairwise(bounds):
        if not new[left] and right == left + 1:
            continue
        start = span.slots[left].value.end if left >= 0 else span.start + 1
        end = span.slots[right].start if right < len(span.slots) else span.end - 1
        pieces = gaps[left + 1 : right + 1]
        if right < len(span.slots):
            shown = _before_a_slot(pieces, new[left], between, first=left < 0)
        elif left < 0:
            shown = _all_new(pieces, new[left], between)
        else:
            shown = _at_the_end(pieces, new[left], between)
        yield start, end, shown


def _shown(items: Sequence[tuple[str | None, Writable]]) -> list[str]:
    return [flow(item) if key is None else flow_entry(key, item) for key, item in items]


def _gaps(text: str, span: Span) -> list[str]:
    """What stands before the first slot, between two, and behind the last."""
    starts = [span.start + 1, *(slot.value.end for slot in span.slots)]
    ends = [*(slot.start for slot in span.slots), span.end - 1]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _before_a_slot(pieces: list[str], new: list[str], between: str, *, first: bool) -> str:
    rest = _merged(pieces, pieces[0])
    return ("" if first else ",") + rest + "".join(f"{item},{between}" for item in new)


def _at_the_end(pieces: list[str], new: list[str], between: str) -> str:
    rest = _merged(pieces, pieces[-1])
    comma = "" if pieces[-1] == _without_comma(pieces[-1]) else ","
    if not new:
        return comma + rest
    said, close = _split(rest)
    line = _own_line(between, close) if said else between
    return f",{said}{line}{f',{between}'.join(new)}{comma}{close}"


def _all_new(pieces: list[str], new: list[str], between: str) -> str:
    said, close = _split(_merged(pieces, pieces[-1]))
    line = _own_line(between, close) if said else _without_comma(pieces[0])
    return f"{said}{line}{f',{between}'.join(new)}{close if said or len(pieces) > 1 else ''}"


def _own_line(between: str, close: str) -> str:
    """What stands between a comment and the slot on the next line."""
    return between if between.strip(" ") else f"{close}  "


def _merged(pieces: list[str], usual: str) -> str:
    """What is left of several gaps when the slots between them go: every comment."""
    rests = [_without_comma(piece) for piece in pieces]
    split = [_split(rest) for rest in rests if COMMENT.search(rest)]
    if not split:
        return _without_comma(usual)
    merged = ""
    for said, tail in split:
        merged += (said.lstrip(" ") if merged else said) + tail
    closes = rests[-1].lstrip(" ").startswith(("\r", "\n"))
    return merged.rstrip() + rests[-1] if closes else merged


def _without_comma(gap: str) -> str:
    comma = next((place for place, sign in signs(gap, 0, len(gap)) if sign == ","), None)
    return gap if comma is None else gap[:comma] + gap[comma + 1 :]


def _split(gap: str) -> tuple[str, str]:
    """The comments of a gap, to the end of the line of the last; and the rest."""
    last = max((found.end() for found in COMMENT.finditer(gap)), default=0)
    return gap[:last], gap[last:]


def _between(gaps: list[str]) -> str:
    """What stands between two slots beside the comma: the line end and blanks of a collection with
    a line for each, otherwise a blank."""
    for gap in gaps[1:-1] or gaps[:1]:
        plain = COMMENT.sub("", _without_comma(gap))
        if "\n" in plain or "\r" in plain:
            return plain.lstrip(" ")
    return " "
