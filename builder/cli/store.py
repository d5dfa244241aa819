"""``builder store``."""

import click

from builder.build_record import needed, own_layers
from builder.cli import show
from builder.cli.app import Commands
from builder.cli.progress import progress_for
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.world import store_of
from builder.errors import IntegrityError


@click.group("store", cls=Commands)
def command() -> None:
    """Verify, collect or measure the store."""


@command.command("verify")
@click.option("--repair", is_flag=True, help="Drop what is damaged, so that it is made anew.")
@shared_options
@command_with_settings
def verify(settings: Settings, repair: bool) -> None:
    """Read every blob again and compare it with its name."""
    from builder.adapters.store.verify import repair as drop_damaged
    from builder.adapters.store.verify import verify as check

    store = store_of(settings)
    report = check(store, required=lambda: own_layers(store), progress=progress_for(settings))
    dropped = drop_damaged(store, report) if repair else ()
    value = {
        "blobs": report.blobs,
        "bytes": report.size,
        "errors": [{"at": item.at, "problem": item.problem} for item in report.errors],
        "absent": [str(digest) for digest in report.absent],
        "stale": list(report.stale),
        "leftovers": list(report.leftovers),
        "repaired": [str(digest) for digest in dropped],
    }
    lines = [f"{item.at}: {item.problem}" for item in report.errors]
    lines.append(f"{report.blobs} blobs, {show.size(report.size)}: {len(report.errors)} errors")
    if dropped:
        lines.append(f"dropped {len(dropped)} damaged blobs; the next build makes them anew")
    if repair or not report.errors:
        show.result(settings, value, "\n".join(lines))
        return
    show.so_far(settings, value, "\n".join(lines))
    raise IntegrityError(
        f"store: {len(report.errors)} errors, the first at {report.errors[0].at}:"
        f" {report.errors[0].problem}",
        hint="builder store verify --repair drops what is damaged; a build makes it anew",
    )


@command.command("gc")
@click.option("--dry-run", is_flag=True, help="Say what would go, remove nothing.")
@click.option(
    "--keep-days",
    type=click.FloatRange(min=0),
    default=0,
    show_default=True,
    help="Leave what is younger.",
)
@shared_options
@command_with_settings
def gc(settings: Settings, dry_run: bool, keep_days: float) -> None:
    """Remove what no image of the store needs."""
    from builder.adapters.store.gc import gc as collect

    store = store_of(settings)
    collected = collect(
        store, reachable=lambda: needed(store), keep_days=keep_days, dry_run=dry_run
    )
    if settings.json:
        show.document(
            {
                "dry_run": dry_run,
                "blobs": [str(digest) for digest in collected.blobs],
                "bytes": collected.size,
                "notes": list(collected.notes),
                "kept": collected.kept,
            }
        )
        return
    verb = "would remove" if dry_run else "removed"
    click.echo(
        f"{verb} {len(collected.blobs)} blobs ({show.size(collected.size)}) and"
        f" {len(collected.notes)} notes; {collected.kept} blobs stay"
    )


@command.command("du")
@shared_options
@command_with_settings
def du(settings: Settings) -> None:
    """Say what the store holds and how large it is."""
    from builder.adapters.store.du import du as measure

    usage = measure(store_of(settings))
    classes = {
        name: getattr(usage, name)
        for name in ("manifests", "configs", "layers", "other", "notes", "tmp", "total")
    }
    if settings.json:
        show.document(
            {
                "bytes": classes,
                "images": [
                    {
                        "name": share.name,
                        "digest": str(share.digest),
                        "bytes": share.total,
                        "unique": share.unique,
                    }
                    for share in usage.references
                ],
            }
        )
        return
    click.echo(show.table(("WHAT", "SIZE"), [(k, show.size(v)) for k, v in classes.items()]))
    if usage.references:
        click.echo()
        click.echo(
            show.table(
                ("IMAGE", "SIZE", "ALONE"),
                [(x.name, show.size(x.total), show.size(x.unique)) for x in usage.references],
            )
        )
