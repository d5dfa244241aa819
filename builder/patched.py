"""What became of each patch of a patch set, beside whether it was asked for. Over the record of a
build and what the store knows of the patch set: nothing is fetched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builder.build_record import Build, Record, RecordedStep, recorded
from builder.genesis.facts import Facts
from builder.genesis.switches import switched
from builder.outcome import PatchOutcome, PatchState
from builder.patch_facts import kept_facts
from builder.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """One patch of one step.

    ``on`` is whether the patch set calls it switched on in the environment of the step, and ``by``
    the variable that does it (``None`` for one that is on by default). ``on`` is ``None`` where
    nobody knows: the registry has no such patch, or the store no longer has the registry.
    """

    step: str
    outcome: PatchOutcome
    on: bool | None = None
    by: str | None = None

    @property
    def lost(self) -> bool:
        """Whether somebody switched it on, and nothing came of it."""
        missed = self.outcome.state in (PatchState.SKIPPED, PatchState.FAILED)
        return self.by is not None and missed


def patched(record: Record, store: Store) -> tuple[Patched, ...]:
    """The patches of a build, in the order of their run."""
    return tuple(item for step in record.steps for item in _of_step(step, store))


def lost_by(build: Build, store: Store) -> tuple[Patched, ...]:
    """The patches of a build that somebody switched on and nothing came of."""
    return tuple(item for item in patched(recorded(build.image.digest, store), store) if item.lost)


def _of_step(step: RecordedStep, store: Store) -> Iterator[Patched]:
    if not step.output.patches:
        return
    facts = kept_facts(str(step.inputs.get("payload")), store)
    on = {} if facts is None else _switches(facts, step.inputs)
    for outcome in step.output.patches:
        known = [on[name] for name in _ids(outcome.name) if name in on]
        yield Patched(
            step=step.name,
            outcome=outcome,
            on=any(item for item, _ in known) if known else None,
            by=next((by for _, by in known if by is not None), None),
        )


def _switches(facts: Facts, inputs: Mapping[str, Any]) -> dict[str, tuple[bool, str | None]]:
    """For each patch of the registry: whether it is on, and by which variable."""
    on = switched(inputs["environment"], facts).on
    return {patch.id.casefold(): (patch.id in on, on.get(patch.id)) for patch in facts.patches}


def _ids(name: str) -> Iterator[str]:
    """The registry's names of a patch: one that does the work of two tells both (``P68/P69``)."""
    return (part.strip().casefold() for part in name.split("/"))
