"""Results for people: aligned columns and sizes. Plain text, the same in a pipe and on a
terminal, which nothing in it steers."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from builder import quoting
from builder.cli.settings import DONE, Settings
from builder.errors import UsageError


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the last one is not padded.

    >>> print(table(["NAME", "SIZE"], [["demo", "3 kB"]]))
    NAME  SIZE
    demo  3 kB
    """
    lines = [headers, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def size(count: int) -> str:
    """Bytes as people read them, in powers of 1000 as registries count.

    >>> size(999), size(1_234_567)
    ('999 B', '1.2 MB')
    """
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def encoded(value: Any) -> str:
    """The one JSON document of a run, for people to read, too."""
    return json.dumps(value, indent=2)


def document(value: Any) -> None:
    """Print the one JSON document of a run."""
    click.echo(encoded(value))


def result(
    settings: Settings, value: Mapping[str, Any], text: str, *, aside: str | None = None
) -> None:
    """Print what a command came to: the document with ``--json``, else the text. ``aside`` is for
    people who watch, and goes to stderr."""
    if settings.json:
        document(value)
        return
    click.echo(quoting.harmless(text))
    if aside is not None and not settings.quiet:
        click.echo(aside, err=True)


def so_far(settings: Settings, value: Mapping[str, Any], text: str) -> None:
    """As :func:`result`, for a run that will fail: the document is that of the error, too."""
    if settings.json:
        click.get_current_context().find_root().obj[DONE] = value
    else:
        click.echo(quoting.harmless(text))


@contextmanager
def report_file(path: Path | None, mode: str, *, option: str) -> Iterator[Callable[[str], object]]:
    """A file for a report beside the output, and what writes to it. That it can be written is found
    out before the work. Without a path nothing is written.

    Raises:
        UsageError: It cannot be written.
    """
    if path is None:
        yield lambda _: None
        return
    try:
        file = path.open(mode, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{option}: {path}: cannot be written: {error.strerror}") from error
    with file:
        yield file.write


@contextmanager
def one_by_one(settings: Settings, key: str) -> Iterator[Callable[[Mapping[str, Any], str], None]]:
    """Results as they come. People read each at once; the document lists all of them under
    ``key``, also beside the error of one that failed."""
    items: list[Mapping[str, Any]] = []
    run = click.get_current_context().find_root().obj

    def tell(value: Mapping[str, Any], text: str) -> None:
        items.append(value)
        run[DONE] = {key: items}
        if not settings.json:
            click.echo(quoting.harmless(text))

    yield tell
    if settings.json:
        document({key: items})
