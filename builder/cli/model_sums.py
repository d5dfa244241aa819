"""Checksum files of models, as options name them."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder.errors import UsageError

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

    try:
        with file.open("rb") as stream:
            data = stream.read(LIMIT + 1)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    return Published(at=str(file), digests=read_checksums(data, at=str(file)))
