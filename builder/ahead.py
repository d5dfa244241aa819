"""Running an iterator ahead of its consumer, in a thread of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Generic, TypeVar

T = TypeVar("T")


class _End(Generic[T]):
    """What stands behind the last item: the error that ended the iterator, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


@contextmanager
def ahead(items: Iterator[T], *, depth: int) -> Iterator[Iterator[T]]:
    """Compute up to ``depth`` items ahead while the block consumes them in order.

    Whatever ``items`` raises is raised where the consumer asks for the next item. When the block
    is left, however that comes, the thread has ended: it is waited for until its current item is
    done, and asked for no more.
    """
    queue: Queue[T | _End[T]] = Queue(depth)
    stopped = threading.Event()

    def run() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                queue.put(item)
                if stopped.is_set():
                    break
        except BaseException as caught:  # noqa: BLE001 - raised again in the consumer's thread
            error = caught
        queue.put(_End(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield _taken(queue)
    finally:
        stopped.set()
        while thread.is_alive():
            _drain(queue)


def _taken(queue: Queue[T | _End[T]]) -> Iterator[T]:
    while not isinstance(item := queue.get(), _End):
        yield item
    if item.error is not None:
        raise item.error


def _drain(queue: Queue[T | _End[T]]) -> None:
    try:
        queue.get(timeout=0.02)
    except Empty:
        return
