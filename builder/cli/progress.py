"""Progress: bars on a terminal, nothing elsewhere (the log says what takes time)."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from builder.cli.settings import Settings
from builder.ports import Progress, Task

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class _Silent:
    def advance(self, count: int) -> None:
        """Nobody is looking."""


class NoProgress:
    """For pipes, logs and ``--quiet``."""

    @contextmanager
    def task(self, title: str, *, total: int | None = None) -> Iterator[Task]:
        yield _Silent()


class _Bar:
    def __init__(self, bars: "Bars", identity: "TaskID") -> None:
        self._bars = bars
        self._identity = identity

    def advance(self, count: int) -> None:
        self._bars.advance(self._identity, count)


class BarProgress:
    """Bars on stderr, drawn by rich, which is loaded with the first one.

    Threads may have tasks at once. A terminal has one live area, so the bars that are open together
    share it; it goes with the last of them, before results are printed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._bars: Bars | None = None
        self._open = 0

    @contextmanager
    def task(self, title: str, *, total: int | None = None) -> Iterator[Task]:
        with self._lock:
            if self._bars is None:
                self._bars = _bars()
                self._bars.start()
            bars = self._bars
            self._open += 1
            identity = bars.add_task(title, total=total)
        try:
            yield _Bar(bars, identity)
        finally:
            with self._lock:
                bars.remove_task(identity)
                self._open -= 1
                if not self._open:
                    self._bars = None
                    bars.stop()


def _bars() -> "Bars":
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # results stay on stdout, whoever draws on stderr
    )


def progress_for(settings: Settings) -> Progress:
    """What fits the stream that people look at."""
    return BarProgress() if sys.stderr.isatty() and not settings.quiet else NoProgress()
