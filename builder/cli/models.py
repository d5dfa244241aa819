"""``builder models``."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from builder.cli import model_signatures as signed
from builder.cli import show
from builder.cli.app import Commands
from builder.cli.model_sums import pins_of, sums
from builder.cli.progress import progress_for
from builder.cli.settings import NamedPath, Settings, command_with_settings, shared_options
from builder.cli.site import VARIANT, Site, variant_names
from builder.errors import IntegrityError, ProjectError, UsageError
from builder.lock.model import ModelPin

if TYPE_CHECKING:
    from builder.models.place import Place
    from builder.models.verify import Verified

_SHOWN = 20
"""How many files are named before the rest is only counted. ``--json`` names all."""

_FETCHED_AT_ONCE = 4


def _directory(*, required: bool) -> Callable[[Any], Any]:
    return click.option(
        "--dir",
        "root",
        type=NamedPath(file_okay=False, path_type=Path),
        required=required,
        metavar="DIR",
        help="The model's directory (of several, one with a directory for each), or the hub's"
        " cache.",
    )


_JOBS = click.option(
    "-j", "--jobs", type=click.IntRange(1, 256), metavar="N", help="Files at once (default: cores)."
)


@click.group("models", cls=Commands)
def command() -> None:
    """Fetch weights, and hold those on a disk to the lock."""


@command.command("fetch")
@VARIANT
@_directory(required=True)
@click.option("--cache", is_flag=True, help="Lay DIR out as the hub's cache, whatever it is now.")
@signed.SIGNATURE
@signed.KEY
@_JOBS
@shared_options
@command_with_settings
def fetch(
    settings: Settings,
    variant: str,
    root: Path,
    cache: bool,
    signatures: tuple[str, ...],
    keys: tuple[str, ...],
    jobs: int | None,
) -> None:
    """Bring the models of a variant to a directory, by commit and digest.

    What is there is verified and stays; what is missing, short or wrong is fetched, and appears
    when it is whole and verified. Run it again after an interrupt: it goes on.
    With --signature nothing is fetched where what is locked is not what was signed.
    """
    from builder.models.fetch import fetch as bring

    site = Site(settings)
    models = _models(site, variant, root, cache=cache or None)
    pins = [pin for pin, _ in models]
    given = signed.read(site, pins, signatures, keys)
    signed.check(pins, given)
    with site.at_work(variant) as world:
        found = bring(
            models,
            hub=world.hub,
            store=world.store,
            progress=world.progress,
            clock=time.time_ns,
            threads=jobs or max(_FETCHED_AT_ONCE, _cores()),
        )
    _conclude(settings, {"variant": variant}, tuple(signed.held(item, given) for item in found))


@command.command("verify")
@click.argument("variant", required=False, metavar="[VARIANT]", shell_complete=variant_names)
@_directory(required=False)
@click.option(
    "--compose",
    "files",
    multiple=True,
    metavar="FILE",
    help="Instead of a variant and DIR: what the services of a compose file load; of several, those"
    " of all together, as docker compose -f FILE -f FILE.",
)
@click.option("--service", "services", multiple=True, metavar="NAME", help="Of FILE, only these.")
@click.option("--full", is_flag=True, help="Hash also what has not changed since it was hashed.")
@signed.SIGNATURE
@signed.KEY
@_JOBS
@shared_options
@command_with_settings
def verify(
    settings: Settings,
    variant: str | None,
    root: Path | None,
    files: tuple[str, ...],
    services: tuple[str, ...],
    full: bool,
    signatures: tuple[str, ...],
    keys: tuple[str, ...],
    jobs: int | None,
) -> None:
    """Compare every file of a variant's models with its digest in the lock.

    Fails where one is missing, short, wrong, without a digest, or beside those that are locked. Of
    a compose file, also where it cannot be known which pin a service loads, or from where.
    With --signature it also fails where what is locked is not what was signed. Without --key, the
    role model of trust.yaml says who may sign.
    """
    from builder.models.verify import verify as check

    site = Site(settings)

    def checked(models: "list[tuple[ModelPin, Place]]") -> "tuple[Verified, ...]":
        given = signed.read(site, [pin for pin, _ in models], signatures, keys)
        store = site.store
        with store.lease():
            found = check(
                models,
                store=store,
                progress=progress_for(settings),
                clock=time.time_ns,
                threads=jobs or _cores(),
                full=full,
            )
        return tuple(signed.held(item, given) for item in found)

    if files and (variant, root) == (None, None):
        _verify_compose(site, files, services, checked)
    elif variant is not None and root is not None and not files and not services:
        _refuse_missing(root, variant)
        _conclude(settings, {"variant": variant}, checked(_models(site, variant, root)))
    else:
        raise UsageError(
            "models verify takes a variant and --dir, or --compose with or without --service",
            hint="builder models verify VARIANT --dir DIR, or builder models verify --compose FILE",
        )


def _refuse_missing(root: Path, variant: str) -> None:
    if not root.is_dir():
        raise UsageError(
            f"--dir: no directory {str(root)!r}",
            hint=f"builder models fetch {variant} --dir DIR brings the files",
        )


def _verify_compose(
    site: Site,
    files: tuple[str, ...],
    services: tuple[str, ...],
    checked: "Callable[[list[tuple[ModelPin, Place]]], tuple[Verified, ...]]",
) -> None:
    from builder.cli import served

    loaded = served.models_of(site, files, services)
    models = served.places(loaded)
    found = checked(models) if models else ()
    value = {"compose": list(files), "loaded": served.document(loaded)}
    _conclude(
        site.settings,
        value,
        found,
        before=served.text(loaded),
        unverified=served.unverified(files, loaded),
    )


def _conclude(
    settings: Settings,
    about: Mapping[str, Any],
    found: "tuple[Verified, ...]",
    *,
    before: str = "",
    unverified: ProjectError | None = None,
) -> None:
    """Say what came of it.

    Raises:
        IntegrityError: It is not what was locked.
        ProjectError: ``unverified``.
    """
    value = {**about, "models": [_document(item) for item in found]}
    text = "\n".join(filter(None, (before, _text(found) if found else "")))
    failed = [item for item in found if not item.ok]
    if not failed and unverified is None:
        show.result(settings, value, text)
        return
    show.so_far(settings, value, text)
    if not failed and unverified is not None:
        raise unverified
    if error := signed.refusal(failed):
        raise error
    raise IntegrityError(
        f"models: {', '.join(item.pin.name for item in failed)}: not what was locked",
        hint="builder models fetch brings what is missing, short or wrong; remove what is extra, or"
        " pin it by include; builder lock completes a pin where files are unhashed",
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _models(
    site: Site, variant: str, root: Path, *, cache: bool | None = None
) -> list[tuple[ModelPin, "Place"]]:
    from builder.models.place import place_of

    pins = pins_of(site, variant)
    return [(pin, place_of(pin, root, alone=len(pins) == 1, cache=cache)) for pin in pins]


def _document(item: "Verified") -> dict[str, Any]:
    return {
        "model": item.pin.name,
        "repository": item.pin.repository,
        "commit": str(item.pin.commit),
        "directory": str(item.place.directory),
        "bytes": item.size,
        "hashed_bytes": item.hashed,
        "counts": {str(state): count for state, count in item.counts.items()},
        "files": [
            {"path": file.path, "state": str(file.state), "detail": file.detail}
            for file in item.files
            if file.state != "ok"
        ],
        "tensors": list(item.tensors),
        "signatures": signed.document(item),
    }


def _text(found: "tuple[Verified, ...]") -> str:
    states = list(found[0].counts)
    rows = [
        (
            item.pin.name,
            show.size(item.size),
            *(str(count) for count in item.counts.values()),
        )
        for item in found
    ]
    lines = [show.table(("MODEL", "SIZE", *(str(state).upper() for state in states)), rows)]
    for item in found:
        bad = [file for file in item.files if file.state != "ok"]
        lines += [
            ": ".join(filter(None, (item.pin.name, file.path, str(file.state), file.detail)))
            for file in bad[:_SHOWN]
        ]
        if len(bad) > _SHOWN:
            lines.append(f"{item.pin.name}: {len(bad) - _SHOWN} more")
        lines += (*item.tensors, *signed.lines(item, most=_SHOWN))
    return "\n".join(lines)


command.add_command(sums)
