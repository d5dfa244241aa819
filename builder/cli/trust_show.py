"""``builder trust show`` and ``check``."""

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import click

from builder.cli import show
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.site import Site
from builder.cli.trust_policy import latest
from builder.digest import Digest
from builder.errors import BuilderError
from builder.trust.names import FILE

if TYPE_CHECKING:
    from builder.trust.model import Policy, TrustedKey


@click.command("show")
@shared_options
@command_with_settings
def show_policy(settings: Settings) -> None:
    """Show keys, roles and scopes, who signed, and whether this machine accepted it."""
    from builder.trust.chain import root_signers
    from builder.trust.codec import read_policy

    site = Site(settings)
    there = latest(site)
    policy = read_policy(there.raw)
    signed_by = sorted(key.name for key in root_signers(policy, there))
    why = _why_not(site)
    digest = Digest.of(there.raw)
    over = policy.expires < site.today
    named = ", ".join(signed_by) or "nobody"
    value = {
        "file": FILE,
        "version": policy.version,
        "digest": str(digest),
        "expires": str(policy.expires),
        "expired": over,
        "accepted": why is None,
        "signed_by": signed_by,
        "threshold": policy.root.threshold,
        **_document(policy),
    }
    lines = [
        f"{FILE}: version {policy.version}, {'expired on' if over else 'to'} {policy.expires}",
        f"{digest}",
        f"signed by {len(signed_by)} of {policy.root.threshold}: {named}",
        "accepted on this machine" if why is None else f"not accepted on this machine: {why}",
        "",
        keys_text(policy),
        "",
        _scopes_text(policy),
    ]
    show.result(settings, value, "\n".join(lines))


def _why_not(site: Site) -> str | None:
    """Why this machine does not accept the policy that is there."""
    try:
        site.project.accepted()
    except BuilderError as error:
        return error.message
    return None


def _document(policy: "Policy") -> dict[str, Any]:
    return {
        "keys": [_key(policy, key) for key in policy.keys.values()],
        "roles": [
            {"name": role.name, "keys": list(role.keys), "threshold": role.threshold}
            for role in policy.roles.values()
        ],
        "scopes": [
            {"repositories": list(item.repositories), "role": item.role} for item in policy.scopes
        ],
        "grandfathered": sorted(map(str, policy.grandfathered)),
    }


@click.command("check")
@click.option(
    "--days",
    type=click.IntRange(0, 3660),
    default=30,
    show_default=True,
    help="Warn of what ends within so many days.",
)
@shared_options
@command_with_settings
@click.pass_context
def check(context: click.Context, settings: Settings, days: int) -> None:
    """Say what is wrong with the policy, its signatures, and what ends soon.

    The exit status is that of the worst finding; warnings alone are 0.
    """
    from builder.check import exit_status
    from builder.check.trust import accepted, policy, unvouched
    from builder.cli.check import document, text

    site = Site(settings)
    latest(site)
    found = [
        *policy(site.project, today=site.today, soon=timedelta(days=days)),
        *accepted(site.project),
        *unvouched(site.project, site.project.waivers, today=site.today),
    ]
    findings = tuple(dict.fromkeys(found))
    show.result(settings, document(findings), text(findings))
    context.exit(exit_status(findings))


def keys_text(policy: "Policy") -> str:
    """The keys with all that decides about them, for people to compare."""
    rows = [
        (
            key.name,
            str(key.state) + _days(key.since, key.until),
            key.public.fingerprint,
            ", ".join(_roles_of(policy, key)) or "-",
            key.owner,
        )
        for key in policy.keys.values()
    ]
    return show.table(("KEY", "STATE", "FINGERPRINT", "ROLES", "OWNER"), rows)


def _scopes_text(policy: "Policy") -> str:
    rows = [
        (pattern, item.role, f"{role.threshold} of {', '.join(map(_named, policy.keys_of(role)))}")
        for item in policy.scopes
        for pattern in item.repositories
        for role in (policy.roles[item.role],)
    ]
    return show.table(("REPOSITORIES", "ROLE", "SIGNED BY"), rows)


def _named(key: "TrustedKey") -> str:
    return key.name if key.state == "active" else f"{key.name} ({key.state})"


def _days(since: date | None, until: date | None) -> str:
    return (f" from {since}" if since else "") + (f" to {until}" if until else "")


def _roles_of(policy: "Policy", key: "TrustedKey") -> list[str]:
    return [role.name for role in policy.roles.values() if key.name in role.keys]


def _key(policy: "Policy", key: "TrustedKey") -> dict[str, Any]:
    return {
        "name": key.name,
        "fingerprint": key.public.fingerprint,
        "type": str(key.public.type),
        "owner": key.owner,
        "state": str(key.state),
        "since": None if key.since is None else str(key.since),
        "until": None if key.until is None else str(key.until),
        "roles": _roles_of(policy, key),
    }
