"""``builder store``."""

from typing import Any

import click

from builder.cli import show
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.world import open_project, open_store
from builder.errors import IntegrityError


@click.group("store")
def command() -> None:
    """Verify, collect or measure the store."""


@command.command("verify")
@shared_options
@command_with_settings
def verify(settings: Settings) -> None:
    """Read every blob again and compare it with its name."""
    report = open_store(settings, open_project(settings)).verify()
    if settings.json:
        show.document(report.record())
    else:
        click.echo(
            f"{report.blobs} blobs, {show.size(report.bytes)}: {len(report.problems)} problems"
        )
    if report.problems:
        raise IntegrityError(
            f"store: {report.problems[0]}"
            + (f" (and {len(report.problems) - 1} more)" if len(report.problems) > 1 else ""),
            hint="remove what is named and build again; sources are fetched anew",
        )


@command.command("gc")
@click.option("--dry-run", is_flag=True, help="Say what would go, remove nothing.")
@shared_options
@command_with_settings
def gc(settings: Settings, dry_run: bool) -> None:
    """Remove what no image of the store needs."""
    report = open_store(settings, open_project(settings)).gc(dry_run=dry_run)
    if settings.json:
        show.document(report.record())
        return
    verb = "would remove" if dry_run else "removed"
    click.echo(f"{verb} {report.blobs} blobs and {report.notes} notes, {show.size(report.bytes)}")


@command.command("du")
@shared_options
@command_with_settings
def du(settings: Settings) -> None:
    """Say what the store holds and how large it is."""
    usage: Any = open_store(settings, open_project(settings)).du()
    if settings.json:
        show.document(usage.record())
        return
    click.echo(
        show.table(
            ("WHAT", "COUNT", "SIZE"),
            [(kind, str(count), show.size(total)) for kind, count, total in usage.classes],
        )
    )
