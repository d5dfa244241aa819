"""That something ends soon, told from how long it computes: what else the machine does counts for
nothing, and neither does a collection of the garbage of other tests."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail where the block, which may raise, computes for longer in all threads of this process."""
    took = _computing()
    try:
        with _no_collection():
            yield
    finally:
        assert took() < seconds


def cost(work: Callable[[], object], *, rounds: int = 5) -> float:
    """Seconds that it computes; the least of some rounds."""
    costs = []
    with _no_collection():
        for _ in range(rounds):
            took = _computing()
            work()
            costs.append(took())
    return min(costs)


def _computing() -> Callable[[], float]:
    start = time.process_time()
    return lambda: time.process_time() - start


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
