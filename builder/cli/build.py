"""``builder build``."""

from pathlib import Path
from typing import Any

import click

from builder.build_record import Build
from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import at_work, platform_of
from builder.errors import UsageError
from builder.oci import Platform
from builder.pipeline import World, build
from builder.reference import Reference


@click.command("build")
@click.argument("variants", nargs=-1, required=True, metavar="VARIANT...")
@platform_option
@click.option("--check", is_flag=True, help="Run every step again and compare.")
@click.option("--strict", is_flag=True, help="Forbid hunks to move.")
@click.option("--locked", is_flag=True, help="Fail unless the result is the accepted one.")
@click.option("--push", metavar="REF", help="Publish to a registry, too.")
@click.option("--load", "into_engine", is_flag=True, help="Load into the Docker Engine, too.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write a complete OCI layout, too.",
)
@shared_options
@command_with_settings
def command(
    settings: Settings,
    variants: tuple[str, ...],
    platform: Platform | None,
    check: bool,
    strict: bool,
    locked: bool,
    push: str | None,
    into_engine: bool,
    out: Path | None,
) -> None:
    """Bake variants into images in the store."""
    if push is not None and len(variants) > 1:
        raise UsageError("--push takes one variant", hint="push them one after the other")
    target = None if push is None else Reference.parse(push, at="--push")
    with at_work(settings) as (project, world):
        images: list[dict[str, Any]] = []
        for name in variants:
            made = build(
                project,
                name,
                world=world,
                platform=platform_of(project, platform),
                strict=strict,
                check=check,
                locked=locked,
            )
            reference = None
            if target is not None or into_engine or out is not None:
                reference = _deliver(made, target, world, into_engine=into_engine, out=out)
            images.append(summary(made, reference))
            if not settings.json:
                click.echo(_table(made, reference))
        if settings.json:
            show.document({"images": images})


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
            {
                "step": item.step.name,
                "kind": item.step.kind,
                "derivation": str(item.step.derivation.id),
                "diff_id": str(item.output.layer.diff_id),
                "digest": str(item.output.layer.digest),
                "size": item.output.layer.size,
                "cached": item.cached,
            }
            for item in made.steps
            if item.output.layer is not None
        ],
        "left_out": [item.step.name for item in made.steps if item.output.layer is None],
    }


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
