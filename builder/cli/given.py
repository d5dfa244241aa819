"""Files that people name on the command line."""

from pathlib import Path

from builder.errors import UsageError


def given_file(file: Path, *, limit: int, option: str | None = None) -> bytes:
    """The bytes of a file: of a larger one, one byte more than ``limit``, for its reader to refuse.

    Args:
        option: What it was named by, for the message.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        with file.open("rb") as stream:
            return stream.read(limit + 1)
    except OSError as error:
        at = file if option is None else f"{option} {file}"
        raise UsageError(f"{at}: cannot be read: {error.strerror}") from error
