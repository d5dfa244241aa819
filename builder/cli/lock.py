"""``builder lock``."""

from pathlib import Path

import click

from builder import bump as bumps
from builder.cli.bump import conclude
from builder.cli.model_sums import SUMS, published
from builder.cli.site import Site, project_command
from builder.completion import completed


@project_command(
    "lock",
    click.argument("names", nargs=-1, metavar="[NAME]..."),
    click.option("--dry-run", is_flag=True, help="Say what is missing; write nothing."),
    SUMS,
)
def command(site: Site, names: tuple[str, ...], dry_run: bool, sums: Path | None) -> None:
    """Complete pins: fill in what a lock could say and does not.

    Nothing moves: a pin stays what it is, and a tag that names something else by now is told. Of a
    base image that is its manifest, config and layers, and which vLLM is in it, as its own files
    say; of a patch set its payload, of a wheel its size, of a model the digests of its files.

    With --sums, the files of one model are held to a checksum file that somebody publishes. Where
    the hub has its commit no more, or --offline is given, the digests come from there alone.
    """
    given = published(sums)
    with site.at_work() as world:
        moved = completed(site.project, names, world=world, platform=site.platform, published=given)
        bump = bumps.untried(site.project, moved)
    conclude(site, bump, dry_run=dry_run)
