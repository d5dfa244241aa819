"""``builder push``."""

import click

from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import at_work, platform_of
from builder.deliver import publish_to
from builder.oci import Platform
from builder.pipeline import build
from builder.reference import Reference


@click.command("push")
@click.argument("variant")
@click.argument("reference")
@platform_option
@shared_options
@command_with_settings
def command(settings: Settings, variant: str, reference: str, platform: Platform | None) -> None:
    """Publish a built variant to a registry."""
    target = Reference.parse(reference)
    with at_work(settings) as (project, world):
        made = build(project, variant, world=world, platform=platform_of(project, platform))
        published = publish_to(made, target, world=world)
        if settings.json:
            show.document(
                {
                    "variant": variant,
                    "digest": str(made.image.digest),
                    "reference": str(published.reference),
                    "blobs": {
                        "present": published.present,
                        "mounted": published.mounted,
                        "uploaded": published.uploaded,
                    },
                    "uploaded_bytes": published.uploaded_bytes,
                }
            )
            return
        click.echo(published.reference)
        click.echo(
            f"blobs: {published.present} there already, {published.mounted} mounted,"
            f" {published.uploaded} uploaded ({show.size(published.uploaded_bytes)})",
            err=True,
        )
