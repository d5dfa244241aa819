"""Where a repository's objects really come from: its own URL, or what ``mirrors`` puts there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from builder.errors import AbsentMirrorError, ProjectError


class Kind(Enum):
    """What there is at a location. The values stand in messages."""

    REPOSITORY = "repository"
    BUNDLE = "git bundle"
    STREAM = "fast-export stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A location that git can fetch from or import; ``protocols`` is what it may use for that."""

    location: str
    kind: Kind
    protocols: str
    local: bool


def find(repository: str, mirrors: Mapping[str, str], *, offline: bool = False) -> Source:
    """The source of ``repository``.

    The longest prefix in ``mirrors`` that ends at a ``/`` of the URL, or is all of it (with or
    without ``.git``), wins; what follows the prefix is appended to the replacement. A replacement
    is a URL, or a local path (absolute, or relative to the working directory): a repository, a git
    bundle, or a ``git fast-export`` stream.

    Raises:
        AbsentMirrorError: Replaced by a path where there is nothing; it tells ``offline`` on.
        ProjectError: Neither https nor ssh and not replaced; or replaced by a path with nothing
            that git can read.
    """
    location = _replaced(repository, mirrors)
    if location is None:
        if not re.match(r"https://[^-]|ssh://[^-]|(?!-)[^/:]+:(?!/|:)", repository):
            raise ProjectError(
                f"{repository!r}: not a git repository that a pin may name",
                hint="write https://... or ssh://...; local paths go under mirrors in builder.yaml",
            )
        return Source(location=repository, kind=Kind.REPOSITORY, protocols="https:ssh", local=False)
    if _is_remote(location):
        # Plain http is for mirrors only: somebody chose it, and ids guard the content.
        return Source(
            location=location, kind=Kind.REPOSITORY, protocols="https:ssh:http", local=False
        )
    path = Path(location.removeprefix("file://"))
    found = next((p for p in (path, path.with_name(f"{path.name}.git")) if p.exists()), None)
    if found is None:
        raise AbsentMirrorError(
            f"mirrors: {repository!r} is replaced by {location!r}: no such path", offline=offline
        )
    return Source(location=str(found.absolute()), kind=_kind(found), protocols="file", local=True)


def _is_remote(location: str) -> bool:
    """A URL or ``host:path``; not a path, which may have colons after its first slash."""
    return not location.startswith("file://") and bool(re.match(r"[^/:]+:", location))


def _replaced(url: str, mirrors: Mapping[str, str]) -> str | None:
    for prefix in sorted(mirrors, key=len, reverse=True):
        if not url.startswith(prefix):
            continue
        rest = url[len(prefix) :]
        if rest in ("", "/", ".git"):
            return mirrors[prefix]
        if prefix.endswith("/") or rest.startswith("/"):
            return f"{mirrors[prefix].rstrip('/')}/{rest.lstrip('/')}"
    return None


def _kind(path: Path) -> Kind:
    if path.is_dir():
        return Kind.REPOSITORY
    start = b""
    if path.is_file():  # a pipe would have us wait for whoever writes into it
        try:
            with path.open("rb") as file:
                start = file.read(16)
        except OSError as error:
            raise ProjectError(
                f"mirrors: {str(path)!r}: cannot be read: {error.strerror}"
            ) from error
    if start.startswith((b"# v2 git bundle", b"# v3 git bundle")):
        return Kind.BUNDLE
    if (path.is_file() and path.suffix == ".fast-export") or start.startswith(
        (b"blob\n", b"reset ", b"commit ", b"feature ")
    ):
        return Kind.STREAM
    raise ProjectError(
        f"mirrors: {str(path)!r}: neither a repository, a git bundle nor a fast-export stream",
        hint="make one with: git bundle create FILE --all, or git fast-export --all > FILE",
    )
