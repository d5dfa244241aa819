"""``builder push``."""

import click

from builder.cli import show
from builder.cli.site import VARIANT, Site, project_command
from builder.deliver import publish_to
from builder.pipeline import build
from builder.reference import Reference


@project_command("push", VARIANT, click.argument("reference"))
def command(site: Site, variant: str, reference: str) -> None:
    """Publish a built variant to a registry."""
    target = Reference.parse(reference)
    with site.at_work(variant) as world:
        made = build(site.project, variant, world=world, platform=site.platform)
        published = publish_to(made, target, world=world)
    show.result(
        site.settings,
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
        },
        str(published.reference),
        aside=f"blobs: {published.present} there already, {published.mounted} mounted,"
        f" {published.uploaded} uploaded ({show.size(published.uploaded_bytes)})",
    )
