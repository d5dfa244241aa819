"""Child processes that are killed, or that write at the same time."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

CALLS = ("open", "write", "fchmod", "fsync", "close", "replace", "unlink", "mkdir", "chmod")
"""The functions of ``os`` through which a store changes the disk."""


def start(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked child; returns its pid. It ends with 0 when ``work`` returned."""
    if pid := os.fork():
        return pid
    status = 70
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001  # the child must never return into pytest
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def join(*pids: int) -> list[int]:
    """Wait for children; returns their exit statuses, negative where a signal ended them."""
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


@contextmanager
def ended(pid: int) -> Iterator[int]:
    """Make sure that a child is gone after the block."""
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Run ``work`` in a child that is killed with -9 at one of its calls that change the disk.

    The call is not made (which is as good as a kill after the call before it); of a write, half
    the bytes are written. Returns whether it was killed: ``False`` means that ``work`` needs no
    more than ``number`` calls and was done.
    """

    def work_until_killed() -> None:
        _arm(number)
        work()

    (status,) = join(start(work_until_killed))
    assert status in {0, -signal.SIGKILL}
    return status != 0


def _arm(at: int) -> None:
    count = 0

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count <= at:
                return real(*arguments, **options)
            if real is write:
                real(arguments[0], arguments[1][: len(arguments[1]) // 2])
            return _die()

        return call

    write = os.write
    for name in CALLS:
        setattr(os, name, wrap(getattr(os, name)))


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still here")
