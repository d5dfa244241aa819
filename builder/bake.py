"""Run steps: from a request and the parent tree to a layer in the store."""

import logging
from collections.abc import Sequence

from builder.base import Base
from builder.changes import Remove
from builder.derivation import Read
from builder.digest import Digest
from builder.errors import PatchError
from builder.files import FileIndex
from builder.hygiene import refuse_shadows, stale_bytecode
from builder.kept import KeptTable
from builder.layer import Layer, compose, write
from builder.layer_files import BaseLayer, OwnLayer
from builder.merged import MergedView
from builder.observed import Observed, answers_alike
from builder.outcome import LayerOutput, Outcome, Output
from builder.plan import PlannedStep
from builder.ports import Progress, Store
from builder.steps.request import Materials
from builder.verdict import Verdict

_log = logging.getLogger(__name__)


class Bench:
    """The tree under work: the base, and on it the layers that were put on so far."""

    def __init__(
        self, base: Base | None, *, store: Store, materials: Materials, progress: Progress
    ) -> None:
        self._store = store
        self._materials = materials
        self._view = base_view(base, store=store, progress=progress)

    def put_on(self, output: Output) -> None:
        """The next steps see this output's layer, where it has one."""
        if output.layer is not None:
            self._view = self._view.over(OwnLayer(output.layer, self._store))

    def answers(self, reads: Sequence[Read]) -> bool:
        """Whether the tree gives these answers."""
        return answers_alike(self._view, reads)

    def run(self, step: PlannedStep) -> tuple[Output, tuple[Read, ...]]:
        """Run a step on the tree; its layer is in the store afterwards, and not yet put on.

        Raises:
            PatchError: It does not apply as declared.
        """
        _log.info("running step %s", step.name)
        view = Observed(self._view)
        try:
            outcome = step.request.run(view, self._materials)
            layer = self._layer(step, outcome, view)
        except PatchError as error:
            if error.verdict != Verdict.ALREADY_UPSTREAM or not step.request.until_upstream:
                raise
            _log.warning("step %s is left out: %s", step.name, error.message)
            left_out = Output(layer=None, summary="left out: already upstream")
            return left_out, view.reads
        output = Output(
            layer=layer,
            files=outcome.files,
            ignored=outcome.ignored,
            summary=outcome.summary,
            patches=outcome.patches,
            sandbox=outcome.sandbox,
        )
        return output, view.reads

    def _layer(self, step: PlannedStep, outcome: Outcome, view: Observed) -> LayerOutput:
        at = f"step {step.name!r}"
        entries = compose((*outcome.changes, *_hygiene(step, outcome, view, at)), view, at=at)
        if not entries:
            raise PatchError(
                f"{at} changes nothing",
                verdict=Verdict.REFUSED,
                hint="a step that does nothing is a mistake; remove it",
            )
        with self._store.writer() as writer:
            layer = write(entries, writer)
        index = FileIndex.build(layer.entries, whiteouts=layer.whiteouts)
        table = KeptTable.build(_places(layer))
        return LayerOutput(
            digest=layer.digest,
            size=layer.size,
            diff_id=layer.diff_id,
            index=self._store.put(bytes(index.raw)),
            table=self._store.put(bytes(table.raw)),
        )


def _hygiene(step: PlannedStep, outcome: Outcome, view: Observed, at: str) -> tuple[Remove, ...]:
    """No old code may run: what was compiled from a file that changes goes with it, and what
    would be imported in its place is an error."""
    written = [change.path for change in outcome.changes if not isinstance(change, Remove)]
    removed = [change.path for change in outcome.changes if isinstance(change, Remove)]
    refuse_shadows(written, view, removed=removed, at=at)
    stale = stale_bytecode([*written, *removed], view, prefixes=step.bytecode_prefixes)
    return tuple(Remove(path=path) for path in stale)


def _places(layer: Layer) -> dict[Digest, tuple[int, int]]:
    """Where in the tar each content is: our layers are not compressed, so they are their own
    pack."""
    offsets = dict(layer.offsets)
    return {
        entry.digest: (offsets[entry.path], entry.size)
        for entry in layer.entries
        if entry.digest is not None
    }


def base_view(base: Base | None, *, store: Store, progress: Progress) -> MergedView:
    """The base's tree. No layer is read before something is looked up."""
    if base is None:
        return MergedView(())
    return MergedView(base_layers(base, store=store, progress=progress))


def base_layers(base: Base, *, store: Store, progress: Progress) -> tuple[BaseLayer, ...]:
    """The base's layers, bottom first, unread."""
    files = base.files or (None,) * len(base.diff_ids)
    return tuple(
        BaseLayer(
            layer, diff_id, origin=base.origin, store=store, progress=progress, expected=expected
        )
        for layer, diff_id, expected in zip(base.manifest.layers, base.diff_ids, files, strict=True)
    )
