"""What ``check`` finds, and where."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from builder.errors import BuilderError

_PLACE = re.compile(
    r"((?:builder\.yaml|trust\.yaml(?:\.sig\.jsonl)?"
    r"|(?:trust|variants|lockfiles|overlays|composes)/[^:\s]+)(?::\d+){0,2}): (.*)",
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


_WORST = (4, 10, 11, 12, 13, 5, 6, 3, 7, 9)
"""Exit statuses, the worst first: bytes that are not what they were said to be, signatures that do
not verify or are not those that are wanted, a rule that is broken, a step that does not apply, a
file of the project, what upstream no longer has, this machine. Whatever may be over by itself (the
network) comes last."""


def exit_status(findings: Iterable[Finding]) -> int:
    """The status of the worst finding; 0 where there are warnings alone."""
    found = {item.exit_status for item in findings} - {0}
    order = {status: place for place, status in enumerate(_WORST)}
    return min(found, key=lambda status: order.get(status, len(order)), default=0)


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
