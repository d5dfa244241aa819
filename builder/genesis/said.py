"""What a bake told: the lines of :mod:`builder.genesis.harness`, and the markers in files."""

import json
import re
from collections.abc import Iterator
from typing import Any

from builder.errors import SandboxError
from builder.value import value

_MARKER = re.compile(rb"^# \[Genesis wiring marker: (?:Genesis )?(\S+?)[\s\]:]", re.MULTILINE)
_SAYS = frozenset({"applied", "skipped", "failed"})


@value
class Said:
    """What one patch said of itself. ``title`` is its whole name, ``name`` the part by which it is
    known; ``wrote`` are the files that were opened for writing on its account."""

    name: str
    title: str
    says: str
    """``applied``, ``skipped`` or ``failed``."""
    reason: str
    wrote: tuple[str, ...]


def parse(stdout: bytes) -> tuple[Said, ...]:
    """Every patch's own words, in the order in which they were run.

    Raises:
        SandboxError: Something else than the harness wrote there.
    """
    found: dict[str, Said] = {}
    for number, line in enumerate(stdout.split(b"\n")[:-1], start=1):
        try:
            title, says, reason, wrote = _fields(json.loads(line))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise SandboxError(
                f"line {number} of what the bake told is none of its own: {line[:80]!r}",
                hint="the patch set writes to a stream that is not its own",
            ) from error
        # The word that people and registries know it by; a second patch with it keeps its title.
        short = title.split()[0] if title.split() else title
        name = short if short not in found else title
        found[name] = Said(name=name, title=title, says=says, reason=reason, wrote=wrote)
    return tuple(found.values())


def _fields(event: Any) -> tuple[str, str, str, tuple[str, ...]]:
    title, says, reason, wrote = (event[key] for key in ("patch", "says", "reason", "wrote"))
    if says not in _SAYS or not all(isinstance(item, str) for item in (title, reason, *wrote)):
        raise ValueError(event)
    return title, says, reason, tuple(wrote)


def markers(data: bytes) -> Iterator[str]:
    """The patches that a file says it was changed by."""
    return (name.decode("utf-8", "replace") for name in _MARKER.findall(data))
