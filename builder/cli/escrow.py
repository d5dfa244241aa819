"""``builder escrow``."""

from collections.abc import Sequence
from typing import Any

import click

from builder.cli import show
from builder.cli.site import VARIANTS, Site, project_command
from builder.errors import UsageError
from builder.escrow.keep import Kept, keep, record
from builder.escrow.place import opened, parse
from builder.lock.model import Escrow
from builder.origin import place_of
from builder.settings.model import FILE


@project_command(
    "escrow",
    VARIANTS,
    click.option(
        "--to",
        metavar="PLACE",
        help="REGISTRY/REPOSITORY, or oci:DIR in the project (default: builder.yaml).",
    ),
    click.option("--all-platforms", is_flag=True, help="Keep the whole index of a base."),
)
def command(site: Site, variants: tuple[str, ...], to: str | None, all_platforms: bool) -> None:
    """Keep what variants need from outside in a place of ours.

    Base, wheels, diffs, files of sources and patch sets are copied byte for byte, and the lock
    notes where they are. Builds go there once the place that a pin follows says that it is gone.
    What is there already is not sent again.
    """
    where = _place(site, to)
    done: list[Kept] = []
    with site.at_work(*variants) as world, show.one_by_one(site.settings, "pins") as tell:
        place = opened(
            where,
            root=site.project.root,
            registry=lambda: world.registry,
            make_layout=world.make_layout,
            progress=world.progress,
        )
        try:
            for item in keep(
                site.project,
                variants,
                place,
                world=world,
                platform=site.platform,
                all_platforms=all_platforms,
            ):
                done.append(item)
                tell(_document(item), _line(item))
        finally:
            record(site.project, done)
        if not done and not site.settings.json:
            click.echo("nothing to keep: all that they need is in the project")
        _refuse_lost(done)


def _place(site: Site, to: str | None) -> Escrow:
    settings = site.project.settings
    text, at = (settings.escrow, f"{FILE}: escrow") if to is None else (to, "--to")
    if text is None:
        raise UsageError(
            "nowhere to keep it: neither --to nor 'escrow' in builder.yaml",
            hint="give --to REGISTRY/REPOSITORY, or --to oci:DIR for a directory in the project",
        )
    return parse(text, root=site.project.root, at=at)


def _document(item: Kept) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": item.kind, "name": item.pin.name}
    if item.entry is None:
        assert item.lost is not None
        return told | {"gone": item.lost.message}
    return told | {
        "place": place_of(item.entry),
        "digest": str(item.entry.digest),
        "blobs": {"present": item.present, "mounted": item.mounted, "copied": item.copied},
        "copied_bytes": item.copied_bytes,
        "known": item.recorded,
    }


def _line(item: Kept) -> str:
    name = f"{item.kind} {item.pin.name}"
    if item.entry is None:
        return f"{name}: gone, and nobody keeps it"
    blobs = [
        f"{count} {what}"
        for count, what in (
            (item.present, "there already"),
            (item.mounted, "mounted"),
            (item.copied, f"copied ({show.size(item.copied_bytes)})"),
        )
        if count
    ]
    return f"{name}: {place_of(item.entry)} {item.entry.digest}: {', '.join(blobs)}"


def _refuse_lost(done: Sequence[Kept]) -> None:
    """Fail for the first pin that could not be kept."""
    for item in done:
        if item.lost is not None:
            raise item.lost
