"""``builder sign``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder.cli import show
from builder.cli.key_options import ALLOW_PLAINTEXT, PUBLIC
from builder.cli.signing import sign_there, signer_of
from builder.cli.site import Site, project_command, variant_names

if TYPE_CHECKING:
    from builder.cli.notation import Notary
    from builder.keys.signer import Signer


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
    click.option(
        "--notation",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="CERT",
        help="Sign for notation, too, with this certificate of the key (PEM).",
    ),
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
    signer = signer_of(site, key, public=public, allow_plaintext=allow_plaintext)
    notary = None if notation is None else _notary(signer, notation)
    with site.at_work() as world:
        signed = sign_there(image, where, signer, key=key, site=site, world=world)
        notarised = None if notary is None else notary.sign(signed.spot, signed.images)
    document, text = signed.document(), signed.text()
    aside = [*signed.aside()]
    if by_policy := signed.policy_commands():
        aside += ["with a trust.yaml in the project (builder trust new begins one):", *by_policy]
    if notarised is not None:
        document["notation"] = notarised.document()
        text += f"\n{notarised.text()}"
        aside += ["with a trust policy that names the store:", *notarised.commands()]
    show.result(site.settings, document, text, aside="\n".join(aside))


def _notary(signer: "Signer", certificate: Path) -> "Notary":
    from builder.cli.notation import notary_of

    return notary_of(signer, certificate)
