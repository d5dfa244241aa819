"""Options of commands that take a key."""

from pathlib import Path

import click

from builder.cli.settings import NamedPath

PUBLIC = click.option(
    "--public",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The public half of KEY: needed with exec:.",
)
ALLOW_PLAINTEXT = click.option(
    "--allow-plaintext", is_flag=True, help="Take a key without a password, too."
)
NOTATION = click.option(
    "--notation",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="CERT",
    help="Sign for notation, too, with this certificate of the key: builder key certificate makes"
    " one.",
)
OUT = click.option(
    "--out",
    type=NamedPath(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it there instead of to stdout.",
)
FORCE = click.option("--force", is_flag=True, help="Replace FILE.")
