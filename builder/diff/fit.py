"""Fits the hunks of one section into a text: at the stated place, or at the only other one.

Fuzz is always 0: every line that a hunk shows must stand in the file, byte for byte. The rules for
the first and the last line are those of git (``apply.c``, ``match_beginning``, ``match_end``): a
hunk that starts at line 1 belongs to the beginning, one that ends without context to the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from builder.diff.model import Hunk
from builder.errors import PatchError
from builder.verdict import Verdict

_LISTED = 10
_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A text after its hunks, and for each hunk how far it stood from its stated place."""

    data: bytes
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How strictly hunks are fitted.

    ``strict`` forbids that a hunk moves. ``without_context`` says that the whole diff was made
    without context, so that a lack of it does not mean the beginning or the end of a file.
    """

    strict: bool
    without_context: bool


def fit(data: bytes, hunks: Sequence[Hunk], *, path: str, at: str, rules: Rules) -> Fitted:
    """Apply ``hunks``, which are in order and apart, to ``data``.

    Raises:
        PatchError: ``drift-anchor`` or ``ambiguous-anchor`` for the first hunk that does not fit.
    """
    text = _Text(data, path=path, at=at)
    out: list[bytes] = []
    offsets: list[int] = []
    end = drift = 0
    moved = False
    for number, hunk in enumerate(hunks, 1):
        spot = _Spot(text, hunk, name=f"hunk {number} of {len(hunks)}", rules=rules)
        agrees = hunk.new_index - hunk.old_index == drift
        index = spot.find(is_stated=agrees, has_drifted=moved)
        if index < end:
            spot.refuse(
                f"matches only at line {index + 1}, before the end of the hunk above it",
                Verdict.DRIFT_ANCHOR,
            )
        out += text.lines[end:index]
        out += spot.new
        end = index + len(spot.old)
        drift += hunk.new_count - hunk.old_count
        offsets.append(index - hunk.old_index)
        moved |= index != hunk.old_index
    out += text.lines[end:]
    return Fitted(data=b"".join(out), offsets=tuple(offsets))


class _Text:
    """A file as lines with their newlines, and as bytes that can be searched for whole lines."""

    def __init__(self, data: bytes, *, path: str, at: str) -> None:
        self.path = path
        self.at = at
        parts = data.split(b"\n")
        last = parts.pop()
        self.lines = [part + b"\n" for part in parts]
        if last:
            self.lines.append(last)
        # With a newline in front, only what starts a line can match: the search stays linear, and
        # its count of candidates is bounded.
        self._haystack = b"\n" + data

    def places(self, old: list[bytes]) -> list[int]:
        """The first few line indexes at which ``old`` stands."""
        needle = b"\n" + b"".join(old)
        found: list[int] = []
        index = last = 0
        at = self._haystack.find(needle)
        while at >= 0 and len(found) <= _LISTED:
            index += self._haystack.count(b"\n", last, at)
            last = at
            if old[-1].endswith(b"\n") or at + len(needle) == len(self._haystack):
                found.append(index)
            at = self._haystack.find(needle, at + 1)
        return found


class _Spot:
    """One hunk on its way into one text."""

    def __init__(self, text: _Text, hunk: Hunk, *, name: str, rules: Rules) -> None:
        self._text = text
        self._hunk = hunk
        self._name = name
        self._rules = rules
        self.old = hunk.old
        self.new = hunk.new
        self._at_start = hunk.old_start <= 1 and not rules.without_context
        self._at_end = not hunk.trailing and not rules.without_context
        # What has no newline behind it is the end of the file, with context or without.
        self._at_end |= bool(self.new) and not self.new[-1].endswith(b"\n")

    def find(self, *, is_stated: bool, has_drifted: bool) -> int:
        """The line index where the hunk applies.

        ``is_stated`` says that the two starts of the hunk agree with the counts of those before
        it; where they do not (a hunk was cut out by hand), there is no stated place. Behind a hunk
        that moved, a match at the stated place may be chance: it must be the only one, too.
        """
        stated = self._hunk.old_index
        fits = self._fits(stated)
        if fits and is_stated and not has_drifted:
            self._check_insertion(stated)
            return stated
        if not self._hunk.has_context:
            if fits:
                self.refuse(
                    "has no context that could confirm its place, "
                    + (
                        "and a hunk before it moved" if is_stated else "and its two starts disagree"
                    ),
                    Verdict.AMBIGUOUS_ANCHOR,
                )
            self._drift(stated, "it has no context and cannot move")
        if self._rules.strict and not fits:
            self._drift(stated, "moving it is forbidden (strict)")
        places = self._text.places(self.old)
        if len(places) > 1:
            lines = ", ".join(str(place + 1) for place in places[:_LISTED])
            more = ", ..." if len(places) > _LISTED else ""
            self.refuse(
                f"does not match at line {stated + 1} and matches at lines {lines}{more}"
                if not fits
                else f"matches at lines {lines}{more}, and what stands before it has moved",
                Verdict.AMBIGUOUS_ANCHOR,
            )
        if fits:
            return stated
        return self._move(stated, places)

    def _move(self, stated: int, places: list[int]) -> int:
        if not places:
            self._drift(stated, "its lines stand nowhere in the file")
        index = places[0]
        if (border := self._misses(index)) is not None:
            self._drift(
                stated,
                f"at line {index + 1} it would not be at the {border} of the file, where it "
                "belongs",
            )
        if self.new == self._text.lines[stated : stated + len(self.new)]:
            self.refuse(
                f"matches at line {index + 1}, but line {stated + 1} has its new text already",
                Verdict.AMBIGUOUS_ANCHOR,
            )
        return index

    def _fits(self, index: int) -> bool:
        lines, end = self._text.lines, index + len(self.old)
        if end > len(lines) or (self._at_start and index) or (self._at_end and end < len(lines)):
            return False
        # Behind a last line without a newline there is no place for another line.
        if not self.old and 0 < index == len(lines) and not lines[-1].endswith(b"\n"):
            return False
        return lines[index:end] == self.old

    def _misses(self, index: int) -> str | None:
        """The border of the file that the hunk belongs to and would not be at. Less context on one
        side than on the other is the border, as GNU patch has it: only where a hunk moves, because
        there it is evidence."""
        leading, trailing = self._hunk.leading, self._hunk.trailing
        if index and (self._at_start or leading < trailing):
            return "beginning"
        ends = index + len(self.old) == len(self._text.lines)
        return "end" if not ends and (self._at_end or trailing < leading) else None

    def _check_insertion(self, index: int) -> None:
        """An insertion without context fits everywhere, also where it was made before."""
        if not self.old and self._text.lines[index : index + len(self.new)] == self.new:
            self.refuse(
                f"inserts without context what already stands at line {index + 1}",
                Verdict.AMBIGUOUS_ANCHOR,
            )

    def _drift(self, stated: int, why: str) -> NoReturn:
        lines = self._text.lines
        for n, wanted in enumerate(self.old, stated):
            got = lines[n] if n < len(lines) else None
            if got != wanted:
                fault = f"at line {n + 1}: got {_show(got)}, wanted {_show(wanted)}"
                break
        else:
            if stated > len(lines):
                fault = f"at line {stated + 1}: the file has {len(lines)} lines"
            elif self._at_start and stated:
                fault = "at the beginning of the file, where it belongs"
            else:
                left = len(lines) - stated - len(self.old)
                fault = (
                    f"at line {stated + 1}: {left} lines follow where it says that the file ends"
                )
        self.refuse(f"does not match {fault}; {why}", Verdict.DRIFT_ANCHOR)

    def refuse(self, what: str, verdict: Verdict) -> NoReturn:
        """Raise PatchError about this hunk."""
        hint = {
            Verdict.DRIFT_ANCHOR: "the base differs from the one that the diff was made for: "
            "take a diff for this base",
            Verdict.AMBIGUOUS_ANCHOR: "make the diff with more context (git diff -U10), "
            "for this base",
        }
        raise PatchError(
            f"{self._text.at}:{self._hunk.line}: {self._text.path!r}: {self._name} {what}",
            verdict=verdict,
            path=self._text.path,
            hint=hint[verdict],
        )


def _show(line: bytes | None) -> str:
    if line is None:
        return "the end of the file"
    shown = line.decode("utf-8", "backslashreplace")
    return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")
