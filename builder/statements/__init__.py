"""What is said of an image that was built, as in-toto Statements. Pure over its record.

    manifest     every pin, step, verdict and file: a predicate of our own
    provenance   how it was made, for those who know SLSA
    sbom         what is in it (CycloneDX), our patches as the pedigree of what they patch

The same build gives the same bytes on every machine and on every day: no time, no host, no path of
a machine, no user, nothing of the environment, no sandbox; addresses without secrets.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from builder.attest.statement import Statement, Subject
from builder.build_record import Record
from builder.errors import IntegrityError, ProjectError
from builder.notes import MALFORMED
from builder.statements import manifest, provenance, sbom

__all__ = ["PREDICATE_TYPES", "Kind", "statement", "statements"]


class Kind(StrEnum):
    """The statements that are made of every image."""

    MANIFEST = "manifest"
    PROVENANCE = "provenance"
    SBOM = "sbom"


PREDICATE_TYPES: Mapping[Kind, str] = {
    Kind.MANIFEST: manifest.TYPE,
    Kind.PROVENANCE: provenance.TYPE,
    Kind.SBOM: sbom.TYPE,
}
_PREDICATES: Mapping[Kind, Callable[[Record], dict[str, Any]]] = {
    Kind.MANIFEST: manifest.predicate,
    Kind.PROVENANCE: provenance.predicate,
    Kind.SBOM: sbom.predicate,
}


def statement(record: Record, kind: Kind, *, name: str) -> Statement:
    """One statement about the image of a record.

    Args:
        name: What the subject is called, usually the repository that it is pushed to. The digest
            is what counts: no predicate depends on the name.

    Raises:
        ProjectError: The record is of an older builder, which kept less of a build.
        IntegrityError: It is damaged in a way that only shows here.
    """
    if record.made is None:
        raise ProjectError(
            f"the record of image {record.digest} was written by an older builder, and does not"
            " say what the image was made of",
            hint=f"build it again on this machine: builder build {record.variant}",
        )
    try:
        predicate = _PREDICATES[kind](record)
    except MALFORMED as error:
        raise IntegrityError(
            f"record of image {record.digest}: damaged, no statement can be made of it",
            hint=f"build it again on this machine: builder build {record.variant}",
        ) from error
    return Statement(
        subjects=(Subject(name=name, digest=record.digest),),
        predicate_type=PREDICATE_TYPES[kind],
        predicate=predicate,
    )


def statements(record: Record, *, name: str) -> tuple[Statement, ...]:
    """All statements about the image of a record, in the order of :class:`Kind`. Arguments and
    errors are those of :func:`statement`."""
    return tuple(statement(record, kind, name=name) for kind in Kind)
