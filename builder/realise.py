"""Realise a plan: each step to a layer in the store, and nothing that is there already.

A step is answered in one of three ways, cheapest first:

1. its derivation was realised before: two small reads, no file of the image is looked at;
2. another derivation asked the same question and the parent tree answers as it did then
   (:mod:`builder.observed`): early cut-off;
3. it is run (:mod:`builder.bake`).
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from builder.base import Base
from builder.digest import Digest
from builder.errors import BuilderError, IntegrityError
from builder.outcome import LayerOutput, Output
from builder.plan import Plan, PlannedStep
from builder.ports import Progress, Store
from builder.steps.request import Materials
from builder.traces import alike, recall, remember, remember_reads
from builder.value import value

if TYPE_CHECKING:
    from builder.bake import Bench

_log = logging.getLogger(__name__)


@value
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
    known = [recall(step.derivation, store) for step in plan.steps]
    if not check and (all_known := _all_cached(plan, known)) is not None:
        return all_known
    from builder.bake import Bench  # noqa: PLC0415 - only who has work to do pays for the tools

    bench = Bench(base, store=store, materials=materials, progress=progress)
    realised: list[Realised] = []
    for step, before in zip(plan.steps, known, strict=True):
        if before is not None and not check:
            result = Realised(step=step, output=before, cached=True)
        else:
            with store.lock(f"derivation-{step.derivation.id.hex}"):
                result = _answer(step, bench, before if check else None, store)
        realised.append(result)
        bench.put_on(result.output)
    return tuple(realised)


def remembered(plan: Plan, *, store: Store) -> tuple[Realised, ...] | None:
    """Every step as it was realised before; ``None`` where one of them was not."""
    return _all_cached(plan, [recall(step.derivation, store) for step in plan.steps])


def _all_cached(plan: Plan, known: Sequence[Output | None]) -> tuple[Realised, ...] | None:
    realised = tuple(
        Realised(step=step, output=output, cached=True)
        for step, output in zip(plan.steps, known, strict=True)
        if output is not None
    )
    return realised if len(realised) == len(known) else None


def _answer(step: PlannedStep, bench: "Bench", before: Output | None, store: Store) -> Realised:
    """Cut off early, or run; with ``before`` always run, and compare."""
    if before is None:
        # Another process may have been quicker while we waited for the lock.
        output = recall(step.derivation, store) or _cut_off(step, bench, store)
        if output is not None:
            remember(step.derivation, output, store)
            return Realised(step=step, output=output, cached=True)
    output, reads = bench.run(step)
    # What is kept of an output is its record: an offset of 0 is not in it.
    if before is not None and before != Output.parse(output.record()):
        raise IntegrityError(
            f"step {step.name!r}: running it again gave {_named(output)}, it was {_named(before)}",
            hint="a step that does not repeat itself must not be used; please report it",
        )
    remember(step.derivation, output, store)
    remember_reads(step.derivation, reads, output, store)
    return Realised(step=step, output=output, cached=False)


@value
class Failed:
    """A step that did not come to anything."""

    step: PlannedStep
    error: BuilderError


def attempt(
    plan: Plan, base: Base | None, *, store: Store, materials: Materials, progress: Progress
) -> tuple[Realised | Failed, ...]:
    """Try every step, whatever becomes of those below it.

    A step above one that failed works on a tree that is not the one it was planned for. Its output
    is kept by its question and its reads, which are true, and not under its derivation.
    """
    from builder.bake import Bench  # noqa: PLC0415 - as above

    bench = Bench(base, store=store, materials=materials, progress=progress)
    tried: list[Realised | Failed] = []
    whole = True
    for step in plan.steps:
        try:
            with store.lock(f"derivation-{step.derivation.id.hex}"):
                result = _answer(step, bench, None, store) if whole else _apart(step, bench, store)
        except BuilderError as error:
            whole = False
            tried.append(Failed(step=step, error=error))
            continue
        tried.append(result)
        bench.put_on(result.output)
    return tuple(tried)


def _apart(step: PlannedStep, bench: "Bench", store: Store) -> Realised:
    """As :func:`_answer`, on a tree that no derivation names."""
    if (output := _cut_off(step, bench, store)) is not None:
        return Realised(step=step, output=output, cached=True)
    output, reads = bench.run(step)
    remember_reads(step.derivation, reads, output, store)
    return Realised(step=step, output=output, cached=False)


def _cut_off(step: PlannedStep, bench: "Bench", store: Store) -> Output | None:
    for reads, output in alike(step.derivation, store):
        if bench.answers(reads):
            _log.debug("step %s: the parent answers as before, not run", step.name)
            return output
    return None


def _named(output: Output) -> str:
    return "no layer" if output.layer is None else f"layer {output.layer.diff_id}"


def layers_of(realised: Sequence[Realised]) -> tuple[tuple[str, LayerOutput], ...]:
    """For each layer of ours what made it and the layer, bottom first."""
    return tuple(
        (f"builder {item.step.kind} {item.step.name}", item.output.layer)
        for item in realised
        if item.output.layer is not None
    )


def layer_ids(realised: Sequence[Realised]) -> tuple[Digest, ...]:
    """The diff_ids of our layers, bottom first."""
    return tuple(item.output.layer.diff_id for item in realised if item.output.layer is not None)
