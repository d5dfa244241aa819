"""``builder trust init``, ``update`` and ``forget``: which policy this machine goes by."""

import click

from builder.cli import show
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.site import Site
from builder.cli.trust_there import latest_of
from builder.cli.world import memory_of
from builder.digest import Digest
from builder.errors import ProjectError, UntrustedError, UsageError
from builder.trust.names import FILE


@click.command("init")
@click.option("--accept-first", is_flag=True, help="Accept what is there: you looked at its keys.")
@click.option("--digest", metavar="DIGEST", help="Accept it if a version of it has this digest.")
@shared_options
@command_with_settings
def init(settings: Settings, accept_first: bool, digest: str | None) -> None:
    """Accept the policy of the project on this machine.

    From then on only versions count that the accepted one vouches for. Without an option, the keys
    that would be accepted are shown, and nothing is.
    """
    from builder.cli.trust_show import keys_text
    from builder.trust.chain import begin
    from builder.trust.codec import read_policy

    site = Site(settings)
    latest = latest_of(site)
    memory = memory_of(settings)
    if (known := memory.recall()) is not None:
        version = read_policy(known, file="the accepted version").version
        raise UsageError(
            f"version {version} of {FILE} was accepted here before",
            hint="builder trust update goes on from it; builder trust forget drops it",
        )
    policy = read_policy(latest.raw)
    own = Digest.of(latest.raw)
    if not accept_first and digest is None:
        click.echo(keys_text(policy), err=settings.json)
        raise UntrustedError(
            f"{FILE}: version {policy.version}, {own}: nothing is accepted yet",
            hint="compare the fingerprints with their owners, then: builder trust init"
            f" --digest {own}, or --accept-first",
        )
    anchor = own if digest is None else Digest.parse(digest, at="--digest", refusal=UsageError)
    found = begin(site.project.versions, anchor)
    memory.remember(found.raw)
    _tell(settings, found.policy.version, Digest.of(found.raw), keys_text(found.policy))


@click.command("update")
@shared_options
@command_with_settings
def update(settings: Settings) -> None:
    """Go on to the newest version, if the accepted one vouches for it.

    Whatever needs the policy does so, too.
    """
    from builder.trust.chain import check_expiry

    site = Site(settings)
    found = site.project.accepted()
    if found is None:
        raise ProjectError(f"no {FILE} here", hint="builder trust new begins one")
    steps = ", ".join(map(str, found.steps))
    text = f"accepted: {steps}" if found.steps else "nothing new"
    check_expiry(found.policy, site.today)
    _tell(settings, found.policy.version, Digest.of(found.raw), text, steps=found.steps)


@click.command("forget")
@shared_options
@command_with_settings
def forget(settings: Settings) -> None:
    """Forget what this machine accepted of the project's policy."""
    done = memory_of(settings).forget()
    show.result(settings, {"forgotten": done}, "forgotten" if done else "nothing was accepted here")


def _tell(
    settings: Settings, version: int, digest: Digest, text: str, *, steps: tuple[int, ...] = ()
) -> None:
    show.result(
        settings,
        {"file": FILE, "version": version, "digest": str(digest), "steps": list(steps)},
        f"{text}\n{FILE}: version {version}, {digest}",
    )
