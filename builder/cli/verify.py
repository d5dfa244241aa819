"""``builder verify``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from builder.adapters.keys.signers import read_public_file
from builder.cli import show
from builder.cli.places import Spot, spot_of
from builder.cli.site import Site, project_command
from builder.errors import GoneError, UsageError
from builder.keys.public import PublicKey
from builder.oci import Index, Manifest
from builder.statements import Kind
from builder.verification.verify import Verified, any_of, verify


@project_command(
    "verify",
    click.argument("target", metavar="REF|oci:DIR"),
    click.option(
        "--key",
        "keys",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A public key that may vouch for it; any of several.",
    ),
    click.option(
        "--demand",
        "demanded",
        multiple=True,
        type=click.Choice([str(kind) for kind in Kind]),
        help="Which statements must be there (default: all of them).",
    ),
)
def command(site: Site, target: str, keys: tuple[Path, ...], demanded: tuple[str, ...]) -> None:
    """Say whether an image is what somebody we trust says it is.

    Its signatures are verified, then its manifest statement, then the image is held to that: every
    layer in its place, the base's first. No layer is downloaded.
    """
    known = tuple(read_public_file(file) for file in keys)
    if not known:
        raise UsageError("no key is trusted", hint="give one with --key")
    with site.at_work() as world:
        spot = spot_of(target, world=world, at="REF")
        results = [
            verify(
                image,
                spot.open(),
                keys=known,
                enough=any_of(known),
                demanded=[Kind(kind) for kind in demanded] or tuple(Kind),
            )
            for image in _images(spot, site)
        ]
    _tell(site, spot, results)


def _images(spot: Spot, site: Site) -> Sequence[Any]:
    """The image, or of an index the one of the platform."""
    top = spot.top()
    if top is None:
        raise GoneError(f"{spot.reference}: there is no such image")
    if isinstance(top, Manifest):
        return [top.digest]
    assert isinstance(top, Index)
    return [top.select(site.platform, at=spot.reference).digest]


def _tell(site: Site, spot: Spot, results: Sequence[Verified]) -> None:
    lines, documents = [], []
    for result in results:
        lines.append(f"{spot.reference}: {result.image} is verified")
        lines += [
            f"  {what}: {', '.join(key.fingerprint for key in claim.keys)}"
            for what, claim in result.claims.items()
        ]
        own = sum(layer.step is not None for layer in result.layers)
        if result.layers:
            lines.append(
                f"  layers: {len(result.layers) - own} of the base, {own} of ours, in their places"
            )
        lines += [f"  {remark}" for remark in result.remarks]
        documents.append(_document(result))
    show.result(site.settings, {"reference": spot.reference, "images": documents}, "\n".join(lines))


def _document(result: Verified) -> dict[str, Any]:
    return {
        "image": str(result.image),
        "claims": {
            what: [_named(key) for key in claim.keys] for what, claim in result.claims.items()
        },
        "layers": [{"digest": str(layer.digest), "step": layer.step} for layer in result.layers],
        "remarks": list(result.remarks),
    }


def _named(key: PublicKey) -> str:
    return key.fingerprint
