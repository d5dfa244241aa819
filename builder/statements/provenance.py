"""SLSA provenance v1 (slsa.dev/spec/v1.0/provenance). It says who built what from what; which step
did what stands in :mod:`builder.statements.manifest`.

Times and the id of the run are left out: they are optional, and would make every build say
something else. Whoever signs says by that when it was at the latest.
"""

from collections.abc import Iterator
from typing import Any

from builder.build_record import Made, Record
from builder.statements.resources import resources
from builder.statements.said import entries_digest, made_of

TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:vllm-image-builder:buildtype:vllm-image:v1"
BUILDER_ID = "urn:vllm-image-builder:builder:v1"
"""Which program built it. Who ran it is told by the signature alone."""


def predicate(record: Record) -> dict[str, Any]:
    """The provenance of the image of a record (of version 2)."""
    made = made_of(record)
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "variant": record.variant,
                "platform": record.platform,
                "strict": made.strict,
                **dict(_files(record, made)),
            },
            "internalParameters": {"builder": made.builder, "assembly": made.assembly},
            "resolvedDependencies": list(resources(record)),
        },
        "runDetails": {"builder": {"id": BUILDER_ID, "version": {"builder": made.builder}}},
    }


def _files(record: Record, made: Made) -> Iterator[tuple[str, Any]]:
    """What was read: of the recipe the file, of the locks the entries that were used, since the
    rest of a lockfile is about other images."""
    file = f"variants/{record.variant}.yaml"
    if (recipe := made.files.get(file)) is not None:
        yield "recipe", {"uri": f"file:{file}", "digest": {"sha256": recipe.hex}}
    yield (
        "lock",
        {
            f"lockfiles/{kind}.yaml": {
                "entries": sorted(pins),
                "digest": {"sha256": entries_digest(pins).hex},
            }
            for kind, pins in made.pins.items()
        },
    )
