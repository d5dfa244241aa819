"""What the statements have in common: names of content as the specifications spell them."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from builder import canonical
from builder.build_record import Made, Record
from builder.digest import Digest


def made_of(record: Record) -> Made:
    """The part of a record that only version 2 has; the caller has seen that it is there."""
    if record.made is None:
        raise RuntimeError("a record of before statements")
    return record.made


def present(**fields: Any) -> dict[str, Any]:
    """The fields that are known: absent, not null."""
    return {key: item for key, item in fields.items() if item is not None}


def hex_of(digest: str) -> str:
    """The digits of a digest in a record."""
    return Digest.parse(digest).hex


def entries_digest(pins: Mapping[str, Mapping[str, Any]]) -> Digest:
    """The digest of the entries of one lockfile that were used: of their canonical JSON, as the
    manifest has it under ``pins``."""
    return Digest.of(canonical.encode({name: dict(pin) for name, pin in pins.items()}))


def purl(kind: str, name: str, version: str, qualifiers: Iterable[tuple[str, str]] = ()) -> str:
    """A package URL (purl-spec). ``name`` may have slashes: the last part is the name."""
    path = "/".join(quote(part, safe="") for part in name.split("/"))
    found = "&".join(
        f"{key}={quote(value, safe='/:')}" for key, value in sorted(qualifiers) if value
    )
    return f"pkg:{kind}/{path}@{quote(version, safe=':')}{f'?{found}' if found else ''}"


def image_purl(repository: str, digest: str, *, tag: str | None, platform: str | None) -> str:
    """That of an image: ``repository`` has the registry."""
    return purl(
        "oci",
        repository.rpartition("/")[2],
        digest,
        (
            ("arch", "" if platform is None else platform.split("/")[1]),
            ("repository_url", repository),
            ("tag", tag or ""),
        ),
    )


def wheel_purl(project: str, version: str) -> str:
    """That of a Python package, of which the name is normalised."""
    return purl("pypi", project.lower().replace("_", "-"), version)


def git_uri(repository: str | None, commit: str, path: str | None = None) -> str | None:
    """A commit, or a file of it (SPDX, package download location); ``None`` where nobody else can
    reach the repository by its address."""
    if repository is None or "://" not in repository:
        return None
    where = repository if repository.startswith("git+") else f"git+{repository}"
    return f"{where}@{commit}" + ("" if path is None else f"#{quote(path)}")


def web_page(repository: str | None) -> str | None:
    """Where people look at a repository; ``None`` where its address does not say."""
    if repository is None or not repository.startswith(("https://", "http://")):
        return None
    return repository.rstrip("/").removesuffix(".git")
