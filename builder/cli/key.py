"""``builder key``."""

import click

from builder.cli.app import Commands
from builder.cli.key_certificate import certificate
from builder.cli.key_export import export
from builder.cli.key_make import generate, import_key
from builder.cli.key_states import list_keys, revoke, rotate


@click.group("key", cls=Commands)
def command() -> None:
    """Make and keep the keys that images are signed with."""


for _each in (generate, import_key, export, certificate, list_keys, rotate, revoke):
    command.add_command(_each)
