"""``builder variants``."""

import click

from builder.cli import show
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.world import open_project
from builder.variant import Base, LayoutBase, PinnedBase


@click.command("variants")
@shared_options
@command_with_settings
def command(settings: Settings) -> None:
    """List the variants of the project."""
    project = open_project(settings)
    variants = [project.variant(name) for name in project.variants()]
    if settings.json:
        show.document(
            {
                "variants": [
                    {
                        "name": item.name,
                        "description": item.description,
                        "base": _base(item.base),
                        "steps": [step.name for step in item.steps],
                    }
                    for item in variants
                ]
            }
        )
        return
    rows = [
        (item.name, _base(item.base), str(len(item.steps)), item.description) for item in variants
    ]
    click.echo(show.table(("VARIANT", "BASE", "STEPS", "DESCRIPTION"), rows))


def _base(base: Base) -> str:
    match base:
        case PinnedBase(pin=pin):
            return pin
        case LayoutBase(layout=layout):
            return f"oci:{layout}"
        case _:
            return "scratch"
