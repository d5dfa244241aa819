"""Lists under a tag, to which several may add at a time: layers of a manifest, members of an index.

Entries and fields of others come out as they went in, in their order; ours are put behind them.
"""

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from builder import canonical
from builder.errors import IntegrityError
from builder.oci import (
    MANIFEST_LIMIT,
    OCI_INDEX,
    OCI_MANIFEST,
    Descriptor,
    Index,
    Manifest,
    parse_document,
)
from builder.sigstore import carriers


class Form(Enum):
    """What holds a list. The value is the field with the entries."""

    LAYERS = "layers"
    MEMBERS = "manifests"


def entries(document: Manifest | Index | None, form: Form, *, at: str) -> tuple[Descriptor, ...]:
    """The entries that are there.

    Raises:
        IntegrityError: The tag stands for something of the other form.
    """
    match document, form:
        case None, _:
            return ()
        case Manifest(), Form.LAYERS:
            return document.layers
        case Index(), Form.MEMBERS:
            return document.manifests
        case _:
            wanted = "a manifest" if form is Form.LAYERS else "an index"
            raise IntegrityError(
                f"{at}: expected {wanted} of signatures, got {document.media_type}",
                hint="an image may have been pushed there by mistake: give it another tag",
            )


def lacking(
    document: Manifest | Index | None, wanted: Sequence[Descriptor], form: Form, *, at: str
) -> tuple[Descriptor, ...]:
    """Those of ``wanted`` that are not there, each once, in their order.

    Raises:
        IntegrityError: As :func:`entries`.
    """
    there = {_identity(entry) for entry in entries(document, form, at=at)}
    missing: dict[Any, Descriptor] = {}
    for entry in wanted:
        if _identity(entry) not in there:
            missing.setdefault(_identity(entry), entry)
    return tuple(missing.values())


def extended(
    document: Manifest | Index | None, more: Sequence[Descriptor], form: Form, *, at: str
) -> Manifest | Index:
    """The document with ``more`` behind what it has; a new one where there was none, which takes
    ``carriers.CONFIG``.

    Raises:
        IntegrityError: As :func:`entries`; it gets larger than a manifest may be.
    """
    entries(document, form, at=at)
    fields = _empty(form) if document is None else canonical.decode(document.raw, at=at)
    fields[form.value] = [*fields[form.value], *(entry.record() for entry in more)]
    try:
        raw = json.dumps(
            fields, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except ValueError as error:
        raise IntegrityError(f"{at}: cannot be written again: {error}") from error
    if len(raw) > MANIFEST_LIMIT:
        raise IntegrityError(
            f"{at}: with one more it takes {len(raw)} bytes, the limit is {MANIFEST_LIMIT}",
            hint="signatures of keys that nobody trusts any more can be deleted",
        )
    media_type = None if document is None else document.media_type
    return parse_document(raw, media_type=media_type, at=at)


def _empty(form: Form) -> dict[str, Any]:
    if form is Form.MEMBERS:
        return {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []}
    config = carriers.config().record()
    return {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": []}


def _identity(entry: Descriptor) -> tuple[str, str, str | None]:
    """What makes two entries one: the content, as what it is read, and the signature that stands
    beside it. What else is said of it is not asked: others leave annotations out."""
    signature = dict(entry.annotations).get(carriers.SIGNATURE)
    return entry.media_type, entry.digest.hex, signature
