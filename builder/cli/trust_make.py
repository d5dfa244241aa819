"""``builder trust new``."""

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder.cli import show
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.site import Site
from builder.errors import UsageError
from builder.trust.names import FILE, HISTORY, SIGNATURES

if TYPE_CHECKING:
    from builder.keys.public import PublicKey

_DAYS_LIMIT = 3660


@click.command("new")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="NAME[=FILE]",
    help="A key of yours, or the public key in FILE; for version 1.",
)
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    metavar="PATTERN",
    help="Whose images they sign: REGISTRY/REPOSITORY or REGISTRY/PATH/* (default: as publish"
    " in builder.yaml); for version 1.",
)
@click.option(
    "--threshold",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many keys sign the policy itself (default: 1); for version 1.",
)
@click.option(
    "--days",
    type=click.IntRange(1, _DAYS_LIMIT),
    default=365,
    show_default=True,
    help="How long it holds.",
)
@shared_options
@command_with_settings
def new(
    settings: Settings,
    keys: tuple[str, ...],
    repositories: tuple[str, ...],
    threshold: int | None,
    days: int,
) -> None:
    """Begin a policy, or the next version of it.

    The version that is there is kept as trust/N.yaml with its signatures. What is written counts
    once it is signed: change it before that.
    """
    site = Site(settings)
    expires = site.today + timedelta(days=days)
    if site.project.versions.latest is not None:
        if keys or repositories or threshold:
            raise UsageError(
                f"there is a {FILE}: --key, --repository and --threshold are for version 1",
                hint="without them its next version is begun, in which you change what you like",
            )
        version = _next(site, expires)
    else:
        site.project.accepted()  # one that was accepted here, and is gone, is not begun anew
        _first(site, keys, repositories, threshold or 1, expires)
        version = 1
    show.result(
        settings,
        {"file": FILE, "version": version, "expires": str(expires)},
        f"{FILE}: version {version}, to {expires}",
        aside="look at it, then: builder trust sign --key NAME",
    )


def _first(
    site: Site,
    keys: tuple[str, ...],
    repositories: tuple[str, ...],
    threshold: int,
    expires: date,
) -> None:
    from builder.trust.draft import first

    if not keys:
        raise UsageError("missing option '--key'", hint="builder key list has yours")
    publish = site.project.settings.publish
    patterns = repositories or ((publish.name,) if publish else ())
    if not patterns:
        raise UsageError(
            "missing option '--repository'", hint="for example registry.example/acme/*"
        )
    raw = first(
        _public_keys(site.settings, keys),
        expires=expires,
        repositories=patterns,
        threshold=threshold,
    )

    def change(there: bytes | None) -> bytes:
        if there is not None:
            raise UsageError(f"{FILE}: somebody has just made one")
        return raw

    site.project.update(FILE, change)


def _public_keys(settings: Settings, given: tuple[str, ...]) -> Mapping[str, "PublicKey"]:
    from builder.adapters.keys.signers import read_public_file
    from builder.cli.keyring import directory_of

    found = {}
    for item in given:
        name, equals, file = item.partition("=")
        if name in found:
            raise UsageError(f"--key: {name!r} is given twice", hint="each key has one name")
        found[name] = (
            read_public_file(Path(file)) if equals else directory_of(settings).entry(name).public
        )
    return found


def _next(site: Site, expires: date) -> int:
    from builder.trust.chain import demand
    from builder.trust.codec import read_policy
    from builder.trust.draft import following

    latest = site.project.versions.latest
    assert latest is not None
    policy = read_policy(latest.raw)
    demand(policy, latest, whose="its own")
    kept, signatures = f"{HISTORY}/{policy.version}.yaml", FILE + SIGNATURES
    made = following(latest.raw, expires=expires)

    def change(there: Mapping[str, bytes | None]) -> Mapping[str, bytes]:
        if there[FILE] != latest.raw or there[signatures] != latest.signatures:
            raise UsageError(f"{FILE}: changed meanwhile", hint="run it again")
        return {
            kept: latest.raw,
            kept + SIGNATURES: latest.signatures or b"",
            signatures: b"",
            FILE: made,
        }

    site.project.update_trust((FILE, signatures, kept, kept + SIGNATURES), change)
    return policy.version + 1
