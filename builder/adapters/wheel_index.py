"""Which wheel pip would take: its own answer, read and checked."""

import posixpath
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from builder import canonical
from builder.adapters.pip import INDEX_HINT, pip
from builder.adapters.wheel_target import Target
from builder.digest import Digest
from builder.errors import EnvironmentFault, GoneError, IntegrityError, ProjectError
from builder.value import value
from builder.wheel_archive import WheelName

_REPORT_LIMIT = 16 << 20
_YANKED = "is a yanked version"
"""What pip says of it; the reports of older releases do not."""


@value
class Offer:
    """A wheel of an index. ``digest`` is the index's word, ``None`` where it has none."""

    filename: str
    version: str
    digest: Digest | None
    yanked: bool


def look(directory: Path, *, project: str, version: str | None, target: Target, at: str) -> Offer:
    """Ask the index. What is written goes into ``directory``.

    pip fetches no more than the metadata where the index serves them apart; otherwise it fetches
    the wheel, to look into it.

    Raises:
        GoneError: No index has such a wheel, or only a pre-release where none is asked for.
        IntegrityError: pip's report is not of one wheel of ``project``.
    """
    report = directory / "report.json"
    wanted = project if version is None else f"{project}=={version}"
    said = pip(
        "install",
        *("--dry-run", "--ignore-installed", "--report", str(report)),
        # pip takes another platform's wheels only for a directory of their own.
        *("--target", str(directory / "target"), *target.options(), "--", wanted),
        at=at,
    )
    try:
        offer = _read(report.read_bytes(), yanked=_YANKED in said, at=at)
    except FileNotFoundError:
        raise EnvironmentFault(f"{at}: pip left no report", hint="upgrade pip") from None
    name = _parsed(offer.filename, at=at)
    if name.project != canonicalize_name(project) or str(name.version) != offer.version:
        raise IntegrityError(
            f"{at}: pip offers {offer.filename!r}, which says of itself that it is version"
            f" {offer.version!r}",
            hint=INDEX_HINT,
        )
    if version is None and name.version.is_prerelease:
        raise GoneError(
            f"{at}: there are only pre-releases for {target.implementation} {target.python},"
            f" the newest is {offer.version}",
            hint=f"name it to have it: {project}=={offer.version}",
        )
    return offer


def _read(raw: bytes, *, yanked: bool, at: str) -> Offer:
    """Pip's report (pip documentation, "Installation Report", version 1)."""
    document = canonical.decode(raw, at=f"{at}: pip's report", limit=_REPORT_LIMIT)
    try:
        (item,) = document["install"]
        place = item["download_info"]
        filename = unquote(posixpath.basename(urlsplit(place["url"]).path))
        version = str(Version(item["metadata"]["version"]))
        digest = _digest(place["archive_info"], at=at)
    except (AttributeError, InvalidVersion, KeyError, TypeError, ValueError) as error:
        raise IntegrityError(
            f"{at}: pip's report is not of one wheel: {type(error).__name__}: {error}",
            hint="upgrade pip in this Python: pip install -U pip",
        ) from error
    return Offer(filename=filename, version=version, digest=digest, yanked=yanked)


def _digest(archive: dict[str, Any], *, at: str) -> Digest | None:
    hashes = archive.get("hashes") or {}
    found = hashes.get("sha256")
    if found is None:  # the older form
        name, _, found = str(archive.get("hash") or "").partition("=")
        if name != "sha256":
            return None
    return Digest.parse(f"sha256:{found}".lower(), at=at, refusal=IntegrityError)


def _parsed(filename: str, *, at: str) -> WheelName:
    try:
        return WheelName.parse(filename)
    except ProjectError as error:
        raise IntegrityError(f"{at}: pip offers {error.message}", hint=INDEX_HINT) from error
