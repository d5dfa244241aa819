"""``builder plan``."""

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
from builder.pipeline import planned
from builder.traces import recall


@click.command("plan")
@click.argument("variant")
@platform_option
@click.option("--strict", is_flag=True, help="Forbid hunks to move.")
@shared_options
@command_with_settings
def command(settings: Settings, variant: str, platform: Platform | None, strict: bool) -> None:
    """Show the steps of a variant and what is cached."""
    with at_work(settings) as (project, world):
        chain = planned(
            project, variant, world=world, platform=platform_of(project, platform), strict=strict
        )
        rows = [(step, recall(step.derivation, world.store)) for step in chain.steps]
        if settings.json:
            show.document(
                {
                    "variant": variant,
                    "platform": str(chain.platform),
                    "base": None if chain.base is None else str(chain.base),
                    "steps": [
                        {
                            "name": step.name,
                            "kind": step.kind,
                            "pins": list(step.request.pins),
                            "derivation": str(step.derivation.id),
                            "inputs": step.request.record(),
                            "cached": output is not None,
                        }
                        for step, output in rows
                    ],
                }
            )
            return
        click.echo(f"{variant} ({chain.platform}) on {chain.base or 'scratch'}")
        click.echo(
            show.table(
                ("STEP", "KIND", "DERIVATION", "", "INPUTS"),
                [
                    (
                        step.name,
                        step.kind,
                        step.derivation.id.short,
                        "to build" if output is None else "cached",
                        ", ".join(step.request.pins),
                    )
                    for step, output in rows
                ],
            )
        )
