"""``builder load``."""

import click

from builder.cli import show
from builder.cli.site import VARIANT, Site, project_command
from builder.deliver import load_into_engine
from builder.errors import UsageError
from builder.pipeline import build
from builder.reference import Reference

NAME = click.option("--name", metavar="NAME", help="The name to give it (default: the variant's).")


@project_command("load", VARIANT, NAME)
def command(site: Site, variant: str, name: str | None) -> None:
    """Load a built variant into the local Docker Engine."""
    if name is not None and Reference.parse(name, at="--name").digest is not None:
        raise UsageError(
            f"--name: {name!r}: a name that is given has no digest", hint="leave the digest out"
        )
    with site.at_work(variant) as world:
        made = build(site.project, variant, world=world, platform=site.platform)
        loaded = load_into_engine(made, name or variant, world=world)
    image = made.image.manifest.config.digest
    show.result(
        site.settings,
        {
            "variant": variant,
            "digest": str(made.image.digest),
            "id": str(image),
            "name": loaded.name,
            "layers_moved": loaded.moved,
        },
        f"{loaded.name} {image}",
        aside=f"layers moved: {loaded.moved}",
    )
