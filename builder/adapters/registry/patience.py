"""How long a server may take: for one answer, and where that is limited, for all of its answers.

A time-out of a connection is about silence, and a server that sends a byte now and then is never
silent. So what is read whole has an end, too. Blobs have none: they may be large, and lines slow;
but not slower than any line is.
"""

from collections import defaultdict
from collections.abc import Callable

from builder.errors import NetworkError

SLOWEST = 1024
"""Bytes a second, for as long as an answer may take: a blob that comes slower is asked for again,
from where it is."""
_HINT = "it is overloaded, or something in between is: try again later"


class Patience:
    """The time that servers took, by ``host[:port]``; shared by threads, which all count.

    Args:
        clock: Seconds that only go up.
        total: Seconds that one host may take in all, its blobs included; ``None`` for any.
    """

    def __init__(self, clock: Callable[[], float], *, total: float | None) -> None:
        self.clock = clock
        self.total = total
        self.taken: defaultdict[str, float] = defaultdict(float)

    def begin(self, host: str, *, seconds: float, at: str) -> "Allowance":
        """Start to wait for an answer, which may take ``seconds`` where it is read whole.

        Raises:
            NetworkError: The host has taken what it may in all.
        """
        allowance = Allowance(self, host, seconds=seconds, at=at)
        allowance.check(whole=False)
        return allowance


class Allowance:
    """The time of one answer, from its request on."""

    def __init__(self, patience: Patience, host: str, *, seconds: float, at: str) -> None:
        self._patience = patience
        self._host = host
        self._seconds = seconds
        self._at = at
        self._start = self._last = patience.clock()

    @property
    def counted(self) -> bool:
        """Whether the time of a blob is counted, too."""
        return self._patience.total is not None

    def count(self) -> float:
        """Count the time since the last call; what the clock says."""
        now = self._patience.clock()
        self._patience.taken[self._host] += now - self._last
        self._last = now
        return now

    def slow(self) -> Callable[[int], bool]:
        """Start to wait for a part of a blob. What is returned says whether so many bytes are too
        few by now."""
        clock, start, seconds = self._patience.clock, self._patience.clock(), self._seconds

        def is_slow(size: int) -> bool:
            took = clock() - start
            return took > seconds and size < took * SLOWEST

        return is_slow

    def check(self, *, whole: bool) -> None:
        """Count the time since the last call, and see whether it is over.

        Args:
            whole: Whether the answer is read whole, and is no blob.

        Raises:
            NetworkError: It is over.
        """
        now = self.count()
        total = self._patience.total
        if total is not None and self._patience.taken[self._host] > total:
            raise NetworkError(
                f"{self._at}: {self._host} has taken over {total:.0f} s for its answers in all",
                hint=_HINT,
            )
        if whole and now - self._start > self._seconds:
            raise overdue(self._at, self._seconds)


def overdue(at: str, seconds: float) -> NetworkError:
    """An answer that comes byte by byte. Nobody asks again: it took long enough once."""
    return NetworkError(f"{at}: no whole answer within {seconds:g} s", hint=_HINT)
