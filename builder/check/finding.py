"""What ``check`` finds, and where."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from builder.errors import BuilderError, worst

_PLACE = re.compile(
    r"((?:builder\.yaml|(?:variants|lockfiles|overlays|composes)/[^:\s]+)(?::\d+){0,2}): (.*)",
    re.DOTALL,
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


def exit_status(findings: Iterable[Finding]) -> int:
    """The status of the worst finding; 0 where there are warnings alone."""
    return worst(item.exit_status for item in findings)


def error_at(at: str, error: BuilderError) -> Finding:
    """A refusal as a finding; ``at`` is for a message that does not begin with its place."""
    where, message = (
        _split(error.message)
        or _split(f"{at}: {error.message}")
        or (
            at,
            error.message,
        )
    )
    return Finding(
        severity=Severity.ERROR,
        where=where,
        message=message,
        hint=error.hint,
        exit_status=error.exit_status,
    )


def warning_at(at: str, message: str, *, hint: str | None = None) -> Finding:
    """What will be wrong some day. ``at`` is a file, with line and path as a pin has it."""
    where, message = _split(f"{at}: {message}") or (at, message)
    return Finding(severity=Severity.WARNING, where=where, message=message, hint=hint)


def _split(message: str) -> tuple[str, str] | None:
    """The place that a message begins with, and the rest."""
    found = _PLACE.fullmatch(message)
    return None if found is None else (found[1], found[2])
