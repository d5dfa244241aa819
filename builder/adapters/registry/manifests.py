"""What the headers of an answer say about a manifest, checked before they are believed."""

from builder.adapters.registry.connections import Response
from builder.digest import Digest
from builder.errors import IntegrityError, ProjectError
from builder.oci import (
    DOCKER_INDEX,
    DOCKER_MANIFEST,
    MANIFEST_LIMIT,
    OCI_INDEX,
    OCI_MANIFEST,
    Descriptor,
    Index,
    Manifest,
)

_ACCEPTED = (OCI_INDEX, DOCKER_INDEX, OCI_MANIFEST, DOCKER_MANIFEST)
"""Asked for in full each time: with fewer, registries convert what they have, or choose a
platform, and the digest is that of something else."""
ACCEPT = {"Accept": ", ".join(_ACCEPTED)}
_SAYS_NOTHING = frozenset({"", "application/json", "application/octet-stream", "text/plain"})
"""Content types of servers that do not know what they serve: the document speaks for itself."""
_SCHEMA_1 = "application/vnd.docker.distribution.manifest.v1+"


def descriptor_of(document: Manifest | Index) -> Descriptor:
    """The descriptor of a document at hand."""
    return Descriptor(
        media_type=document.media_type, digest=document.digest, size=len(document.raw)
    )


def describe(response: Response, *, what: str) -> Descriptor | None:
    """The descriptor that the headers of a HEAD give, ``None`` where one part is missing."""
    if response.status_code != 200:
        return None
    kind = content_type(response, what=what)
    length = response.headers.get("Content-Length", "")
    size = int(length[:18]) if length.isascii() and length.isdigit() else 0
    try:
        digest = Digest.parse(response.headers.get("Docker-Content-Digest", ""))
    except ProjectError:
        return None
    if kind not in _ACCEPTED or not 0 < size <= MANIFEST_LIMIT:
        return None
    return Descriptor(media_type=kind, digest=digest, size=size)


def content_type(response: Response, *, what: str) -> str | None:
    """The media type that the server gives a manifest, ``None`` where it says nothing.

    Raises:
        IntegrityError: Schema 1, or no manifest at all.
    """
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind.startswith(_SCHEMA_1):
        raise IntegrityError(
            f"{what}: a Docker schema 1 manifest, which is not supported: its layers have no"
            " sizes and its digest covers a signature",
            hint="have the image pushed again by a client of this decade",
        )
    if kind in _SAYS_NOTHING:
        return None
    if kind not in _ACCEPTED:
        raise IntegrityError(
            f"{what}: expected an image manifest or index, got {kind!r}",
            hint="a login page or a proxy may have answered in the registry's place"
            if kind == "text/html"
            else None,
        )
    return kind


def check_header(response: Response, digest: Digest, *, what: str) -> None:
    """Compare the optional ``Docker-Content-Digest``. Another algorithm says nothing to us."""
    header = response.headers.get("Docker-Content-Digest", "")
    if header and not header.startswith("sha512:") and header != str(digest):
        raise IntegrityError(
            f"{what}: the bytes are {digest}, but Docker-Content-Digest says {header!r}"
        )
