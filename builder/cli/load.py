"""``builder load``."""

import click

from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import at_work, platform_of
from builder.deliver import load_into_engine
from builder.oci import Platform
from builder.pipeline import build


@click.command("load")
@click.argument("variant")
@click.option("--name", metavar="NAME", help="The name to give it (default: the variant's).")
@platform_option
@shared_options
@command_with_settings
def command(settings: Settings, variant: str, name: str | None, platform: Platform | None) -> None:
    """Load a built variant into the local Docker Engine."""
    with at_work(settings) as (project, world):
        made = build(project, variant, world=world, platform=platform_of(project, platform))
        loaded = load_into_engine(made, name or variant, world=world)
        if settings.json:
            show.document(
                {
                    "variant": variant,
                    "digest": str(made.image.digest),
                    "id": str(made.image.manifest.config.digest),
                    "name": loaded.name,
                    "layers_moved": loaded.moved,
                }
            )
            return
        click.echo(f"{loaded.name} {made.image.manifest.config.digest}")
        click.echo(f"layers moved: {loaded.moved}", err=True)
