"""``builder key generate`` and ``import``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder.cli import show
from builder.cli.key_shown import document, line
from builder.cli.settings import Settings, command_with_settings, shared_options

if TYPE_CHECKING:
    from builder.adapters.keys.directory import KeptKey, KeyDirectory
    from builder.keys.public import PublicKey

type_option = click.option(
    "--type",
    "kind",
    type=click.Choice(["ecdsa-p256", "ed25519"]),
    default="ecdsa-p256",
    show_default=True,
    help="Every reader takes ecdsa-p256; most take ed25519.",
)
plaintext_option = click.option(
    "--allow-plaintext",
    is_flag=True,
    help="Keep it without a password: whoever reads the file can sign.",
)
force_option = click.option(
    "--force", is_flag=True, help="Put it in the place of what is there, which is lost."
)


@click.command("generate")
@click.argument("name")
@type_option
@plaintext_option
@force_option
@shared_options
@command_with_settings
def generate(settings: Settings, name: str, kind: str, allow_plaintext: bool, force: bool) -> None:
    """Make a key.

    The private half is kept under a password, in cosign's format. BUILDER_KEY_PASSWORD_FILE names a
    file that has the password; on a terminal it is asked for.
    """
    from builder.cli.keyring import directory_of

    directory = directory_of(settings)
    directory.check_free(name, force=force)
    private, public = make(settings, name, kind, allow_plaintext=allow_plaintext)
    directory.put(name, private, public, force=force)
    _tell(settings, directory, directory.entry(name))


@click.command("import")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@plaintext_option
@force_option
@shared_options
@command_with_settings
def import_key(
    settings: Settings, name: str, file: Path, allow_plaintext: bool, force: bool
) -> None:
    """Keep a key that another tool made.

    FILE (- for stdin) is a private key of cosign, OpenSSL (PKCS#8, SEC1) or OpenSSH. A key that has
    a password keeps it; one that has none gets one.
    """
    from builder.adapters.keys.files import read_private_file
    from builder.adapters.keys.keeping import imported
    from builder.cli.keyring import directory_of, passwords_of
    from builder.keys.public import KEY_LIMIT

    directory = directory_of(settings)
    directory.check_free(name, force=force)
    if str(file) == "-":
        at, data = "stdin", sys.stdin.buffer.read(KEY_LIMIT + 1)
    else:
        at, data = str(file), read_private_file(file, encrypted=lambda _: True)
    private, key = imported(
        data,
        at=at,
        name=name,
        passwords=passwords_of(settings),
        allow_plaintext=allow_plaintext,
    )
    directory.put(name, private, key.public, force=force)
    _tell(settings, directory, directory.entry(name))


def make(
    settings: Settings, name: str, kind: str, *, allow_plaintext: bool
) -> tuple[bytes, "PublicKey"]:
    """A new key: the file of its private half, and the public one."""
    from builder.adapters.keys.keeping import kept
    from builder.cli.keyring import passwords_of
    from builder.keys.private import generate as new_key
    from builder.keys.public import KeyType

    key = new_key(KeyType(kind))
    passwords = passwords_of(settings)
    private = kept(key, at=name, passwords=passwords, allow_plaintext=allow_plaintext)
    return private, key.public


def _tell(settings: Settings, directory: "KeyDirectory", entry: "KeptKey") -> None:
    public = directory.path / f"{entry.name}.pub"
    show.result(
        settings,
        document(directory, entry),
        line(entry),
        aside=f"whoever verifies needs {public}",
    )
