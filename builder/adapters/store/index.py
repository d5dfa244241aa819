"""``index.json`` as a value: named manifests between entries that are not ours.

The document is edited as decoded JSON and not through ``oci.Index``, because what other tools
wrote (entries without a name, fields and annotations that we do not know) must come out again.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from builder import canonical
from builder.errors import IntegrityError
from builder.oci import FIELDS, OCI_INDEX, Descriptor

REF_NAME = "org.opencontainers.image.ref.name"
LIMIT = 64 << 20
"""The most bytes of index.json that are read."""

Document: TypeAlias = dict[str, Any]

EMPTY = canonical.encode({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []})


def parse(raw: bytes, *, at: str) -> Document:
    """Read the document, as far as we act on it.

    Raises:
        IntegrityError: Not an index. It is never taken for an empty one.
    """
    document = canonical.decode(raw, at=at, limit=LIMIT)
    if not isinstance(document, dict) or document.get("schemaVersion") != 2:
        raise IntegrityError(f"{at}: expected an image index with schemaVersion 2")
    entries = document.get("manifests")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IntegrityError(f"{at}.manifests: expected a list of objects")
    canonical.refuse_alike(document, FIELDS, at=at)
    for number, entry in enumerate(entries):
        canonical.refuse_alike(entry, FIELDS, at=f"{at}.manifests[{number}]")
    return document


def encode(document: Document, *, at: str) -> bytes:
    """The canonical bytes of a document.

    Raises:
        IntegrityError: Another tool put a number with a fraction in it, which has no one spelling.
    """
    try:
        return canonical.encode(document)
    except TypeError as error:
        raise IntegrityError(f"{at}: cannot be written again: {error}") from error


def entries(
    document: Document, *, at: str, only: str | None = None
) -> Iterator[tuple[str | None, Descriptor]]:
    """Every entry with its name, if it has one; with ``only`` those of that name, and the others
    are not looked at.

    Raises:
        IntegrityError: At an entry that is no descriptor with a sha256 digest.
    """
    for number, entry in enumerate(document["manifests"]):
        if only is None or _name(entry) == only:
            yield _name(entry), Descriptor.parse(entry, at=f"{at}.manifests[{number}]")


def references(document: Document, *, at: str, only: str | None = None) -> dict[str, Descriptor]:
    """The named entries, by name, or that of one name. The others are not looked at.

    Raises:
        IntegrityError: A named entry is malformed, or a name stands for two manifests.
    """
    found: dict[str, Descriptor] = {}
    for number, entry in enumerate(document["manifests"]):
        if (name := _name(entry)) is None or only not in (None, name):
            continue
        descriptor = Descriptor.parse(entry, at=f"{at}.manifests[{number}]")
        other = found.setdefault(name, descriptor)
        if other.digest != descriptor.digest:
            raise IntegrityError(
                f"{at}: {name!r} names both {other.digest} and {descriptor.digest}",
                hint="another tool wrote this; build the variant again, or drop the name",
            )
    return found


def with_reference(document: Document, *, name: str, descriptor: Descriptor) -> Document:
    """The document in which ``name`` stands for ``descriptor``, once, at its old place."""
    record = descriptor.record()
    record["annotations"] = {**record.get("annotations", {}), REF_NAME: name}
    manifests: list[Any] = []
    for entry in document["manifests"]:
        if _name(entry) != name:
            manifests.append(entry)
        elif record not in manifests:
            manifests.append(record)
    if record not in manifests:
        manifests.append(record)
    return {**document, "manifests": manifests}


def without_reference(document: Document, *, name: str) -> Document:
    """The document in which ``name`` stands for nothing."""
    kept = [entry for entry in document["manifests"] if _name(entry) != name]
    return {**document, "manifests": kept}


def _name(entry: dict[str, Any]) -> str | None:
    annotations = entry.get("annotations")
    name = annotations.get(REF_NAME) if isinstance(annotations, dict) else None
    return name if isinstance(name, str) else None
