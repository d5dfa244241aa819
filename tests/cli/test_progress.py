"""Bars: one live area for all, whatever threads do."""

import os
import pty
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Barrier, Thread

import pytest

from builder.cli.progress import BarProgress, NoProgress, progress_for
from builder.cli.settings import Settings


@contextmanager
def terminal() -> Iterator[Callable[[], str]]:
    """A terminal as our stderr. Called when it has gone, what it has shown."""
    far, near = pty.openpty()
    shown: list[bytes] = []

    def look() -> None:
        # Linux: an error when everyone at the other end has gone.
        with suppress(OSError):
            while data := os.read(far, 65536):
                shown.append(data)

    looking = Thread(target=look)
    looking.start()
    before = sys.stderr
    sys.stderr = os.fdopen(near, "w")
    try:
        yield lambda: b"".join(shown).decode()
    finally:
        sys.stderr.close()
        sys.stderr = before
        looking.join(timeout=10)
        os.close(far)


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_threads_draw_at_once() -> None:
    progress = BarProgress()
    together = Barrier(4)

    def work(number: int) -> None:
        for turn in range(3):
            with progress.task(f"copy [{number}] {turn}", total=10) as task:
                together.wait(timeout=10)
                task.advance(10)

    with terminal() as shown, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for number in range(4):
        assert f"copy [{number}]" in shown(), "brackets are no markup"


def test_a_task_that_fails_leaves_the_terminal_as_it_was() -> None:
    progress = BarProgress()
    with terminal() as shown:
        with pytest.raises(ValueError, match="broken"), progress.task("copy", total=None):
            raise ValueError("broken")
        with progress.task("again") as task:
            task.advance(1)
    hidden, back = "\x1b[?25l", "\x1b[?25h"
    assert (shown().count(hidden), shown().count(back)) == (2, 2)
    assert "again" not in shown().rpartition(back)[2]


@pytest.mark.parametrize("quiet", [False, True])
def test_bars_want_a_terminal_and_somebody_who_looks(quiet: bool) -> None:
    with terminal():
        chosen = progress_for(Settings(directory=Path(), quiet=quiet))
    assert isinstance(chosen, NoProgress if quiet else BarProgress)


def test_nothing_is_drawn_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    progress = progress_for(Settings(directory=Path()))
    with progress.task("copy", total=3) as task:
        task.advance(3)
    assert capsys.readouterr() == ("", "")
