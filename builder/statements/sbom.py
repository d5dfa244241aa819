"""A CycloneDX 1.6 document: what is in the image, and what was done to it.

Only what builder put there is listed, and the base as a whole: a scanner that reads the image's
files says what else is in it.
"""

from collections.abc import Iterator
from typing import Any

from builder import canonical
from builder.build_record import Record, RecordedBase
from builder.digest import Digest
from builder.statements.components import genesis, model, source, vllm_of, wheel
from builder.statements.patches import Patches, patches_of
from builder.statements.said import image_purl, made_of, present

TYPE = "https://cyclonedx.org/bom"
_IMAGE = "image"


def predicate(record: Record) -> dict[str, Any]:
    """The document about the image of a record (of version 2)."""
    made = made_of(record)
    patches = patches_of(record)
    components = [*_components(record, patches)]
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "tools": {
                "components": [{"type": "application", "name": "builder", "version": made.builder}]
            },
            "component": _image(record, patches),
        },
        "components": components,
        "dependencies": [
            {
                "ref": _IMAGE,
                "dependsOn": [
                    item["bom-ref"]
                    for item in components
                    if item["type"] != "machine-learning-model"
                ],
            },
            *({"ref": item["bom-ref"]} for item in components),
        ],
    }
    return {**document, "serialNumber": serial_number(document)}


def serial_number(document: dict[str, Any]) -> str:
    """A UUID of version 8 (RFC 9562, 5.8) out of the sha256 of the document without it: another
    document, of another image or of what is said of it, has another one.

    Version 5 would do the same with sha1, which we have no use for.
    """
    digits = Digest.of(canonical.encode(document)).hex
    variant = "89ab"[int(digits[16], 16) & 3]
    parts = (digits[:8], digits[8:12], f"8{digits[13:16]}", f"{variant}{digits[17:20]}")
    return f"urn:uuid:{'-'.join(parts)}-{digits[20:32]}"


def _image(record: Record, patches: Patches) -> dict[str, Any]:
    made = made_of(record)
    return present(
        **{"bom-ref": _IMAGE},
        type="container",
        name=record.variant,
        version=str(record.digest),
        hashes=[{"alg": "SHA-256", "content": record.digest.hex}],
        pedigree=patches.pedigree(vllm=False),
        properties=[
            {"name": f"vllm-image-builder:{name}", "value": value}
            for name, value in (
                ("config", str(made.config)),
                ("platform", record.platform),
                *patches.properties(vllm=False),
            )
        ],
    )


def _components(record: Record, patches: Patches) -> Iterator[dict[str, Any]]:
    made = made_of(record)
    if record.base is not None:
        yield _base(record.base, record)
    vllm = vllm_of(record)
    if vllm is not None:
        yield patches.on(vllm)
    for kind, component in (
        ("genesis", genesis),
        ("wheels", wheel),
        ("sources", source),
        ("models", model),
    ):
        for name, pin in sorted(made.pins.get(kind, {}).items()):
            made_component = component(name, pin)
            if vllm is None or made_component["bom-ref"] != vllm["bom-ref"]:
                yield made_component


def _base(base: RecordedBase, record: Record) -> dict[str, Any]:
    pin = next(iter(made_of(record).pins.get("vllm", {}).values()), {})
    repository = None if base.twin_of is not None else pin.get("image")
    told = {"index": base.index, "config": base.config, "twin-of": base.twin_of}
    return present(
        **{"bom-ref": "base"},
        type="container",
        name=repository or "base",
        version=str(base.manifest),
        purl=None
        if repository is None
        else image_purl(
            repository, str(base.manifest), tag=pin.get("tag"), platform=record.platform
        ),
        hashes=[{"alg": "SHA-256", "content": base.manifest.hex}],
        properties=[
            {"name": f"vllm-image-builder:{name}", "value": str(digest)}
            for name, digest in told.items()
            if digest is not None
        ]
        or None,
    )
