"""Models on a disk against the lock: every file in full, and nothing beside them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from io import FileIO
from typing import TYPE_CHECKING

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.lock.model import ModelFile, ModelPin
from builder.models.hashing import Crew, at_once
from builder.models.mounted import silent_devices
from builder.models.place import Identity, Place
from builder.models.remembered import Remembered
from builder.models.tensors import judge, question
from builder.ports import Progress, Store
from builder.tree import parents
from builder.value import value

if TYPE_CHECKING:
    from builder.models.signature import Held  # at run time that costs as much as all the rest


class State(StrEnum):
    """What a file is, compared with the lock."""

    OK = "ok"
    MISSING = "missing"
    EXTRA = "extra"
    SHORT = "short"
    WRONG = "wrong"
    UNHASHED = "unhashed"


@value
class CheckedFile:
    """One file. ``detail`` says more than the state does, for people."""

    path: str
    state: State
    size: int = 0
    detail: str = ""
    identity: Identity | None = None
    digest: Digest | None = None
    hashed: int = 0
    """How many bytes were read for it: none where its digest was remembered."""


@value
class Verified:
    """What came of one model. ``tensors`` are findings about the files as a whole, ``signatures``
    what people signed of them, where it was asked for."""

    pin: ModelPin
    place: Place
    files: tuple[CheckedFile, ...]
    tensors: tuple[str, ...]
    signatures: "tuple[Held, ...]" = ()

    @property
    def hashed(self) -> int:
        """How many bytes were read."""
        return sum(file.hashed for file in self.files)

    @property
    def size(self) -> int:
        """How many bytes are locked; of files whose size is not, how many are there."""
        there = {file.path: file.size for file in self.files}
        return sum(
            there.get(file.path, 0) if file.size is None else file.size for file in self.pin.files
        )

    @property
    def counts(self) -> Mapping[State, int]:
        """How many files are in each state, in the order of :class:`State`."""
        counted = Counter(file.state for file in self.files)
        return {state: counted[state] for state in State}

    @property
    def ok(self) -> bool:
        """Whether every locked file is what it was, and no other is there."""
        signed = all(held.ok for held in self.signatures)
        return signed and not self.tensors and all(file.state is State.OK for file in self.files)


def verify(
    models: Sequence[tuple[ModelPin, Place]],
    *,
    store: Store,
    progress: Progress,
    clock: Callable[[], int],
    threads: int,
    full: bool = False,
) -> tuple[Verified, ...]:
    """Compare models on a disk with their pins. Nothing there is changed.

    Args:
        models: Each with where it is.
        clock: Nanoseconds since 1970.
        threads: How many files are hashed at once.
        full: Hash also what was hashed before and has not changed since.
    """
    now = clock()
    silent = silent_devices()
    memos = [Remembered(store, place.directory, silent=silent) for _, place in models]
    work = [(number, file) for number, (pin, _) in enumerate(models) for file in pin.files]
    work.sort(key=lambda item: -(item[1].size or 0))  # the largest first: threads end together

    def check(crew: Crew, item: tuple[int, ModelFile]) -> CheckedFile:
        number, file = item
        return _check(file, models[number][1], crew=crew, memo=None if full else memos[number])

    total = sum(file.size or 0 for _, file in work)
    found: list[list[CheckedFile]] = [[] for _ in models]
    with (
        progress.task("verify models", total=total) as task,
        at_once(check, work, task=task, threads=threads) as results,
    ):
        for (number, _), checked in zip(work, results, strict=True):
            found[number].append(checked)
    return tuple(
        _verified(pin, place, found[number], memos[number], now=now)
        for number, (pin, place) in enumerate(models)
    )


def _check(file: ModelFile, place: Place, *, crew: Crew, memo: Remembered | None) -> CheckedFile:
    """What one locked file is."""
    try:
        real = place.find(file.path)
        if real is None:
            return CheckedFile(path=file.path, state=State.MISSING)
        with place.open(real) as (stream, identity):
            return _judged(file, stream, identity, crew=crew, memo=memo)
    except IntegrityError as error:
        detail = error.message
    except OSError as error:
        detail = f"cannot be read: {error.strerror}"
    return CheckedFile(path=file.path, state=State.WRONG, detail=detail)


def _judged(
    file: ModelFile, stream: FileIO, identity: Identity, *, crew: Crew, memo: Remembered | None
) -> CheckedFile:
    size = identity.size
    if file.size is not None and size != file.size:
        state = State.SHORT if size < file.size else State.WRONG
        detail = f"{size} bytes, wanted {file.size}"
        return CheckedFile(path=file.path, state=state, size=size, detail=detail)
    if file.digest is None:
        detail = "the lock has no digest of it"
        return CheckedFile(path=file.path, state=State.UNHASHED, size=size, detail=detail)
    known = memo.digest(identity) if memo is not None else None
    digest = known or crew.digest(stream)
    good = digest == file.digest
    return CheckedFile(
        path=file.path,
        state=State.OK if good else State.WRONG,
        size=size,
        detail="" if good else f"expected {file.digest}, got {digest}",
        identity=identity,
        digest=digest,
        hashed=0 if known else size,
    )


def _verified(
    pin: ModelPin, place: Place, checked: Sequence[CheckedFile], memo: Remembered, *, now: int
) -> Verified:
    locked = {file.path for file in pin.files}
    above = {one for path in locked for one in parents(path)}  # each may be a link, too
    extra = [
        CheckedFile(path=_legible(path), state=State.EXTRA)
        for path in place.paths(through=above)
        if path not in locked
    ]
    good = {file.path for file in checked if file.state is State.OK}
    damaged = {f.path for f in checked if f.state not in (State.OK, State.MISSING)}
    asked = question(pin)
    whole = len(good) == len(locked)
    tensors = () if whole and memo.judged(asked) else judge(pin, place, good, damaged=damaged)
    memo.keep(
        [(file.identity, file.digest) for file in checked if file.identity and file.digest],
        judged=asked if whole and not tensors else None,
        now=now,
    )
    return Verified(
        pin=pin,
        place=place,
        files=tuple(sorted((*checked, *extra), key=lambda file: file.path)),
        tensors=tensors,
    )


def _legible(path: str) -> str:
    """A name that anybody may have given to a file, as text on one line."""
    return path if path.isprintable() else ascii(path)[1:-1]
