"""What ``check`` finds, and where."""

import re
from dataclasses import dataclass
from enum import StrEnum

from builder.errors import BuilderError

_PLACE = re.compile(
    r"((?:builder\.yaml|(?:variants|lockfiles|overlays)/[^:\s]+)(?::\d+)?): (.*)", re.DOTALL
)


class Severity(StrEnum):
    """How bad a finding is: an error fails ``check``, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong or will be. ``where`` is a file of the project, with a line where
    there is one; ``exit_status`` is that of the error behind it."""

    severity: Severity
    where: str
    message: str
    hint: str | None = None
    exit_status: int = 0


def error_at(where: str, error: BuilderError) -> Finding:
    """A refusal as a finding; ``where`` is for a message that does not begin with its place."""
    place = _PLACE.fullmatch(error.message)
    return Finding(
        severity=Severity.ERROR,
        where=place[1] if place else where,
        message=place[2] if place else error.message,
        hint=error.hint,
        exit_status=error.exit_status,
    )


def warning_at(at: str, message: str, *, hint: str | None = None) -> Finding:
    """What will be wrong some day. ``at`` is a file, with line and path as a pin has it."""
    place = _PLACE.fullmatch(f"{at}: {message}")
    return Finding(
        severity=Severity.WARNING,
        where=place[1] if place else at,
        message=place[2] if place else message,
        hint=hint,
    )
