"""``builder key list``, ``rotate`` and ``revoke``."""

import logging
from typing import TYPE_CHECKING

import click

from builder.cli import show
from builder.cli.key_make import make, plaintext_option, type_option
from builder.cli.key_shown import document, line, state_of
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.errors import IntegrityError, UsageError

if TYPE_CHECKING:
    from builder.adapters.keys.directory import KeptKey

_log = logging.getLogger(__name__)


@click.command("list")
@shared_options
@command_with_settings
def list_keys(settings: Settings) -> None:
    """List the keys: name, type, fingerprint, state."""
    from builder.cli.keyring import directory_of

    directory = directory_of(settings)
    if directory.others_write():
        _log.warning("%s: others can write there; chmod 700 %s", directory.path, directory.path)
    entries: list[KeptKey] = []
    damaged: list[IntegrityError] = []
    for name in directory.names():
        try:
            entries.append(directory.shown(name))
        except IntegrityError as error:
            damaged.append(error)
    value = {
        "directory": str(directory.path),
        "keys": [document(directory, entry) for entry in entries],
    }
    rows = [
        (entry.name, str(entry.public.type), entry.public.fingerprint, state_of(entry))
        for entry in entries
    ]
    text = show.table(("NAME", "TYPE", "FINGERPRINT", "STATE"), rows) if rows else "no keys"
    if not damaged:
        show.result(settings, value, text, aside=None if rows else f"in {directory.path}")
        return
    show.so_far(settings, value, text)
    raise damaged[0]


@click.command("rotate")
@click.argument("name")
@click.option("--to", metavar="NAME", help="The name of the new key (default: the next number).")
@type_option
@plaintext_option
@shared_options
@command_with_settings
def rotate(settings: Settings, name: str, to: str | None, kind: str, allow_plaintext: bool) -> None:
    """Make the successor of a key, and say what is to be done.

    Both sign until everybody trusts the new one.
    """
    from builder.adapters.keys.directory import KeyState
    from builder.cli.keyring import directory_of

    directory = directory_of(settings)
    directory.check_no_successor(name)
    successor = directory.free_name(name) if to is None else to
    if directory.has(successor):
        raise UsageError(
            f"there is a key {successor!r} in {directory.path}", hint="--to takes another name"
        )
    private, public = make(settings, successor, kind, allow_plaintext=allow_plaintext)
    old, new = directory.succeed(name, successor, private, public)
    revoked = old.state is KeyState.REVOKED
    both = f"sign with {successor} alone" if revoked else f"sign with both, {name} and {successor}"
    steps = [
        f"builder key export {successor} --format ssh prints its line 'public' for trust.yaml",
        f"add {new.public.fingerprint} to the keys and roles of trust.yaml, in a new version of it",
        f"until everybody has that version, {both}",
    ]
    if not revoked:
        retired = f"then give {old.public.fingerprint} the state retired there, in a next version"
        steps.append(retired)
    value = {
        "old": document(directory, old),
        "new": document(directory, new),
        "steps": steps,
    }
    told = [line(new), *(f"{number}. {step}" for number, step in enumerate(steps, 1))]
    show.result(settings, value, "\n".join(told))


@click.command("revoke")
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Why, for those who meet it later.")
@shared_options
@command_with_settings
def revoke(settings: Settings, name: str, reason: str | None) -> None:
    """Sign nothing more with a key, and say what is to be done.

    What counts for others is trust.yaml: this only keeps you from signing.
    """
    from builder.cli.keyring import directory_of

    if reason is not None and not reason.isprintable():
        raise UsageError(f"--reason: expected one line of text, got {reason!r}")
    directory = directory_of(settings)
    entry = directory.revoke(name, reason=reason)
    steps = [
        f"give {entry.public.fingerprint} the state revoked in trust.yaml, in a new version of it",
        "then nothing that it signed is accepted, new or old",
        "what builder trust export wrote for other tools still has the key: write it anew",
        "sign again, with another key, what is to stay in use",
        "if the key may be in other hands, ask who could use it, and since when",
    ]
    value = {"key": document(directory, entry), "steps": steps}
    told = [line(entry), *(f"{number}. {step}" for number, step in enumerate(steps, 1))]
    show.result(settings, value, "\n".join(told))
