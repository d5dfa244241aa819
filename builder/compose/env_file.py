"""Files of variables, as Docker Compose reads ``.env`` and what ``env_file`` names."""

import re
from collections import ChainMap
from collections.abc import Mapping

from builder.compose.interpolation import interpolated, without_unset
from builder.errors import ProjectError

LIMIT = 1 << 20
"""The largest file of variables that is read."""

_ENTRY = re.compile(
    r"""[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][\w.-]*)(?:[ \t]*+[=:][ \t]*
    (?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<plain>[^\n'"][^\n]*)?)
    |(?=\s|\Z))[ \t]*+(?:\#[^\n]*)?\r?(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_NOTHING = re.compile(r"[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_variables(data: bytes, environment: Mapping[str, str], *, file: str) -> dict[str, str]:
    """The variables of a file; a name alone has the value of ``environment``, if any.

    Args:
        data: The file.
        environment: What values may refer to, and what goes before what the file has.
        file: Its name, for messages.

    Raises:
        ProjectError: It is no UTF-8, too large, or a line of it is nothing that Compose reads.
    """
    if len(data) > LIMIT:
        raise ProjectError(f"{file}: {len(data)} bytes of variables, the limit is {LIMIT}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProjectError(f"{file}: not UTF-8: {error.reason}") from error
    found: dict[str, str] = {}
    known = ChainMap({**environment}, found)
    place, line = 0, 1
    while place < len(text):
        match = _NOTHING.match(text, place) or _ENTRY.match(text, place)
        at = f"{file}:{line}"
        if match is None:
            raise ProjectError(
                f"{at}: not a variable: {text[place:].partition(chr(10))[0].strip()!r:.200}"
            )
        if match.re is _ENTRY:
            value = _value(match, known, at=at)
            if value is not None:
                found[match["name"]] = value
        line += text.count("\n", place, match.end())
        place = match.end()
    return found


def _value(match: re.Match[str], known: Mapping[str, str], *, at: str) -> str | None:
    if match["single"] is not None:
        return match["single"]
    if match["double"] is not None:
        text = re.sub(r"\\([nrt\"\\])", lambda it: _ESCAPES.get(it[1], it[1]), match["double"])
        return without_unset(interpolated(text, known, at=at))
    if match["plain"] is not None:
        plain = re.split(r"(?:^|[ \t])#", match["plain"].rstrip())[0].strip()
        return without_unset(interpolated(plain, known, at=at))
    whole = match[0].partition("#")[0]
    return "" if "=" in whole or ":" in whole else known.get(match["name"])
