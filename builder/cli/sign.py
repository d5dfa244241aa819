"""``builder sign``."""

from pathlib import Path

import click

from builder.cli import show
from builder.cli.key_options import ALLOW_PLAINTEXT, NOTATION, PUBLIC
from builder.cli.places import spot_of
from builder.cli.signing import image_signer
from builder.cli.site import Site, project_command, variant_names


@project_command(
    "sign",
    click.argument("name", metavar="VARIANT", shell_complete=variant_names),
    click.argument("where", metavar="REF|oci:DIR"),
    click.option(
        "--key",
        required=True,
        metavar="KEY",
        help="A key of builder key, a file, env://VARIABLE, or exec:COMMAND.",
    ),
    PUBLIC,
    ALLOW_PLAINTEXT,
    NOTATION,
)
def command(
    site: Site,
    name: str,
    where: str,
    key: str,
    public: Path | None,
    allow_plaintext: bool,
    notation: Path | None,
) -> None:
    """Sign a built variant where it was published.

    Its manifest, provenance and SBOM are signed with it, in the forms that cosign, skopeo, podman
    and others read. What is there already is left alone. Then it is verified with the public key.
    """
    image = site.image(name)
    signer = image_signer(
        site, key, public=public, allow_plaintext=allow_plaintext, notation=notation
    )
    with site.at_work() as world:
        signed = signer.sign(image, spot_of(where, world=world, at="REF"))
    aside = [*signed.aside()]
    if by_policy := signed.policy_commands():
        aside += ["by the project's trust.yaml (builder trust new begins one):", *by_policy]
    if signed.notarised is not None:
        aside += ["with a trust policy that names the store:", *signed.notarised.commands()]
    show.result(site.settings, signed.document(), signed.text(), aside="\n".join(aside))
