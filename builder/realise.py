"""Realise a plan: each step to a layer in the store, and nothing that is there already.

A step is answered in one of three ways, cheapest first:

1. its derivation was realised before: two small reads, no file of the image is looked at;
2. another derivation asked the same question and the parent tree answers as it did then
   (:mod:`builder.observed`): early cut-off;
3. it is run.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from builder import canonical
from builder.base import Base
from builder.derivation import Read, resolved_id
from builder.digest import Digest
from builder.errors import IntegrityError, PatchError
from builder.files import FileIndex
from builder.layer import compose, write
from builder.layer_files import BaseLayer, OwnLayer
from builder.merged import MergedView
from builder.observed import Observed, answers_alike
from builder.outcome import LayerOutput, Outcome, Output
from builder.plan import Plan, PlannedStep
from builder.ports import Progress, Store
from builder.scan import KeptTable
from builder.steps.request import Materials
from builder.verdict import Verdict

_log = logging.getLogger(__name__)
_DERIVATION, _QUESTION = "derivation", "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Realised:
    """A step and what it came to; ``cached`` when it did not have to run."""

    step: PlannedStep
    output: Output
    cached: bool


def realise(
    plan: Plan,
    base: Base | None,
    *,
    store: Store,
    materials: Materials,
    progress: Progress,
    check: bool = False,
) -> tuple[Realised, ...]:
    """Realise every step, bottom first.

    Args:
        check: Run every step, whatever the store remembers, and compare.

    Raises:
        PatchError: A step does not apply; the layers below it stay in the store, unreferenced.
        IntegrityError: With ``check``, a step did not give the bytes that it gave before.
    """
    parent = base_view(base, store=store, progress=progress)
    realised: list[Realised] = []
    for step in plan.steps:
        known = recall(step, store)
        cached = known is not None and not check
        if known is None or check:
            with store.lock(f"derivation-{step.derivation.id.hex}"):
                known, cached = _answer(step, parent, known, store, materials, check=check)
        realised.append(Realised(step=step, output=known, cached=cached))
        if known.layer is not None:
            parent = parent.over(OwnLayer(known.layer, store))
    return tuple(realised)


def base_view(base: Base | None, *, store: Store, progress: Progress) -> MergedView:
    """The base's tree. No layer is read before something is looked up."""
    if base is None:
        return MergedView(())
    return MergedView(
        tuple(
            BaseLayer(layer, diff_id, origin=base.origin, store=store, progress=progress)
            for layer, diff_id in zip(base.manifest.layers, base.diff_ids, strict=True)
        )
    )


def recall(step: PlannedStep, store: Store) -> Output | None:
    """The output of a derivation that was realised before and is still whole."""
    raw = store.note(_DERIVATION, step.derivation.id.hex)
    return None if raw is None else _whole(canonical.decode(raw, at="trace")["output"], store)


def _answer(
    step: PlannedStep,
    parent: MergedView,
    known: Output | None,
    store: Store,
    materials: Materials,
    *,
    check: bool,
) -> tuple[Output, bool]:
    if not check:
        output = recall(step, store) or _cut_off(step, parent, store)
        if output is not None:
            _remember(step, output, store)
            return output, True
    output, reads = _run(step, parent, store, materials)
    if known is not None and known != output:
        raise IntegrityError(
            f"step {step.name!r}: running it again gave {_named(output)}, it was {_named(known)}",
            hint="a step that is not reproducible must not be used; please report it",
        )
    _remember(step, output, store)
    _remember_reads(step, output, reads, store)
    return output, False


def _cut_off(step: PlannedStep, parent: MergedView, store: Store) -> Output | None:
    """The output of another derivation that asked the same and saw the same."""
    for trace in _traces(step, store):
        reads: list[Read] = [(item[0], item[1], item[2]) for item in trace["reads"]]
        if answers_alike(parent, reads) and (output := _whole(trace["output"], store)) is not None:
            _log.debug("step %s: the parent answers as before, not run", step.name)
            return output
    return None


def _run(
    step: PlannedStep, parent: MergedView, store: Store, materials: Materials
) -> tuple[Output, Sequence[Read]]:
    _log.info("running step %s", step.name)
    view = Observed(parent)
    try:
        outcome = step.request.run(view, materials)
        layer = _layer(step, outcome, view, store)
    except PatchError as error:
        if error.verdict != Verdict.ALREADY_UPSTREAM or not step.request.until_upstream:
            raise
        _log.warning("step %s is left out: %s", step.name, error.message)
        return Output(layer=None, summary=f"left out: {error.message}"), view.reads
    output = Output(
        layer=layer, files=outcome.files, ignored=outcome.ignored, summary=outcome.summary
    )
    return output, view.reads


def _layer(step: PlannedStep, outcome: Outcome, view: Observed, store: Store) -> LayerOutput:
    entries = compose(outcome.changes, view)
    if not entries:
        raise PatchError(
            f"step {step.name!r} changes nothing",
            verdict=Verdict.REFUSED,
            hint="a step that does nothing is a mistake; remove it",
        )
    with store.writer() as writer:
        layer = write(entries, writer)
    index = FileIndex.build(layer.entries, whiteouts=layer.whiteouts, opaques=())
    return LayerOutput(
        digest=layer.digest,
        size=layer.size,
        diff_id=layer.diff_id,
        index=store.put(bytes(index.raw)),
        table=store.put(bytes(KeptTable.build(layer.contents).raw)),
    )


def _remember(step: PlannedStep, output: Output, store: Store) -> None:
    store.take_note(
        _DERIVATION,
        step.derivation.id.hex,
        canonical.encode(
            {"output": output.record(), "blobs": [str(digest) for digest in output.blobs]}
        ),
    )


def _remember_reads(
    step: PlannedStep, output: Output, reads: Sequence[Read], store: Store
) -> None:
    question = step.derivation.question
    trace = {
        "id": str(resolved_id(question, reads)),
        "reads": [list(read) for read in reads],
        "output": output.record(),
    }
    with store.lock(f"question-{question.hex}"):
        others = [item for item in _traces(step, store) if item["id"] != trace["id"]]
        store.take_note(_QUESTION, question.hex, canonical.encode({"traces": [*others, trace]}))


def _traces(step: PlannedStep, store: Store) -> list[dict[str, object]] | list:  # type: ignore[type-arg]
    raw = store.note(_QUESTION, step.derivation.question.hex)
    if raw is None:
        return []
    with suppress(IntegrityError, KeyError, TypeError):
        return list(canonical.decode(raw, at="trace")["traces"])
    return []


def _whole(record: dict, store: Store) -> Output | None:  # type: ignore[type-arg]
    output = Output.parse(record)
    if output.layer is not None and not store.has(output.layer.digest, size=output.layer.size):
        return None
    return output if all(store.has(digest) for digest in output.blobs) else None


def _named(output: Output) -> str:
    return "no layer" if output.layer is None else f"layer {output.layer.diff_id}"


def layer_ids(realised: Sequence[Realised]) -> tuple[Digest, ...]:
    """The diff_ids of our layers, bottom first."""
    return tuple(
        item.output.layer.diff_id for item in realised if item.output.layer is not None
    )
