"""``builder verify``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from builder.attest.statement import Statement
from builder.cli import show
from builder.cli.places import Spot, spot_of
from builder.cli.site import Site, project_command
from builder.cli.verifying import by_keys, by_policy, verify_at
from builder.errors import IntegrityError, UsageError
from builder.oci import Platform
from builder.statements import Kind
from builder.verification.verify import Verified


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
    click.option("--rebuild", is_flag=True, help="Bake it again from this project, and compare."),
    anywhere=True,
)
def command(
    site: Site, target: str, keys: tuple[Path, ...], demanded: tuple[str, ...], rebuild: bool
) -> None:
    """Say whether an image is what somebody we trust says it is.

    Its signatures are verified, then its manifest statement, then the image is held to that: every
    layer in its place, the base's first, and the files of those that are here. No layer is
    downloaded. Of an index it takes that somebody signed it, too. Without --key the trust.yaml of
    the project says who may sign what.
    """
    with site.looking() as world:
        spot = spot_of(target, world=world, at="REF")
        trusted = by_keys(keys) if keys else by_policy(site, spot)
        demands = [Kind(kind) for kind in demanded] or tuple(Kind)
        verified = verify_at(spot, site, trusted, demanded=demands)
        _check_platform(verified, site.asked, at=spot.reference)
        if rebuild:
            _rebuild(verified, site, at=spot.reference)
    _tell(site, spot, verified, rebuilt=rebuild)


def _check_platform(verified: Verified, asked: Platform | None, *, at: str) -> None:
    """Refuse an image of another platform than was asked for: without an index nobody chose."""
    claim = verified.claims.get(str(Kind.MANIFEST))
    if asked is None or claim is None or not isinstance(claim.said, Statement):
        return
    said = Platform.parse(claim.said.predicate["platform"], at=at)
    told = replace(said, variant=None) if asked.variant is None else said
    if told != asked:
        raise IntegrityError(
            f"{at}: {verified.image} is for {said}, expected {asked}",
            hint="leave out --platform, or name the image that is for it",
        )


def _rebuild(verified: Verified, site: Site, *, at: str) -> None:
    """Bake the variant that the manifest statement names, every step of it, and compare."""
    from builder.pipeline import build

    claim = verified.claims.get(str(Kind.MANIFEST))
    if claim is None or not isinstance(claim.said, Statement):
        raise UsageError("--rebuild needs the manifest statement", hint="demand it, too")
    name = claim.said.predicate["variant"]["name"]
    platform = Platform.parse(claim.said.predicate["platform"], at=at)
    with site.at_work(name) as world:
        made = build(site.project, name, world=world, platform=platform, check=True, named=False)
    if made.image.digest != verified.image:
        raise IntegrityError(
            f"{at}: expected {verified.image}, baking {name!r} here gives {made.image.digest}",
            hint="the project may not be the one it was made from: check out its commit; to see"
            f" where they differ: builder explain {verified.image} {made.image.digest}",
        )


def _tell(site: Site, spot: Spot, verified: Verified, *, rebuilt: bool) -> None:
    lines = [f"{spot.reference}: {verified.image} is verified"]
    lines += [
        f"  {what}: {', '.join(key.fingerprint for key in claim.keys)}"
        for what, claim in verified.claims.items()
    ]
    own = sum(layer.step is not None for layer in verified.layers)
    if verified.layers:
        base = len(verified.layers) - own
        lines.append(f"  layers: {base} of the base, {own} of ours, each in its place")
    if verified.files:
        lines.append(f"  files: {verified.files} read, each as it was said")
    if rebuilt:
        lines.append("  rebuilt here: the same image")
    lines += [f"  {remark}" for remark in verified.remarks]
    show.result(site.settings, _document(spot, verified, rebuilt=rebuilt), "\n".join(lines))


def _document(spot: Spot, verified: Verified, *, rebuilt: bool) -> dict[str, Any]:
    return {
        "reference": spot.reference,
        "image": str(verified.image),
        "claims": {
            what: [key.fingerprint for key in claim.keys] for what, claim in verified.claims.items()
        },
        "layers": [{"digest": str(layer.digest), "step": layer.step} for layer in verified.layers],
        "files": verified.files,
        "rebuilt": rebuilt,
        "remarks": list(verified.remarks),
    }
