"""``builder patches``."""

import posixpath
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import click

from builder.build_record import Record, recorded
from builder.cli import show
from builder.cli.site import Site, project_command, variant_names
from builder.outcome import PatchState
from builder.patched import Patched, patched

_ON = {None: "?", False: "-", True: "default"}


@project_command("patches", click.argument("name", metavar="VARIANT", shell_complete=variant_names))
def command(site: Site, name: str) -> None:
    """Show what became of each patch of a patch set.

    VARIANT is one that was built on this machine, or the digest of an image that was.
    """
    record = recorded(site.image(name), site.store)
    found = patched(record, site.store)
    show.result(site.settings, _document(record, found), _text(record, found))


def _document(record: Record, found: Sequence[Patched]) -> dict[str, Any]:
    return {
        "variant": record.variant,
        "image": str(record.digest),
        "patches": [
            {"step": item.step, "on": item.on, "switch": item.by, **item.outcome.record()}
            for item in found
        ],
    }


def _text(record: Record, found: Sequence[Patched]) -> str:
    if not found:
        return f"{record.variant} has no patch set"
    steps = groupby(found, key=lambda item: item.step)
    lines = [line for step, items in steps for line in _lines(step, list(items))]
    if lost := [item.outcome.name for item in found if item.lost]:
        lines.append(f"switched on, and nothing came of it: {', '.join(lost)}")
    return "\n".join(lines)


def _lines(step: str, items: Sequence[Patched]) -> Iterator[str]:
    below = _directory(items)
    yield f"{step}: files in /{below}" if below else step
    rows = [
        (item.outcome.name, "flag" if item.by else _ON[item.on], *_told(item, below))
        for item in items
    ]
    yield show.table(("PATCH", "ON", "STATE", "FILES, OR WHY NONE"), rows)


def _directory(items: Sequence[Patched]) -> str:
    """The directory that all files are in, so that no line has to repeat it."""
    parents = {posixpath.dirname(path) for item in items for path in item.outcome.files}
    return posixpath.commonpath(parents) if parents else ""


def _told(item: Patched, below: str) -> tuple[str, str]:
    """The state, and the files that are different for a patch, or else what it says itself."""
    outcome = item.outcome
    if outcome.state is PatchState.APPLIED:
        files = ", ".join(posixpath.relpath(path, below or ".") for path in outcome.files)
        return str(outcome.state), files
    return str(outcome.state), outcome.why
