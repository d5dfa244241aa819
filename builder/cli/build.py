"""``builder build``."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from builder import notes
from builder.build_record import Build
from builder.cli import show, unchanged
from builder.cli.key_options import ALLOW_PLAINTEXT, NOTATION
from builder.cli.settings import NamedPath
from builder.cli.site import VARIANTS, Site, project_command
from builder.digest import Digest
from builder.errors import UsageError
from builder.outcome import LayerOutput
from builder.pipeline import build, reference_name
from builder.project import Project
from builder.realise import Realised
from builder.reference import Reference
from builder.results import accepted_other
from builder.trust.names import FILE as TRUST_FILE
from builder.world import World


@project_command(
    "build",
    VARIANTS,
    click.option("--check", is_flag=True, help="Run every step again and compare."),
    click.option("--strict", is_flag=True, help="Forbid hunks to move."),
    click.option("--locked", is_flag=True, help="Fail unless the result is the accepted one."),
    click.option("--push", metavar="REF", help="Publish to a registry, too."),
    click.option("--sign", "key", metavar="KEY", help="Sign what is pushed or written, too."),
    ALLOW_PLAINTEXT,
    NOTATION,
    click.option("--load", "into_engine", is_flag=True, help="Load into the Docker Engine, too."),
    click.option(
        "--out",
        type=NamedPath(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write a complete OCI layout, too.",
    ),
)
def command(
    site: Site,
    variants: tuple[str, ...],
    check: bool,
    strict: bool,
    locked: bool,
    push: str | None,
    key: str | None,
    allow_plaintext: bool,
    notation: Path | None,
    into_engine: bool,
    out: Path | None,
) -> None:
    """Bake variants into images in the store.

    One after the other, in the order given. The first that fails ends the run; the images that
    were baked before it stay, and are listed.
    """
    if push is not None and len(variants) > 1:
        raise UsageError("--push takes one variant", hint="push them one after the other")
    target = None if push is None else Reference.parse(push, at="--push")
    plain = not (check or strict or locked or target or into_engine or out or site.asked)
    sign = _signing(site, key, notation, push=push, out=out, allow_plaintext=allow_plaintext)
    made: list[Build] = []
    with site.at_work(*variants) as world, show.one_by_one(site.settings, "images") as tell:
        for name in variants:
            built = build(
                site.project,
                name,
                world=world,
                platform=site.platform,
                strict=strict,
                check=check,
                locked=locked,
            )
            reference = None
            if target is not None or into_engine or out is not None:
                reference = _deliver(built, target, world, into_engine=into_engine, out=out)
            if sign is not None:
                sign(built, world)
            made.append(built)
            tell(summary(built, reference), _table(built, reference))
        if plain and site.settings.plain and _may_be_remembered(site.project, made):
            _remember(variants, made, site, world)


def _signing(
    site: Site,
    key: str | None,
    notation: Path | None,
    *,
    push: str | None,
    out: Path | None,
    allow_plaintext: bool,
) -> Callable[[Build, World], None] | None:
    """Signs a build wherever it went. The key is opened now: a wrong password is known at once."""
    if key is None:
        _refuse_without_key(notation, allow_plaintext=allow_plaintext)
        return None
    from builder.cli.layout_reference import LayoutReference
    from builder.cli.places import layout_spot, spot_of
    from builder.cli.signing import image_signer

    if push is None and out is None:
        raise UsageError(
            "--sign signs what is published", hint="add --push REF, or --out DIR for a layout"
        )
    if key.startswith("exec:"):
        raise UsageError(
            "--sign has no place for the public half that exec: wants",
            hint="leave it out, then: builder sign VARIANT REF --key exec:COMMAND --public FILE",
        )
    signer = image_signer(site, key, allow_plaintext=allow_plaintext, notation=notation)

    def sign(built: Build, world: World) -> None:
        spots = [] if push is None else [spot_of(push, world=world, at="--push")]
        if out is not None:
            written = LayoutReference(directory=str(out), name=built.variant.name)
            spots.append(layout_spot(written, at="--out"))
        for spot in spots:
            click.echo(signer.sign(built.image.digest, spot).text(), err=True)

    return sign


def _refuse_without_key(notation: Path | None, *, allow_plaintext: bool) -> None:
    """Refuse options of ``--sign`` where it is not there."""
    if notation is not None:
        raise UsageError("--notation signs, too", hint="add --sign KEY, the certificate's key")
    if allow_plaintext:
        raise UsageError("--allow-plaintext is for --sign", hint="add --sign KEY, or leave it out")


def _may_be_remembered(project: Project, made: Sequence[Build]) -> bool:
    """Whether the answer lies in the project alone, and nobody is to be told something again."""
    # What was accepted of a policy is outside of the project: no answer without a look at it.
    held = project.asked.get(("read", TRUST_FILE)) is not None
    told = any(accepted_other(item, project.results(item.variant.name)) for item in made)
    return project.settings.store is None and not held and not told


def _remember(variants: Sequence[str], made: Sequence[Build], site: Site, world: World) -> None:
    """Keep what this command line will answer as long as nothing changes."""
    again = [
        replace(item, steps=tuple(replace(step, cached=True) for step in item.steps))
        for item in made
    ]
    as_json = site.settings.json
    if as_json:
        output = show.encoded({"images": [summary(item, None) for item in again]})
    else:
        output = "\n".join(_table(item, None) for item in again)
    raw = unchanged.note(
        site.project.asked,
        images=[
            (reference_name(item.variant.name, item.plan.platform), item.image.digest)
            for item in made
        ],
        records=[(item.image.digest, _record(item, world)) for item in made],
        blobs=[blob for item in made for blob in _blobs(item)],
        output=f"{output}\n",
        until=min((day for item in made for day in item.until), default=None),
    )
    key = unchanged.key(variants, as_json=as_json)
    if raw is not None and world.store.note(notes.ANSWER, key) != raw:
        world.store.take_note(notes.ANSWER, key, raw)


def _record(made: Build, world: World) -> Digest:
    return Digest.of(world.store.note(notes.IMAGE, made.image.digest.hex) or b"")


def _blobs(made: Build) -> Iterator[tuple[Digest, int]]:
    manifest = made.image.manifest
    yield manifest.digest, len(manifest.raw)
    yield manifest.config.digest, manifest.config.size
    for layer in made.image.own:
        yield layer.digest, layer.size


def _deliver(
    made: Build, target: Reference | None, world: World, *, into_engine: bool, out: Path | None
) -> str | None:
    """Take a build where the options say; returns its reference in a registry, if it is in one."""
    from builder import deliver

    reference = None
    if target is not None:
        reference = str(deliver.publish_to(made, target, world=world).reference)
    if into_engine:
        deliver.load_into_engine(made, made.variant.name, world=world)
    if out is not None:
        deliver.write_layout(made, out, world=world)
    return reference


def summary(made: Build, reference: str | None) -> dict[str, Any]:
    """The stable JSON of one built image."""
    return {
        "variant": made.variant.name,
        "digest": str(made.image.digest),
        "platform": str(made.plan.platform),
        "reference": reference,
        "layers": [
            _layer(item, item.output.layer) for item in made.steps if item.output.layer is not None
        ],
        "left_out": [item.step.name for item in made.steps if item.output.layer is None],
        **_twin(made),
    }


def _twin(made: Build) -> dict[str, Any]:
    """What stands in for a base that is gone, where it is not the pinned image itself."""
    base = made.base
    if base is None or base.twin is None:
        return {}
    told = {"of": base.twin.of, "manifest": base.manifest.digest, "at": base.twin.place}
    return {"twin": {key: str(item) for key, item in told.items()}}


def _layer(item: Realised, layer: LayerOutput) -> dict[str, Any]:
    """One layer; that of a step which ran a program says where, and what became of its patches."""
    told: dict[str, Any] = {
        "step": item.step.name,
        "kind": item.step.kind,
        "derivation": str(item.step.derivation.id),
        "diff_id": str(layer.diff_id),
        "digest": str(layer.digest),
        "size": layer.size,
        "cached": item.cached,
    }
    if item.output.sandbox is not None:
        told["sandbox"] = item.output.sandbox
    if item.output.patches:
        told["patches"] = [patch.record() for patch in item.output.patches]
    return told


def _table(made: Build, reference: str | None) -> str:
    rows = []
    for item in made.steps:
        layer = item.output.layer
        files = item.output.summary or ", ".join(
            f"{verdict} {count}" for verdict, count in _verdicts(made, item.step.name).items()
        )
        rows.append(
            (
                item.step.name,
                item.step.kind,
                "left out" if layer is None else "cached" if item.cached else "built",
                "-" if layer is None else layer.diff_id.short,
                "-" if layer is None else show.size(layer.size),
                files,
            )
        )
    lines = [
        f"{made.variant.name} ({made.plan.platform})",
        show.table(("STEP", "KIND", "", "DIFF ID", "SIZE", "FILES"), rows),
        *([f"base  {made.base.twin}"] if made.base is not None and made.base.twin else []),
        f"image {made.image.digest}",
    ]
    if reference is not None:
        lines.append(f"at    {reference}")
    return "\n".join(lines)


def _verdicts(made: Build, step: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in made.steps:
        if item.step.name == step:
            for file in item.output.files:
                counts[str(file.verdict)] = counts.get(str(file.verdict), 0) + 1
    return counts
