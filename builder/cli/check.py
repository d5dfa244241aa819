"""``builder check``."""

import click

from builder.check import Severity, check
from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import open_project, platform_of
from builder.oci import Platform


@click.command("check")
@click.argument("variants", nargs=-1, metavar="[VARIANT...]")
@platform_option
@shared_options
@command_with_settings
@click.pass_context
def command(
    context: click.Context,
    settings: Settings,
    variants: tuple[str, ...],
    platform: Platform | None,
) -> None:
    """Say everything that can be said without building.

    The exit status is that of the worst finding; warnings alone are 0.
    """
    project = open_project(settings)
    findings = check(project, variants, platform=platform_of(project, platform))
    if settings.json:
        show.document(
            {
                "findings": [
                    {
                        "severity": str(item.severity),
                        "where": item.where,
                        "message": item.message,
                        "hint": item.hint,
                    }
                    for item in findings
                ]
            }
        )
    elif findings:
        for item in findings:
            click.echo(f"{item.severity}: {item.where}: {item.message}")
            if item.hint:
                click.echo(f"  hint: {item.hint}")
    else:
        click.echo("nothing to report")
    errors = [item.exit_status for item in findings if item.severity is Severity.ERROR]
    context.exit(max(errors, default=0))
