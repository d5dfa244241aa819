"""The blobs that the records of a store name: what ``gc`` keeps, and ``verify`` misses."""

from collections.abc import Iterator

from builder import notes
from builder.build_record.read import Record, RecordedBase, recorded
from builder.digest import Digest
from builder.errors import IntegrityError, ProjectError
from builder.oci import Manifest
from builder.ports import Store


def own_layers(store: Store) -> Iterator[Digest]:
    """The blobs that the steps of the store's images made: what must be there."""
    for record in _records(store):
        for step in record.steps:
            yield from step.output.blobs


def needed(store: Store) -> Iterator[Digest]:
    """Every blob that a build of the store's images would ask for again: what the steps made, the
    base's documents, and what is known of its layers."""
    yield from own_layers(store)
    for record in _records(store):
        if record.base is not None:
            yield from _base_blobs(record.base, store)


def _records(store: Store) -> Iterator[Record]:
    """The records of the store's images, as far as they can be read: half a memo is none."""
    for descriptor in store.references().values():
        try:
            record = recorded(descriptor.digest, store)
        except (ProjectError, IntegrityError):
            continue
        yield record


def _base_blobs(base: RecordedBase, store: Store) -> Iterator[Digest]:
    if base.index is not None:
        yield base.index
    yield base.manifest
    if not store.has(base.manifest):
        return
    manifest = Manifest.parse(store.read(base.manifest), at=f"manifest {base.manifest}")
    yield manifest.config.digest
    for layer in manifest.layers:
        if (note := store.note(notes.LAYER, layer.digest.hex)) is not None:
            yield from notes.blobs_of(note)
