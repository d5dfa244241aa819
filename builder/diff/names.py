"""Names in diffs: C-style quotes, the two names of a ``diff --git`` line, hostile paths."""

import re

NULL = b"/dev/null"
_ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
    b'"': b'"',
    b"\\": b"\\",
}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\[abtnvfr"\\]|\\[0-3][0-7]{2})*)"')
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|[A-Za-z]:\Z")
_LONGEST = 4096
_MOST_BLANKS = 200


def text(name: bytes) -> str:
    """The name as the text that the rest of the builder uses."""
    return name.decode("utf-8", "surrogateescape")


def unquote(written: bytes) -> tuple[bytes, bytes] | None:
    """A C-quoted name at the start of ``written``, and what follows it; ``None`` where the quotes
    or an escape are broken (git's ``quote.c``, ``unquote_c_style``)."""
    match = _QUOTED.match(written)
    if match is None:
        return None
    name = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1]) or bytes([int(m[1], 8)]), match[1])
    return name, written[match.end() :]


def whole(written: bytes) -> bytes | None:
    """A name that fills ``written``, quoted or plain; ``None`` where its quotes are broken."""
    if not written.startswith(b'"'):
        return written
    found = unquote(written)
    return found[0] if found is not None and not found[1] else None


def pairs(written: bytes) -> list[tuple[bytes, bytes]]:
    """Every reading of ``OLD NEW`` in a ``diff --git`` line. Plain names may hold blanks, so there
    may be several; the rest of the section says which one is meant."""
    if written.startswith(b'"'):
        found = unquote(written)
        if found is None or not found[1].startswith(b" "):
            return []
        new = whole(found[1][1:])
        return [] if new is None else [(found[0], new)]
    if written.count(b" ") > _MOST_BLANKS:
        return []
    readings = []
    at = written.find(b" ")
    while at >= 0:
        new = whole(written[at + 1 :])
        if at and new:
            readings.append((written[:at], new))
        at = written.find(b" ", at + 1)
    return readings


def prefix_length(old: bytes, new: bytes) -> int | None:
    """How many leading components must go before the two names are one; ``None`` for never.

    >>> prefix_length(b"a/vllm/envs.py", b"b/vllm/envs.py")
    1
    """
    left, right = old.split(b"/"), new.split(b"/")
    if len(left) != len(right) or left[-1] != right[-1]:
        return None
    different = [n for n, (one, other) in enumerate(zip(left, right, strict=True)) if one != other]
    return different[-1] + 1 if different else 0


def hostile(path: str) -> str | None:
    """Why a path must not be used, or ``None`` for a path without harm."""
    if "\0" in path:
        return "has a NUL byte"
    if path.startswith("/"):
        return "is absolute"
    if len(path) > _LONGEST:
        return f"is longer than {_LONGEST}"
    for part in path.split("/"):
        if part == "":
            return "has an empty component"
        if part == "." or ".." in re.split(r"[\\]", part):
            return f"has a {part!r} component"
        # Also what HFS+ and NTFS take for .git: an image is unpacked on such file systems too.
        if part.lower().rstrip(". ") in (".git", "git~1"):
            return f"has a {part!r} component"
        if _DRIVE.match(part):
            return "names a drive"
    return None
