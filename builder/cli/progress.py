"""Progress: bars on a terminal, nothing elsewhere (the log says what takes time)."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from builder.cli.settings import Settings
from builder.ports import Progress, Task


class _Silent:
    def advance(self, count: int) -> None:
        """Nobody is looking."""


class NoProgress:
    """For pipes, logs and ``--quiet``."""

    @contextmanager
    def task(self, title: str, *, total: int | None = None) -> Iterator[Task]:
        yield _Silent()


class BarProgress:
    """Bars on stderr, drawn by rich, which is loaded with the first one."""

    def task(self, title: str, *, total: int | None = None) -> AbstractContextManager[Task]:
        return self._bar(title, total)

    @contextmanager
    def _bar(self, title: str, total: int | None) -> Iterator[Task]:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TransferSpeedColumn,
        )
        from rich.progress import (
            Progress as Bars,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
        )
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            identity = bars.add_task(title, total=total)

            class Bar:
                def advance(self, count: int) -> None:
                    bars.advance(identity, count)

            yield Bar()


def progress_for(settings: Settings) -> Progress:
    """What fits the stream that people look at."""
    return BarProgress() if sys.stderr.isatty() and not settings.quiet else NoProgress()
