"""``builder sign``."""

from collections.abc import Sequence
from pathlib import Path

import click

from builder.build_record import recorded
from builder.cli import show
from builder.cli.keyring import keyring_of
from builder.cli.places import Spot, spot_of
from builder.cli.site import Site, project_command, variant_names
from builder.keys.signer import Signer
from builder.sign import sign, signables
from builder.signatures.publish import Published
from builder.statements import statements

KEY = click.option(
    "--key",
    required=True,
    metavar="KEY",
    help="A key of builder key, a file, env://VARIABLE, or exec:COMMAND.",
)
PUBLIC = click.option(
    "--public",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Its public half: needed with exec:.",
)
PLAINTEXT = click.option(
    "--allow-plaintext", is_flag=True, help="Take a key that no password protects."
)


@project_command(
    "sign",
    click.argument("name", metavar="VARIANT", shell_complete=variant_names),
    click.argument("where", metavar="REF|oci:DIR"),
    KEY,
    PUBLIC,
    PLAINTEXT,
)
def command(
    site: Site,
    name: str,
    where: str,
    key: str,
    public: Path | None,
    allow_plaintext: bool,
) -> None:
    """Sign a built variant where it was published.

    Its manifest, provenance and SBOM are signed with it, in the forms that cosign, skopeo, podman
    and others read. What is there already is left alone. Then it is verified as by anybody else.
    """
    with site.at_work() as world:
        spot = spot_of(where, world=world, at="REF")
        record = recorded(site.image(name), site.store)
        said = {record.digest: statements(record, name=spot.repository)}
        images = signables(spot.top(), said, reference=spot.reference)
        signer = keyring_of(site.settings, allow_plaintext=allow_plaintext).signer(
            key, public=public
        )
        published, _ = sign(images, signer, place=spot.open(), again=spot.open())
    _tell(site, spot, published, signer, digests=[str(item.image.digest) for item in images])


def _tell(
    site: Site, spot: Spot, published: Published, signer: Signer, *, digests: Sequence[str]
) -> None:
    commands = _commands(spot, digests[0], signer.public.fingerprint)
    counts = f"{len(published.added)} signatures added, {published.present} were there"
    lines = [
        f"{spot.reference}: {counts}; verified",
        f"signed by {signer.public.fingerprint}",
    ]
    show.result(
        site.settings,
        {
            "reference": spot.reference,
            "images": list(digests),
            "key": signer.public.fingerprint,
            "added": [
                {
                    "image": str(item.image),
                    "kind": str(item.kind),
                    "predicate_type": item.predicate_type,
                }
                for item in published.added
            ],
            "present": published.present,
            "commands": commands,
        },
        "\n".join(lines),
        aside="\n".join(("with the public key in cosign.pub:", *commands)),
    )


def _commands(spot: Spot, digest: str, fingerprint: str) -> list[str]:
    """What readers of other tools run."""
    if spot.reference.startswith("oci:"):
        return [f"builder verify {spot.reference} --key cosign.pub"]
    image = f"{spot.repository}@{digest}"
    offline = "--insecure-ignore-tlog=true"
    return [
        f"builder verify {image} --key cosign.pub",
        f"cosign verify --key cosign.pub {offline} {image}",
        f"cosign verify-attestation --key cosign.pub --type slsaprovenance1 {offline} {image}",
        f"skopeo inspect --policy policy.json docker://{image}",
    ]
