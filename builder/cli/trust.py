"""``builder trust``."""

import click

from builder.cli.app import Commands
from builder.cli.trust_accept import forget, init, update
from builder.cli.trust_export import export
from builder.cli.trust_make import new
from builder.cli.trust_show import check, show_policy
from builder.cli.trust_sign import sign


@click.group("trust", cls=Commands)
def command() -> None:
    """Say whose signatures count, and hold others to it."""


for _each in (new, sign, init, update, show_policy, check, export, forget):
    command.add_command(_each)
