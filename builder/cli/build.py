"""``builder build``."""

from pathlib import Path
from typing import Any

import click

from builder.build_record import Build
from builder.cli import show
from builder.cli.site import VARIANTS, Site, project_command
from builder.errors import UsageError
from builder.pipeline import build, load_into_engine, publish_to, write_layout
from builder.reference import Reference


@project_command(
    "build",
    VARIANTS,
    click.option("--check", is_flag=True, help="Run every step again and compare."),
    click.option("--strict", is_flag=True, help="Forbid hunks to move."),
    click.option("--locked", is_flag=True, help="Fail unless the result is the accepted one."),
    click.option("--push", metavar="REF", help="Publish to a registry, too."),
    click.option("--load", "into_engine", is_flag=True, help="Load into the Docker Engine, too."),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
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
    with site.at_work(*variants) as world, show.one_by_one(site.settings, "images") as tell:
        for name in variants:
            made = build(
                site.project,
                name,
                world=world,
                platform=site.platform,
                strict=strict,
                check=check,
                locked=locked,
            )
            published = None if target is None else publish_to(made, target, world=world)
            if into_engine:
                load_into_engine(made, name, world=world)
            if out is not None:
                write_layout(made, out, world=world)
            reference = None if published is None else str(published.reference)
            tell(summary(made, reference), _table(made, reference))


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
