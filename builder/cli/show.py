"""Results for people: aligned columns and sizes. Plain text, the same in a pipe and on a
terminal."""

import json
from collections.abc import Sequence
from typing import Any

import click


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
