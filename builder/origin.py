"""Where pinned bytes come from: the place that the lock follows, and our own copies behind it.

A copy is asked only where the place before it answers that the bytes are *gone*, or where
``--offline`` forbids to ask it: then a layout on this disk has them, or nobody. Where it does not
answer, wants credentials or has had enough of us, that is said, and nothing stands in for it: what
is there may be had again in a minute, and a build does not depend on how the network feels.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Protocol, TypeAlias, TypeVar

from builder.digest import Digest
from builder.errors import (
    AbsentMirrorError,
    BuilderError,
    GoneError,
    NetworkError,
    OfflineError,
    ProjectError,
)
from builder.lock.model import Escrow
from builder.oci import Descriptor
from builder.ports import Registry
from builder.reference import Reference
from builder.value import value

_log = logging.getLogger(__name__)

T = TypeVar("T")

Absent: TypeAlias = GoneError | OfflineError
"""Why a copy is asked."""


class Origin(Protocol):
    """Where documents and blobs come from."""

    def document(self, digest: Digest) -> bytes:
        """An index or manifest by digest, verified."""

    def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
        """A blob as a stream, verified at its end (see ``Registry.blob``)."""


@value(kw_only=False)
class RegistryOrigin:
    """A repository of a registry. ``registry`` is called when something is really fetched, so
    that a build that fetches nothing does not load a client."""

    registry: Callable[[], Registry]
    reference: Reference

    def document(self, digest: Digest) -> bytes:
        return self.registry().manifest(self.reference.at(digest)).raw

    def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
        return self.registry().blob(self.reference, descriptor)


OpenCopy: TypeAlias = Callable[[Escrow], Origin]
"""Opens a place of ours. Raises ProjectError where a layout is not there."""


def opener(
    root: Path, *, registry: Callable[[], Registry], open_layout: Callable[[Path], Origin]
) -> OpenCopy:
    """Opens the places that a lock of the project in ``root`` names."""

    def open_copy(copy: Escrow) -> Origin:
        if copy.registry is not None:
            return RegistryOrigin(registry, copy.registry)
        return open_layout(root / str(copy.layout))

    return open_copy


def place_of(copy: Escrow) -> str:
    """A place of ours as people name it: what ``builder escrow --to`` takes."""
    return f"oci:{copy.layout}" if copy.registry is None else copy.registry.name


def places_of(copies: Sequence[Escrow]) -> str:
    """All places, each once."""
    return ", ".join(dict.fromkeys(map(place_of, copies)))


def with_copies(hint: str | None, copies: Sequence[Escrow]) -> str | None:
    """The hint of an error that is no reason to go to a copy, which names those that there are."""
    if not copies:
        return hint
    kept = f"there is a copy at {places_of(copies)}, which is asked where upstream says 'gone'"
    return f"{hint}; {kept}" if hint else kept


def reason(error: Absent | AbsentMirrorError, copies: Sequence[Escrow]) -> Absent:
    """Why ``copies`` are asked. That a mirror on this machine is absent is a reason with
    ``--offline`` alone: otherwise it is a mistake in builder.yaml, and the copies are its hint.

    Raises:
        GoneError, OfflineError, AbsentMirrorError: ``error``, where there is no copy, or none is
            asked.
    """
    if not copies:
        raise error
    if not isinstance(error, AbsentMirrorError):
        return error
    if error.offline:
        return OfflineError(error.message, hint=error.hint)
    kept = f"there is a copy at {places_of(copies)}"
    taken = "" if all(copy.layout is None for copy in copies) else ", which --offline takes"
    raise AbsentMirrorError(error.message, hint=f"{error.hint}; {kept}{taken}") from error


class Copies:
    """The places of ours where one pin is kept, in the order of the lock.

    Args:
        copies: From the lock.
        open_copy: Opens one.
        at: The pin, for messages.
    """

    def __init__(self, copies: Sequence[Escrow], *, open_copy: OpenCopy, at: str) -> None:
        self.copies = tuple(copies)
        self.open_copy = open_copy
        self._at = at
        self._told: set[str] = set()
        self._lock = Lock()

    def instead(self, absent: Absent, question: Callable[[Escrow, Origin], T]) -> T:
        """The answer of the first copy that has one, where the origin gave ``absent``. That a copy
        is used is told, once for each.

        Raises:
            GoneError: No copy has it, either.
            NetworkError: None has it, and one of them, or the origin, could not be asked.
            IntegrityError: A copy is not what it must be: the next one is not asked.
        """
        said: list[str] = []
        unasked: NetworkError | None = None
        for copy in self.copies:
            try:
                answer = question(copy, self.open_copy(copy))
            except (GoneError, ProjectError, NetworkError) as error:
                said.append(f"the copy at {place_of(copy)}: {error.message}")
                unasked = unasked or (error if isinstance(error, NetworkError) else None)
            else:
                self._tell(absent, copy)
                return answer
        raise _none(absent, unasked, said, self.copies) from absent

    def _tell(self, absent: Absent, copy: Escrow) -> None:
        place = place_of(copy)
        with self._lock:  # layers are read by several threads
            if place in self._told:
                return
            self._told.add(place)
        why = "offline" if isinstance(absent, OfflineError) else "gone"
        _log.warning("%s: %s: %s; using the copy at %s", self._at, why, absent.message, place)


def offline_hint(hint: str | None, copies: Sequence[Escrow]) -> str:
    """The hint of an error that the network is forbidden and no layout stands in for it."""
    asked = hint or OfflineError.usual_hint
    layouts = [copy for copy in copies if copy.layout is not None]
    if not layouts:
        return f"{asked}; builder escrow V --to oci:DIR keeps what --offline takes"
    return f"{asked}; or put {places_of(layouts)} back: the lock says that a copy is there"


def _none(
    absent: Absent, unasked: NetworkError | None, said: Sequence[str], copies: Sequence[Escrow]
) -> BuilderError:
    if isinstance(absent, OfflineError):
        if not said:
            return absent
        hint = offline_hint(absent.hint, copies)
        return OfflineError(f"{absent.message}, and {'; '.join(said)}", hint=hint)
    if unasked is not None:
        message = f"{absent.message}, and {'; '.join(said)}"
        return type(unasked)(message, hint=unasked.hint)
    return GoneError(absent.message, hint="; ".join(said) or absent.hint)


class KeptOrigin:
    """An origin with the copies of what it has: :class:`Origin`, by digest, so that the same bytes
    come from each. ``copies`` hold it exactly; who holds something else under other digests is not
    noticed here."""

    def __init__(self, origin: Origin, copies: Copies) -> None:
        self._origin = origin
        self._copies = copies

    def document(self, digest: Digest) -> bytes:
        try:
            return self._origin.document(digest)
        except (GoneError, OfflineError) as absent:
            return self._copies.instead(absent, lambda _, copy: copy.document(digest))

    def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
        try:
            first, rest = begun(self._origin, descriptor)
        except (GoneError, OfflineError) as absent:
            first, rest = self._copies.instead(absent, lambda _, copy: begun(copy, descriptor))
        yield first
        try:
            yield from rest
        except GoneError as gone:  # its reader has had a part of it
            raise GoneError(
                gone.message, hint="it went away while it was read; run it again"
            ) from gone


def begun(origin: Origin, descriptor: Descriptor) -> tuple[bytes, Iterator[bytes]]:
    """A blob whose first bytes have come: whether there is one at all, is known only then."""
    chunks = origin.blob(descriptor)
    return next(chunks, b""), chunks
