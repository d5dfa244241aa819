"""``builder graph``."""

import click

from builder import graph
from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import at_work, platform_of
from builder.oci import Platform
from builder.pipeline import planned


@click.command("graph")
@click.argument("variant")
@click.option(
    "--format",
    "style",
    type=click.Choice(["dot", "mermaid", "svg"]),
    default="dot",
    show_default=True,
    help="The language to draw in.",
)
@platform_option
@shared_options
@command_with_settings
def command(settings: Settings, variant: str, style: str, platform: Platform | None) -> None:
    """Draw a variant as DOT, Mermaid or SVG."""
    with at_work(settings) as (project, world):
        chain = planned(
            project, variant, world=world, platform=platform_of(project, platform), strict=False
        )
        drawing = graph.draw(graph.graph_of(chain), style)
        if settings.json:
            show.document({"variant": variant, "format": style, "graph": drawing})
            return
        click.echo(drawing)
