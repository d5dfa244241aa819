"""``builder accept``."""

import click

from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import at_work, platform_of
from builder.oci import Platform
from builder.pipeline import build
from builder.results import result_of


@click.command("accept")
@click.argument("variants", nargs=-1, required=True, metavar="VARIANT...")
@platform_option
@shared_options
@command_with_settings
def command(settings: Settings, variants: tuple[str, ...], platform: Platform | None) -> None:
    """Record what a variant bakes to as expected."""
    with at_work(settings) as (project, world):
        accepted = []
        for name in variants:
            made = build(project, name, world=world, platform=platform_of(project, platform))
            result = result_of(made)
            file = project.accept(result)
            accepted.append({"variant": name, "digest": str(result.digest), "file": file})
            if not settings.json:
                click.echo(f"{file}: {result.digest}")
        if settings.json:
            show.document({"accepted": accepted})
