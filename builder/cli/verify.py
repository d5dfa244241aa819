"""``builder verify``."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from builder import quoting
from builder.attest.statement import Statement
from builder.cli import show
from builder.cli.places import Spot, spot_of
from builder.cli.site import Site, project_command, variant_names
from builder.cli.verifying import Passed, by_keys, by_policy, verify_at
from builder.errors import IntegrityError, UsageError
from builder.oci import Platform
from builder.pipeline import reference_name
from builder.statements import Kind
from builder.verification.verify import Verified


@project_command(
    "verify",
    click.argument("target", metavar="REF|VARIANT|oci:DIR", shell_complete=variant_names),
    click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="KEY",
        help="A public key that may vouch for it, a file or one of builder key; any of several.",
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
    site: Site, target: str, keys: tuple[str, ...], demanded: tuple[str, ...], rebuild: bool
) -> None:
    """Say whether an image is what somebody we trust says it is.

    Its signatures are verified, then its manifest statement, then the image is held to that: every
    layer in its place, the base's first, and the files of those that are here. No layer is
    downloaded. Of an index it takes that somebody signed it, too. Without --key the trust.yaml of
    the project says who may sign what. A variant is looked for where builder.yaml publishes it.
    """
    with site.looking() as world:
        spot = spot_of(_published(target, site), world=world, at="REF")
        trusted = by_keys(keys, site) if keys else by_policy(site, spot)
        demands = [Kind(kind) for kind in demanded] or tuple(Kind)
        passed = verify_at(spot, site, trusted, top=spot.image(), demanded=demands)
        if site.asked is not None:
            _check_platform(passed, site.asked, spot)
        if rebuild:
            _rebuild(passed.image, site, at=spot.reference)
    _tell(site, spot, passed, rebuilt=rebuild)


def _published(target: str, site: Site) -> str:
    """The reference of a variant in the project's repository; what is no variant's name stays.

    Raises:
        UsageError: The project does not say where it is published.
    """
    if site.homeless or set(target) & set("/:@") or target not in site.project.variants():
        return target
    repository = site.ours.publish
    if repository is None:
        raise UsageError(
            f"REF: {target!r} is a variant, and builder.yaml does not say where it is published",
            hint="name the image, REGISTRY/REPOSITORY:TAG or oci:DIR; or add publish there",
        )
    return f"{repository}:{reference_name(target, site.platform)}"


def _manifest_statement(verified: Verified) -> Statement | None:
    """The manifest statement; ``None`` where it was not demanded."""
    claim = verified.claims.get(str(Kind.MANIFEST))
    return claim.said if claim is not None and isinstance(claim.said, Statement) else None


def _check_platform(passed: Passed, asked: Platform, spot: Spot) -> None:
    """Refuse an image of another platform than was asked for: without an index nobody chose."""
    manifest = _manifest_statement(passed.image)
    if manifest is None:
        if passed.index is not None:
            return
        raise UsageError("--platform needs the manifest statement", hint="demand it, too")
    said = Platform.parse(manifest.predicate["platform"], at=spot.reference)
    told = replace(said, variant=None) if asked.variant is None else said
    if told != asked:
        raise IntegrityError(
            f"{spot.reference}: {passed.image.image} is for {said}, expected {asked}",
            hint="leave out --platform, or name the image that is for it",
        )


def _rebuild(verified: Verified, site: Site, *, at: str) -> None:
    """Bake the variant that the manifest statement names, every step of it, and compare."""
    from builder.pipeline import build

    manifest = _manifest_statement(verified)
    if manifest is None:
        raise UsageError("--rebuild needs the manifest statement", hint="demand it, too")
    name = manifest.predicate["variant"]["name"]
    platform = Platform.parse(manifest.predicate["platform"], at=at)
    with site.at_work(name) as world:
        made = build(site.project, name, world=world, platform=platform, check=True, named=False)
    if made.image.digest != verified.image:
        raise IntegrityError(
            f"{at}: expected {verified.image}, baking {name!r} here gives {made.image.digest}",
            hint="the project may not be the one it was made from: check out its commit; to see"
            f" where they differ: builder explain {verified.image} {made.image.digest}",
        )


def _tell(site: Site, spot: Spot, passed: Passed, *, rebuilt: bool) -> None:
    verified = passed.image
    lines = [f"{spot.reference}: {verified.image} is verified"]
    lines += [
        f"  {what}: {', '.join(key.fingerprint for key in claim.keys)}"
        for what, claim in verified.claims.items()
    ]
    own = sum(layer.step is not None for layer in verified.layers)
    if verified.layers:
        base = len(verified.layers) - own
        lines.append(f"  layers: {base} of the base, {own} of ours, each in its place")
        lines.append(_files(verified, own))
    if rebuilt:
        lines.append("  rebuilt here: the same image")
    remarks = (*_lacking(spot, verified), *passed.remarks)
    lines += [f"  {quoting.plain(remark)}" for remark in remarks]
    document = _document(spot, verified, remarks, rebuilt=rebuilt)
    show.result(site.settings, document, "\n".join(lines))


def _files(verified: Verified, own: int) -> str:
    if not verified.absent:
        return f"  files: {verified.files} read, each as it was said"
    read = f"{verified.files} read, each as it was said; " if verified.files else ""
    return f"  files: {read}{verified.absent} of our {own} layers are not here to be read"


def _lacking(spot: Spot, verified: Verified) -> tuple[str, ...]:
    """What a layout does not have of the image."""
    layout = spot.layers
    if layout is None or all(layout.has(layer.digest) for layer in verified.layers):
        return ()
    count = sum(not layout.has(layer.digest) for layer in verified.layers)
    return (f"{count} of {len(verified.layers)} layers are not in the layout: nobody can run it",)


def _document(
    spot: Spot, verified: Verified, remarks: Sequence[str], *, rebuilt: bool
) -> dict[str, Any]:
    return {
        "reference": spot.reference,
        "image": str(verified.image),
        "claims": {
            what: [key.fingerprint for key in claim.keys] for what, claim in verified.claims.items()
        },
        "layers": [{"digest": str(layer.digest), "step": layer.step} for layer in verified.layers],
        "files": verified.files,
        "absent": verified.absent,
        "rebuilt": rebuilt,
        "remarks": list(remarks),
    }
