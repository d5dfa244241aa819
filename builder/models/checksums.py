"""Checksum files: the digests of many files in one text, in the dialects that people publish.

Known are those of sha256sum (two blanks, blank and ``*``, one blank; names with escapes after a
leading backslash), of BSD's sha256 and of OpenSSL (``SHA256 (NAME) = HEX``), each with LF or CRLF,
in UTF-8 or, with a byte order mark, UTF-16. A line that is none of them is an error: a tool that
passes over it verifies nothing and says that all is well.
"""

import codecs
import re
from collections.abc import Iterator, Mapping

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.lock.model import ModelPin
from builder.tree import normal

LIMIT = 16 << 20
"""The largest checksum file that is read."""

_GNU = re.compile(r"(?P<escaped>\\?)(?P<hex>[0-9A-Fa-f]{8,128}) [ *]?(?P<name>.*\S.*)")
_TAGGED = re.compile(
    r"(?P<escaped>\\?)(?P<kind>[A-Z0-9-]+) ?\((?P<name>.+)\) ?= ?(?P<hex>[0-9A-Fa-f]+)"
)
_ESCAPE = re.compile(r"\\(.?)")
_ESCAPES = {"\\": "\\", "n": "\n", "r": "\r"}
_SHA256 = frozenset({"SHA256", "SHA2-256"})


def read_checksums(data: bytes, *, at: str) -> Mapping[str, Digest]:
    """Read a checksum file: digests by path.

    Args:
        data: Its bytes.
        at: Its name, for messages.

    Raises:
        IntegrityError: A line that cannot be read, a hash that is no sha256, a name that is no
            relative path or is there with two digests; nothing at all.
    """
    found: dict[str, Digest] = {}
    for number, line in _lines(data, at=at):
        place = f"{at}:{number}"
        name, digest = _entry(line, at=place)
        if found.setdefault(name, digest) != digest:
            raise IntegrityError(f"{place}: a second digest of {name!r}")
    if not found:
        raise IntegrityError(f"{at}: no checksums in it")
    return found


def checksums(pin: ModelPin, *, prefix: str = "") -> str:
    """The files of a pin as sha256sum writes them, sorted by path; those without a digest are left
    out."""
    lines = [
        _line(file.digest, prefix + file.path)
        for file in sorted(pin.files, key=lambda file: file.path.encode())
        if file.digest is not None
    ]
    return "".join(lines)


def compare(pin: ModelPin, published: Mapping[str, Digest], *, at: str) -> int:
    """Hold a pin to the digests that somebody publishes; returns how many files they speak of.

    What is published of files that are not pinned says nothing here, and the other way round.

    Args:
        at: Where the digests are from, for messages.

    Raises:
        IntegrityError: One is another than is locked, or none is of a file that is pinned.
    """
    locked = {file.path: file.digest for file in pin.files if file.digest is not None}
    common = sorted(locked.keys() & published.keys())
    wrong = [path for path in common if locked[path] != published[path]]
    if wrong or not common:
        path = wrong[0] if wrong else None
        raise IntegrityError(
            f"{at}: {len(wrong)} of {len(common)} files are others than {pin.name} has locked, the"
            f" first is {path!r}: expected {published[path]}, got {locked[path]}"
            if path is not None
            else f"{at}: of its {len(published)} files none is one that {pin.name} has locked",
            hint="another revision, or another model? it is the lock that is fetched and verified",
        )
    return len(common)


def _lines(data: bytes, *, at: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor comments, with their numbers."""
    if len(data) > LIMIT:
        raise IntegrityError(f"{at}: {len(data)} bytes of checksums, the limit is {LIMIT}")
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise IntegrityError(f"{at}: neither UTF-8 nor UTF-16: {error.reason}") from error
    for number, whole in enumerate(text.split("\n"), start=1):
        line = whole.removesuffix("\r")
        if line.strip() and not line.startswith("#"):
            yield number, line


def _entry(line: str, *, at: str) -> tuple[str, Digest]:
    match = _TAGGED.fullmatch(line) or _GNU.fullmatch(line)
    if match is None:
        raise IntegrityError(
            f"{at}: not a line of a checksum file: {line!r:.200}",
            hint="HEX, two blanks, name; or SHA256 (name) = HEX",
        )
    kind = match.groupdict().get("kind")
    if len(match["hex"]) != 64 or (kind is not None and kind not in _SHA256):
        raise IntegrityError(
            f"{at}: expected a sha256 of 64 hex digits, got {kind or 'one'} of {len(match['hex'])}",
            hint="git blob ids and md5 say nothing that a lock could hold on to",
        )
    name = match["name"]
    if match["escaped"]:
        name = _ESCAPE.sub(lambda escape: _unescaped(escape[1], at=at), name)
    path = normal(name, at=at)
    if name.startswith("/") or "\\" in path or not path.isprintable():
        raise IntegrityError(f"{at}: not a plain relative path: {name!r:.200}")
    return path, Digest(match["hex"].lower())


def _unescaped(letter: str, *, at: str) -> str:
    if letter not in _ESCAPES:
        raise IntegrityError(f"{at}: a backslash before {letter!r} is no escape")
    return _ESCAPES[letter]


def _line(digest: Digest, path: str) -> str:
    return f"{digest.hex}  {path}\n"
