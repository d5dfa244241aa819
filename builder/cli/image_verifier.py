"""``builder image-verifier``."""

import click

from builder.cli import show
from builder.cli.places import spot_of
from builder.cli.site import Site, project_command
from builder.cli.verifying import by_policy, verify_at
from builder.trust.image_verifier import Asked, answer
from builder.verification.verify import IMAGE


@project_command(
    "image-verifier",
    click.option("-name", "name", metavar="REF", required=True, help="What is to be pulled."),
    click.option("-digest", "digest", required=True, help="What that name led to."),
    click.option("-stdin-media-type", "media_type", help="Not looked at, as stdin is not."),
)
@click.pass_context
def command(
    context: click.Context, site: Site, name: str, digest: str, media_type: str | None
) -> None:
    """Answer containerd whether an image may be pulled.

    It is verified as by builder verify with the trust.yaml of the project. Exit status 0 is yes,
    any other one no; the one line on stdout says why.
    """
    del media_type

    def verify(asked: Asked) -> str:
        with site.looking() as world:
            spot = spot_of(str(asked.reference.at(asked.digest)), world=world, at="-name")
            passed = verify_at(spot, site, by_policy(site, spot), top=spot.image())
        keys = passed.top.claims[IMAGE].keys
        return f"{spot.reference} is signed by {', '.join(key.fingerprint for key in keys)}"

    told = answer(name, digest, verify)
    show.result(site.settings, {"status": told.status, "reason": told.reason}, told.reason)
    context.exit(told.status)
