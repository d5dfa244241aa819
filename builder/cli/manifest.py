"""``builder manifest``."""

from pathlib import Path

import click

from builder.attest.statement import envelope
from builder.build_record import Record, recorded
from builder.cli.settings import NamedPath
from builder.cli.site import Site, project_command, variant_names
from builder.errors import EnvironmentFault, ProjectError
from builder.statements import Kind, statement


@project_command(
    "manifest",
    click.argument("name", metavar="VARIANT", shell_complete=variant_names),
    click.option(
        "--type",
        "kind",
        type=click.Choice([str(kind) for kind in Kind]),
        default=str(Kind.MANIFEST),
        help="What to say of it; manifest where nothing is said.",
    ),
    click.option(
        "--name",
        "subject",
        metavar="NAME",
        help="What to call the image: the repository that it goes to.",
    ),
    click.option(
        "--output",
        type=NamedPath(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write to a file instead.",
    ),
)
def command(site: Site, name: str, kind: str, subject: str | None, output: Path | None) -> None:
    """Print the manifest, provenance or SBOM of an image.

    VARIANT is one that was built on this machine, or the digest of an image that was. Printed are
    the very bytes of the in-toto statement that is signed, without a line end.
    """
    record = _record(site, name)
    said = statement(record, Kind(kind), name=subject or record.variant)
    raw = envelope(said).payload
    if output is None:
        click.echo(raw, nl=False)
        return
    try:
        with click.open_file(str(output), "wb", atomic=True) as file:
            file.write(raw)
    except OSError as error:
        raise EnvironmentFault(f"{output}: {error.strerror}") from error


def _record(site: Site, name: str) -> Record:
    """The record of the image. Of a variant that another one came to the same image with, it may
    be that of the other one."""
    record = recorded(site.image(name), site.store)
    if name != record.variant and not name.startswith("sha256:"):
        raise ProjectError(
            f"image {record.digest} was built as variant {record.variant!r} after it was built as"
            f" {name!r}, and is remembered as that",
            hint=f"builder build {name}",
        )
    return record
