"""What a bake told: the lines of :mod:`builder.genesis.harness`, and the markers in files."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from builder import json_text
from builder.errors import SandboxError
from builder.value import value

_END = b'{"ended": true}'
_MARKER = re.compile(rb"^# \[Genesis wiring marker: (?:Genesis )?(\S+?)[\s\]:]", re.MULTILINE)
_SAYS = frozenset({"applied", "skipped", "failed"})
_PATCHES = 4096
"""How many patches one bake may tell of: what it told is kept, accepted and compared."""
_NAME, _TEXT = 200, 2000
"""How many characters of a name, and of a reason, are kept."""


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
    """Every patch's own words, in the order in which they were run. What is told twice stays two:
    nothing that is told later takes the place of a failure.

    Raises:
        SandboxError: Something else than the harness wrote there; it tells of too many patches.
    """
    lines = stdout.split(b"\n")[:-1]
    if ended(stdout):
        lines.pop()
    if len(lines) > _PATCHES:
        raise SandboxError(f"the bake told of {len(lines)} patches, the limit is {_PATCHES}")
    found: dict[str, Said] = {}
    for number, line in enumerate(lines, start=1):
        try:
            title, says, reason, wrote = _fields(json_text.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            raise SandboxError(
                f"line {number} of what the bake told is none of its own: {line[:80]!r}",
                hint="the patch set writes to a stream that is not its own",
            ) from error
        name = _free(title, found)
        found[name] = Said(name=name, title=title, says=says, reason=reason, wrote=wrote)
    return tuple(found.values())


def ended(stdout: bytes) -> bool:
    """Whether the program came to its end in good order: nothing ended it in the middle."""
    return stdout.endswith(b"\n") and stdout.split(b"\n")[-2] == _END


def _free(title: str, taken: Collection[str]) -> str:
    """The word that people and registries know a patch by; for one that has the word of another,
    its title, and for one that has that, too, the title with a number."""
    numbered = (f"{title} ({number})" for number in range(2, len(taken) + 3))
    names = (title.split(maxsplit=1)[0], title, *numbered)
    return next(name for name in names if name not in taken)


def _fields(event: Any) -> tuple[str, str, str, tuple[str, ...]]:
    title, says, reason, wrote = (event[key] for key in ("patch", "says", "reason", "wrote"))
    if says not in _SAYS or not all(isinstance(item, str) for item in (title, reason, *wrote)):
        raise ValueError(event)
    return _plain(title)[:_NAME] or "?", says, _plain(reason)[:_TEXT], tuple(wrote)


def _plain(text: str) -> str:
    """Texts of others, as they can be written down and shown: on one line, in whole characters."""
    return "".join(filter(str.isprintable, " ".join(text.split())))


def markers(data: bytes) -> Iterator[str]:
    """The patches that a file says it was changed by."""
    return (name.decode("utf-8", "replace") for name in _MARKER.findall(data))
