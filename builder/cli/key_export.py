"""``builder key export``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder.cli import show
from builder.cli.key_options import FORCE, OUT
from builder.cli.key_shown import document
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.errors import PolicyError, UsageError

if TYPE_CHECKING:
    from builder.adapters.keys.directory import KeyDirectory


@click.command("export")
@click.argument("name")
@click.option(
    "--format",
    "form",
    type=click.Choice(["pem", "ssh"]),
    default="pem",
    show_default=True,
    help="pem is what cosign and openssl read, ssh a line of OpenSSH.",
)
@click.option("--private", is_flag=True, help="The private half, encrypted as it is kept.")
@click.option("--plaintext", is_flag=True, help="With --private and --out: not encrypted (PKCS#8).")
@OUT
@FORCE
@shared_options
@command_with_settings
def export(
    settings: Settings,
    name: str,
    form: str,
    private: bool,
    plaintext: bool,
    out: Path | None,
    force: bool,
) -> None:
    """Print the public half of a key."""
    from builder.adapters.keys.files import write_whole
    from builder.cli.keyring import directory_of

    directory = directory_of(settings)
    entry = directory.entry(name)
    _refuse_export(settings, form, private=private, plaintext=plaintext, out=out)
    if private:
        data = _private(settings, directory, name, plaintext=plaintext)
    else:
        data = entry.public.openssh if form == "ssh" else entry.public.pem
    if out is not None:
        write_whole(out, data, mode=0o600 if private else 0o644, force=force)
        data = b""
    if settings.json:
        halves = {"pem": entry.public.pem.decode(), "ssh": entry.public.openssh.decode()}
        show.document(document(directory, entry) | {"hint": entry.public.hint} | halves)
    else:
        click.echo(data, nl=False)


def _private(settings: Settings, directory: "KeyDirectory", name: str, *, plaintext: bool) -> bytes:
    """The private half as it is kept, or in plaintext."""
    from builder.adapters.keys.files import read_private_file
    from builder.cli.keyring import keyring_of
    from builder.keys.private import is_encrypted

    path = directory.private(name)
    if plaintext:
        return keyring_of(settings, allow_plaintext=True).of_file(path).plaintext_pem()
    data = read_private_file(path, encrypted=lambda data: is_encrypted(data, at=str(path)))
    if not is_encrypted(data, at=str(path)):
        raise PolicyError(
            f"key {name!r} is kept without a password",
            hint="--private --plaintext --out FILE takes it as it is",
        )
    return data


def _refuse_export(
    settings: Settings, form: str, *, private: bool, plaintext: bool, out: Path | None
) -> None:
    if plaintext and not private:
        raise UsageError("--plaintext goes with --private", hint="public halves are no secret")
    if private and form != "pem":
        raise UsageError("--private: expected --format pem, got ssh")
    if private and settings.json:
        raise UsageError(
            "--private and --json: documents hold no private keys", hint="leave --json out"
        )
    if plaintext and out is None:
        raise UsageError(
            "--plaintext: expected --out FILE, so that no terminal and no log has the key",
            hint="the file is made for you alone (mode 0600)",
        )
