"""in-toto Statements (in-toto/attestation, spec/v1/statement.md): what is said of which content."""

import re
from collections.abc import Mapping
from typing import Any

from builder import canonical
from builder.attest.dsse import ENVELOPE_LIMIT, IN_TOTO, Envelope
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.value import field, value

STATEMENT_V1 = "https://in-toto.io/Statement/v1"
STATEMENT_V0_1 = "https://in-toto.io/Statement/v0.1"
"""The same fields under an older name, which ``cosign attest`` still writes. Only read."""
SUBJECT_LIMIT = 64
_FIELDS = canonical.spellings("_type", "subject", "predicateType", "predicate", "name", "digest")
_SHA256 = re.compile("[0-9a-f]{64}")


@value
class Subject:
    """Content that a statement is about. ``name`` is for people: nothing is decided by it."""

    name: str
    digest: Digest


@value
class Statement:
    """A predicate about subjects."""

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: Mapping[str, Any] = field(repr=False)

    def about(self, digest: Digest) -> bool:
        """Whether this content is among the subjects."""
        return any(subject.digest == digest for subject in self.subjects)


def envelope(statement: Statement) -> Envelope:
    """The statement in an envelope that nobody has signed yet: canonical bytes."""
    document = {
        "_type": STATEMENT_V1,
        "subject": [
            {"name": subject.name, "digest": {"sha256": subject.digest.hex}}
            for subject in statement.subjects
        ],
        "predicateType": statement.predicate_type,
        "predicate": statement.predicate,
    }
    return Envelope(payload_type=IN_TOTO, payload=canonical.encode(document))


def parse(envelope: Envelope, *, at: str) -> Statement:
    """The statement in an envelope whose signatures somebody has verified.

    Raises:
        IntegrityError: Another payload type, another ``_type``, no subject, a subject without
            sha256, a key twice or in another case.
    """
    if envelope.payload_type != IN_TOTO:
        raise IntegrityError(
            f"{at}: expected payload type {IN_TOTO}, got {envelope.payload_type!r}"
        )
    document = canonical.decode(envelope.payload, at=at, limit=ENVELOPE_LIMIT)
    known = (STATEMENT_V1, STATEMENT_V0_1)
    if not isinstance(document, dict) or document.get("_type") not in known:
        got = document.get("_type") if isinstance(document, dict) else document
        raise IntegrityError(f"{at}: expected a {STATEMENT_V1}, got {got!r}")
    canonical.refuse_alike(document, _FIELDS, at=at)
    subjects, kind = document.get("subject"), document.get("predicateType")
    if not isinstance(subjects, list) or not 0 < len(subjects) <= SUBJECT_LIMIT:
        raise IntegrityError(f"{at}: subject: expected 1 to {SUBJECT_LIMIT} subjects")
    if not isinstance(kind, str) or not kind:
        raise IntegrityError(f"{at}: predicateType: expected a text, got {kind!r}")
    predicate = document.get("predicate", {})
    if not isinstance(predicate, dict):
        raise IntegrityError(f"{at}: predicate: expected an object")
    return Statement(
        subjects=tuple(
            _subject(item, at=f"{at}: subject[{number}]") for number, item in enumerate(subjects)
        ),
        predicate_type=kind,
        predicate=predicate,
    )


def _subject(item: Any, *, at: str) -> Subject:
    """The sha256 is demanded: that *any* algorithm of a set may match is the specification's rule
    for those who know no better one."""
    if isinstance(item, dict):
        canonical.refuse_alike(item, _FIELDS, at=at)
    digests = item.get("digest") if isinstance(item, dict) else None
    found = digests.get("sha256") if isinstance(digests, dict) else None
    if not isinstance(found, str) or not _SHA256.fullmatch(found):
        raise IntegrityError(f"{at}: no sha256 among its digests")
    name = item.get("name", "")
    return Subject(
        name=name if isinstance(name, str) else "", digest=Digest.parse(f"sha256:{found}")
    )
