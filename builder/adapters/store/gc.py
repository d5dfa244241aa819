"""Take away what nothing needs any more."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass

from builder import durable
from builder.adapters.store import disk
from builder.adapters.store.layout import FileStore
from builder.adapters.store.walk import Roots, blobs, entries, leftovers, notes, walk
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.notes import blobs_of

_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a ``gc`` took away, or would take: blobs, memos and leftovers as paths below the
    store."""

    blobs: tuple[Digest, ...]
    size: int
    notes: tuple[str, ...]
    leftovers: tuple[str, ...]
    kept: int
    """How many blobs stay."""


def gc(
    store: FileStore,
    *,
    reachable: Roots | None = None,
    keep_days: float = 0,
    dry_run: bool = False,
) -> Collected:
    """Remove blobs that neither index.json nor ``reachable`` leads to.

    It waits for the builds under way and keeps new ones waiting (see ``FileStore.lease``); hence
    whatever is in ``tmp/`` by then belongs to nobody and goes too. Blobs written in the last
    ``keep_days`` stay. Memos that name a blob which is not there afterwards go before the blobs,
    so that a kill at any time leaves memos that are true. A dry run waits for nobody.

    Args:
        store: The store. The caller holds no lease of it.
        reachable: More blobs to keep; asked while nobody writes. It must only read.
        keep_days: By the clock of the machine, against the time of the file.
        dry_run: Say it and leave it.

    Raises:
        IntegrityError: index.json or a manifest that it names is missing or corrupt. What hangs on
            it cannot be known, and nothing is removed.
    """
    if dry_run or not store.paths.exists:
        return _plan(store, reachable=reachable, keep_days=keep_days)
    with store.guards.alone():
        plan = _plan(store, reachable=reachable, keep_days=keep_days)
        with disk.faults(store.paths.at):
            _remove(store, plan)
    return plan


def _plan(store: FileStore, *, reachable: Roots | None, keep_days: float) -> Collected:
    live = _marked(store)
    live.update(reachable() if reachable is not None else ())
    since = time.time() - keep_days * _DAY
    doomed: list[Digest] = []
    there: set[Digest] = set()
    size = 0
    for file in blobs(store):
        if file.digest is None or not file.regular:
            continue  # not ours to judge: `verify` tells
        if file.digest in live or (keep_days > 0 and file.written > since):
            there.add(file.digest)
        else:
            doomed.append(file.digest)
            size += file.size
    return Collected(
        blobs=tuple(doomed),
        size=size,
        notes=tuple(
            f"notes/{note.kind}/{note.key}"
            for note in notes(store)
            if not there.issuperset(blobs_of(note.data))
        ),
        leftovers=leftovers(store),
        kept=len(there),
    )


def _marked(store: FileStore) -> set[Digest]:
    live: set[Digest] = set()
    for name, descriptor in entries(store):
        at = f"{store.named.at}: {name or descriptor.digest}"
        for node in walk(store, descriptor, at=at):
            if node.root and not node.present:
                raise IntegrityError(
                    f"{node.at}: {node.role} {descriptor.digest} is missing: nothing is removed",
                    hint="build it again, or drop the name",
                )
            live.add(node.descriptor.digest)
    return live


def _remove(store: FileStore, plan: Collected) -> None:
    for path in plan.notes:
        _unlink(f"{store.paths.real}/{path}")
    for directory in sorted({os.path.dirname(path) for path in plan.notes}):
        durable.sync_directory(f"{store.paths.real}/{directory}")
    for digest in plan.blobs:
        _unlink(store.paths.blob(digest))
    for path in plan.leftovers:
        _unlink(f"{store.paths.real}/{path}")
    # Every lock is held under a lease, so that nobody has or awaits one of these now.
    for name in os.listdir(store.paths.locks):
        _unlink(f"{store.paths.locks}/{name}")


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError, IsADirectoryError):
        os.unlink(path)
