"""``builder explain``."""

from typing import Any

import click

from builder.build_record import Record, recorded
from builder.cli import show
from builder.cli.site import Site, project_command, variant_names
from builder.digest import Digest
from builder.errors import ProjectError
from builder.explain import Difference, differences


@project_command(
    "explain",
    click.argument("first", metavar="A", shell_complete=variant_names),
    click.argument("second", metavar="B", shell_complete=variant_names),
)
def command(site: Site, first: str, second: str) -> None:
    """Say why two builds differ.

    A and B are variants (their last build on this machine) or digests of images that were built
    here.
    """
    one, two = (recorded(site.image(name), site.store) for name in (first, second))
    found = differences(one, two)
    show.result(site.settings, _document(one, two, found), _text(one, two, found))


def _document(one: Record, two: Record, found: tuple[Difference, ...]) -> dict[str, Any]:
    return {
        "first": str(one.digest),
        "second": str(two.digest),
        "differences": [
            {"where": item.where, "first": item.first, "second": item.second} for item in found
        ],
    }


def _text(one: Record, two: Record, found: tuple[Difference, ...]) -> str:
    if not found:
        return f"nothing differs: {one.digest}"
    images = [("A", one.variant, str(one.digest)), ("B", two.variant, str(two.digest))]
    rows = [(item.where, _cell(item.first), _cell(item.second)) for item in found]
    return "\n".join(
        [
            show.table(("", "VARIANT", "IMAGE"), images),
            "",
            show.table(("WHERE", "A", "B"), rows),
        ]
    )


def _cell(value: str | None) -> str:
    """Digests short, as in every table; ``--json`` has them whole."""
    if value is None:
        return "-"
    try:
        return Digest.parse(value).short
    except ProjectError:
        return value
