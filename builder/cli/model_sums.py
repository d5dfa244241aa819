"""Checksum files of models: as options name them, and ``builder models sums``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from builder.adapters.given_file import read_given
from builder.cli import show
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.site import VARIANT, Site
from builder.digest import directory_digest
from builder.errors import ProjectError
from builder.lock.model import ModelPin

if TYPE_CHECKING:
    from builder.models.published import Published

SUMS = click.option(
    "--sums",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Of a model: the digests that somebody publishes of its files (SHA256SUMS).",
)


def published(file: Path | None) -> "Published | None":
    """What a checksum file says; ``None`` where none is given.

    Raises:
        UsageError: It cannot be read.
        IntegrityError: As :func:`builder.models.checksums.read_checksums`.
    """
    if file is None:
        return None
    from builder.models.checksums import LIMIT, read_checksums
    from builder.models.published import Published

    data = read_given(file, limit=LIMIT)
    return Published(at=str(file), digests=read_checksums(data, at=str(file)))


def pins_of(site: Site, variant: str) -> list[ModelPin]:
    """The models that a variant names, each with files in the lock.

    Raises:
        ProjectError: It names none, or one of them has no files.
    """
    names = site.project.variant(variant).models
    if not names:
        raise ProjectError(
            f"variants/{variant}.yaml: it names no models",
            hint="builder add model OWNER/NAME pins one; its name goes under models",
        )
    pins = [site.project.models[name] for name in names]
    for pin in pins:
        if not pin.files:
            raise ProjectError(
                f"{pin.at}: no files are locked", hint=f"builder lock {pin.name} locks them"
            )
    return pins


@click.command("sums")
@VARIANT
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Compare the lock with a checksum file that somebody publishes.",
)
@shared_options
@command_with_settings
def sums(settings: Settings, variant: str, against: Path | None) -> None:
    """Print the locked digests of a variant's models as sha256sum does."""
    from builder.models.checksums import checksums, compare

    pins = pins_of(Site(settings), variant)
    if lacking := [pin.name for pin in pins if any(file.digest is None for file in pin.files)]:
        raise ProjectError(
            f"models: {', '.join(lacking)}: the lock has not the digests of all files",
            hint=f"builder lock {' '.join(lacking)} completes them",
        )
    text = "".join(checksums(pin, prefix="" if len(pins) == 1 else f"{pin.name}/") for pin in pins)
    value: dict[str, Any] = {"variant": variant, "models": []}
    given = published(against)
    for pin in pins:
        locked = {file.path: file.digest for file in pin.files if file.digest is not None}
        item: dict[str, Any] = {
            "model": pin.name,
            "dirHash": directory_digest(locked).hex,
            "files": {path: str(digest) for path, digest in locked.items()},
        }
        if given is not None:
            item["compared"] = compare(pin, given.of(pin).digests, at=given.at)
        value["models"].append(item)
    if given is not None:
        said = (
            f"{item['model']}: {item['compared']} of {len(item['files'])} files compared"
            for item in value["models"]
        )
        text = "".join(f"{line}\n" for line in said)
    show.result(settings, value, text.removesuffix("\n"))
