"""Alternated runs, medians, and the table with the limits beside the results."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from builder.cli import show
from tests.claims import Claims

Run = Callable[[int], float]
"""One run, told its number, to the seconds that it took."""

HEADERS = ("WHAT", "OURS", "LIMIT", "AIM", "PEER", "TAKES", "OURS/PEER")


def alternate(runs: Mapping[str, Run], times: int) -> dict[str, float]:
    """The median of each after ``times`` rounds, in which each has its turn: what else the
    machine does meanwhile falls on all of them."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(times):
        for name, run in runs.items():
            taken[name].append(run(number))
    return {name: statistics.median(values) for name, values in taken.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing measured: ours in seconds, what the peers take for it, and what it may take."""

    what: str
    ours: float
    peers: Mapping[str, float]
    limit: float | None = None
    aim: float | None = None
    times_peer: float | None = None
    """A limit as a multiple of each peer's time instead, below which ours must stay."""
    aim_times_peer: float | None = None
    judged: frozenset[str] | None = None
    """The peers that the multiple counts for; ``None`` for all. The others are shown."""

    def cells(self) -> list[tuple[str, ...]]:
        """One line for each peer, or one where there are none."""
        limit, aim = _bound(self.limit, self.times_peer), _bound(self.aim, self.aim_times_peer)
        own = (self.what, seconds(self.ours), limit, aim)
        lines = [
            (name, seconds(value), f"{self.ours / value:.2f}") for name, value in self.peers.items()
        ] or [("-", "-", "-")]
        return [
            (own if number == 0 else ("",) * len(own)) + line for number, line in enumerate(lines)
        ]

    def judge(self, claims: Claims, *, times_count: bool = True) -> None:
        """Take the limits as claims, or only say how they stand: a machine that others share has
        its own idea of a second. Aims are shown and not judged."""
        take = claims.holds if times_count else claims.noted
        if self.limit is not None:
            take(
                f"{self.what}: under {seconds(self.limit)}",
                self.ours < self.limit,
                seconds(self.ours),
            )
        if self.times_peer is not None:
            for name, value in self.peers.items():
                if self.judged is not None and name not in self.judged:
                    continue
                ratio = self.ours / value
                take(
                    f"{self.what}: under {self.times_peer:g} x {name}",
                    ratio < self.times_peer,
                    f"{ratio:.2f} x",
                )


def table(rows: list[Row]) -> str:
    """All rows for people."""
    return show.table(HEADERS, [line for row in rows for line in row.cells()])


def seconds(value: float) -> str:
    """Three digits below a second, one above ten.

    >>> seconds(0.0712), seconds(12.34)
    ('0.071 s', '12.3 s')
    """
    return f"{value:.3f} s" if value < 10 else f"{value:.1f} s"


def _bound(absolute: float | None, relative: float | None) -> str:
    shown = [] if absolute is None else [f"{absolute:g} s"]
    shown += [] if relative is None else [f"{relative:g} x"]
    return ", ".join(shown) or "-"
