"""``builder why``."""

import click

from builder.build_record import Record, recorded
from builder.cli import show
from builder.cli.settings import (
    Settings,
    command_with_settings,
    platform_option,
    shared_options,
)
from builder.cli.world import open_project, open_store, platform_of
from builder.errors import UsageError
from builder.explain import responsible
from builder.oci import Platform
from builder.pipeline import kept


@click.command("why")
@click.argument("variant")
@click.argument("path")
@platform_option
@shared_options
@command_with_settings
def command(settings: Settings, variant: str, path: str, platform: Platform | None) -> None:
    """Say which step and pin is responsible for a file.

    PATH is a file of the image: absolute, or the end of the path of a file that a step changed
    (vllm/config.py).
    """
    project = open_project(settings)
    store = open_store(settings, project)
    record = recorded(
        kept(project, variant, store=store, platform=platform_of(project, platform)), store
    )
    full = path.lstrip("/") if path.startswith("/") else _full(path, _paths(record))
    touches = responsible(record, full, store)
    if settings.json:
        show.document(
            {
                "path": full,
                "image": str(record.digest),
                "touched_by": [
                    {
                        "step": item.step,
                        "kind": item.kind,
                        "pins": list(item.pins),
                        "verdict": item.verdict,
                        "pre": None if item.pre is None else str(item.pre),
                        "post": None if item.post is None else str(item.post),
                        "offsets": list(item.offsets),
                    }
                    for item in touches
                ],
            }
        )
        return
    if not touches:
        click.echo(f"/{full}: no step of {variant} writes it; it is as the base has it")
        return
    click.echo(f"/{full}")
    click.echo(
        show.table(
            ("STEP", "KIND", "VERDICT", "BEFORE", "AFTER", "INPUTS"),
            [
                (
                    item.step,
                    item.kind,
                    item.verdict + (f" {list(item.offsets)}" if any(item.offsets) else ""),
                    "-" if item.pre is None else item.pre.short,
                    "removed" if item.post is None else item.post.short,
                    ", ".join(item.pins),
                )
                for item in touches
            ],
        )
    )


def _paths(record: Record) -> list[str]:
    return sorted({file.path for step in record.steps for file in step.output.files})


def _full(path: str, known: list[str]) -> str:
    found = [item for item in known if item == path or item.endswith(f"/{path}")]
    if len(found) > 1:
        raise UsageError(
            f"{path!r} is the end of {len(found)} paths: {', '.join(found)}",
            hint="write more of the path",
        )
    return found[0] if found else path
