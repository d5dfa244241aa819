"""``builder graph``."""

import click

from builder import graph
from builder.cli import show
from builder.cli.site import VARIANT, Site, project_command
from builder.pipeline import planned

STYLE = click.option(
    "--format",
    "style",
    type=click.Choice(["dot", "mermaid", "svg"]),
    default="dot",
    show_default=True,
    help="The language to draw in.",
)


@project_command("graph", VARIANT, STYLE)
def command(site: Site, variant: str, style: str) -> None:
    """Draw a variant as DOT, Mermaid or SVG."""
    with site.at_work(variant) as world:
        chain = planned(site.project, variant, world=world, platform=site.platform)
    drawing = graph.draw(graph.graph_of(chain), style)
    show.result(
        site.settings,
        {"variant": variant, "format": style, "graph": drawing},
        drawing,
    )
