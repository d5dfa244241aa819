"""``builder key certificate``."""

from pathlib import Path

import click

from builder.cli import show
from builder.cli.key_options import ALLOW_PLAINTEXT, FORCE, OUT, PUBLIC
from builder.cli.settings import Settings, command_with_settings, shared_options


@click.command("certificate")
@click.argument("key", metavar="KEY")
@click.option(
    "--subject",
    required=True,
    metavar="NAME",
    help="Who signs, with C, ST and O: 'CN=release,O=Acme,ST=Berlin,C=DE'.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 36500),
    default=365,
    show_default=True,
    metavar="N",
    help="How long it holds, from today on: notation takes no signature after it.",
)
@PUBLIC
@ALLOW_PLAINTEXT
@OUT
@FORCE
@shared_options
@command_with_settings
def certificate(
    settings: Settings,
    key: str,
    subject: str,
    days: int,
    public: Path | None,
    allow_plaintext: bool,
    out: Path | None,
    force: bool,
) -> None:
    """Make a certificate of a key, for signatures of Notation.

    The key signs it itself. KEY is what sign --key takes; Notation has no signatures of ed25519
    keys. The same day, key and name give the same bytes.
    """
    from builder.adapters.keys.files import write_whole
    from builder.cli.keyring import keyring_of
    from builder.cli.world import moment
    from builder.notation.self_signed import self_signed

    signer = keyring_of(settings, allow_plaintext=allow_plaintext).signer(key, public=public)
    chain = self_signed(signer, subject, now=moment(), days=days)
    data = chain.pem
    if out is not None:
        write_whole(out, data, mode=0o644, force=force)
        data = b""
    if settings.json:
        show.document(
            {
                "key": chain.public.fingerprint,
                "certificate": f"sha256:{chain.thumbprints[0]}",
                "until": f"{chain.until:%Y-%m-%dT%H:%M:%SZ}",
                "pem": chain.pem.decode(),
            }
        )
    else:
        click.echo(data, nl=False)
