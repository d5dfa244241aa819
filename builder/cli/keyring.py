"""The user's keys, their passwords, and the person who knows those."""

import os
import sys

import click

from builder.adapters.keys.directory import KeyDirectory, keys_directory
from builder.adapters.keys.passwords import Ask, Passwords
from builder.adapters.keys.signers import Keyring
from builder.cli.settings import Settings


def keyring_of(settings: Settings, *, allow_plaintext: bool = False) -> Keyring:
    """The signers of this run. ``BUILDER_KEYS`` moves the directory of keys."""
    return Keyring(
        directory_of(settings),
        passwords_of(settings),
        environment=settings.environment,
        allow_plaintext=allow_plaintext,
    )


def directory_of(settings: Settings) -> KeyDirectory:
    """The directory of keys."""
    return KeyDirectory(keys_directory(settings.environment))


def passwords_of(settings: Settings) -> Passwords:
    """Passwords of the environment, or of whoever sits at the terminal."""
    return Passwords(settings.environment, ask=_asking())


def _asking() -> Ask | None:
    """Who is asked; nobody, unless stderr is a terminal and there is one to read from: stdin may
    be the key."""
    if not sys.stderr.isatty():
        return None
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return None
    return _ask


def _ask(question: str, twice: bool) -> str:
    answer: str = click.prompt(
        question,
        hide_input=True,
        err=True,
        default="",
        show_default=False,
        confirmation_prompt=f"{question}, again" if twice else False,
    )
    return answer
