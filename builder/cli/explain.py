"""``builder explain``."""

import click

from builder.build_record import recorded
from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import open_project, open_store, platform_of
from builder.digest import Digest
from builder.explain import differences
from builder.oci import Platform
from builder.pipeline import kept


@click.command("explain")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@platform_option
@shared_options
@command_with_settings
def command(settings: Settings, first: str, second: str, platform: Platform | None) -> None:
    """Say why two builds differ.

    A and B are variants (their last build on this machine) or digests of images that were built
    here.
    """
    project = open_project(settings)
    store = open_store(settings, project)
    wanted = platform_of(project, platform)
    one, two = (
        recorded(
            Digest.parse(name)
            if name.startswith("sha256:")
            else kept(project, name, store=store, platform=wanted),
            store,
        )
        for name in (first, second)
    )
    found = differences(one, two)
    if settings.json:
        show.document(
            {
                "first": str(one.digest),
                "second": str(two.digest),
                "differences": [
                    {"where": item.where, "first": item.first, "second": item.second}
                    for item in found
                ],
            }
        )
        return
    if not found:
        click.echo(f"nothing differs: {one.digest}")
        return
    click.echo(
        show.table(
            ("WHERE", first, second),
            [(item.where, item.first or "-", item.second or "-") for item in found],
        )
    )
