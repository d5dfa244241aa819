"""Our own predicate: everything that was asked for, and everything that came of it.

The schema is ``builder/schemas/manifest.json``; ``docs/manifest.md`` explains it.
"""

from typing import Any

from builder.build_record import Made, Record, RecordedBase, RecordedStep
from builder.outcome import LayerOutput, PatchOutcome, PatchState
from builder.statements.said import made_of, present

TYPE = "urn:vllm-image-builder:manifest:v1"

_WITH_A_REASON = frozenset({PatchState.SKIPPED, PatchState.FAILED})
"""Of these the reason is held to what was accepted (:mod:`builder.results`). What a patch says when
it did something is not, and may differ with the Python that ran it."""


def predicate(record: Record) -> dict[str, Any]:
    """The manifest of the image of a record (of version 2)."""
    made = made_of(record)
    return present(
        builder={"version": made.builder, "assembly": made.assembly},
        variant=_variant(record, made),
        platform=record.platform,
        image={"manifest": str(record.digest), "config": str(made.config)},
        base=None if record.base is None else _base(record.base),
        pins={kind: dict(pins) for kind, pins in made.pins.items()},
        overlays={name: _digests(files) for name, files in made.overlays.items()},
        settings=_settings(record),
        rulings=[present(**ruling) for ruling in made.rulings],
        steps=[_step(step) for step in record.steps],
    )


def _variant(record: Record, made: Made) -> dict[str, Any]:
    recipe = made.files.get(f"variants/{record.variant}.yaml")
    return present(
        name=record.variant,
        recipe=None if recipe is None else str(recipe),
        strict=made.strict,
    )


def _base(base: RecordedBase) -> dict[str, Any]:
    return present(
        reference=base.reference,
        index=_text(base.index),
        manifest=str(base.manifest),
        twin_of=_text(base.twin_of),
        config=_text(base.config),
        layers=[dict(layer) for layer in base.layers],
    )


def _settings(record: Record) -> dict[str, Any]:
    """What the recipe sets. In ``env`` and ``labels`` a null removes what the base has."""
    return present(**{key: item for key, item in record.settings.items() if item != {}})


def _step(step: RecordedStep) -> dict[str, Any]:
    output = step.output
    return present(
        name=step.name,
        kind=step.kind,
        pins=list(step.pins),
        derivation=str(step.derivation),
        inputs=dict(step.inputs),
        layer=None if output.layer is None else _layer(output.layer),
        left_out="already-upstream" if output.layer is None else None,
        files=[file.record() for file in output.files],
        ignored=list(output.ignored),
        patches=[_patch(patch) for patch in output.patches] or None,
        summary=output.summary,
    )


def _layer(layer: LayerOutput) -> dict[str, Any]:
    return {"digest": str(layer.digest), "size": layer.size, "diff_id": str(layer.diff_id)}


def _patch(patch: PatchOutcome) -> dict[str, Any]:
    reason = patch.why if patch.state in _WITH_A_REASON else ""
    return present(
        name=patch.name,
        state=str(patch.state),
        reason=reason or None,
        files=list(patch.files) or None,
    )


def _digests(files: Any) -> dict[str, str]:
    return {path: str(digest) for path, digest in files.items()}


def _text(item: object | None) -> str | None:
    return None if item is None else str(item)
