"""The files of a pin out of a copy of ours, where the place that it follows says that they are
gone, or may not be asked.

Bases are images and are read as such (:mod:`builder.pinned_base`); everything else is kept as an
:mod:`builder.artifact`. What comes out is held to the lock by whoever asks, as if it came from
upstream.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from builder import artifact
from builder.artifact import Kind
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.lock.model import Escrow, GenesisPin, PullPin, SourcePin, WheelPin
from builder.oci import Descriptor
from builder.origin import Absent, Copies, OpenCopy, Origin, begun, place_of
from builder.ports import GitSubtree

FilePin: TypeAlias = PullPin | SourcePin | WheelPin | GenesisPin
"""The pins that are kept as artifacts."""
LIMIT = 64 << 20
"""The most bytes of a file that is taken into memory."""

_KINDS: dict[type, Kind] = {
    PullPin: Kind.PULL,
    SourcePin: Kind.SOURCE,
    WheelPin: Kind.WHEEL,
    GenesisPin: Kind.PATCH_SET,
}


class PinCopies:
    """The copies of one pin, which ``absent`` sends us to.

    Raises:
        GoneError: From every method: no copy has it. NetworkError: one could not be asked.
        IntegrityError: An artifact, or a file of it, is not what it must be.
    """

    def __init__(self, pin: FilePin, absent: Absent, *, open_copy: OpenCopy) -> None:
        self._kind = _KINDS[type(pin)]
        self._absent = absent
        self._copies = Copies(pin.escrow, open_copy=open_copy, at=pin.at)

    def stream(self, digest: Digest) -> Iterator[bytes]:
        """The file with this digest, verified at its end."""
        first, rest = self._copies.instead(
            self._absent,
            lambda copy, origin: begun(
                origin, self._file(copy, origin, lambda item: item.digest == digest, str(digest))
            ),
        )
        yield first
        yield from rest

    def read(self, digest: Digest) -> bytes:
        """The file with this digest."""
        return self._read(lambda item: item.digest == digest, str(digest))

    def only(self) -> bytes:
        """The one file of an artifact."""
        return self._read(lambda _: True, "file")

    def subtree(self, title: str) -> GitSubtree:
        """The directory of a patch set that is kept under ``title``. Its id is for the caller to
        compare: it is not given."""
        from builder.git_tree import unpack  # noqa: PLC0415 - few variants have a patch set

        files = unpack(self._read(lambda item: artifact.title_of(item) == title, repr(title)))
        return GitSubtree(tree="", files=files)

    def _read(self, wanted: Callable[[Descriptor], bool], what: str) -> bytes:
        def whole(copy: Escrow, origin: Origin) -> bytes:
            found = self._file(copy, origin, wanted, what)
            if found.size > LIMIT:
                raise IntegrityError(
                    f"{place_of(copy)}: {found.digest}: {found.size} bytes, the limit is {LIMIT}"
                )
            return b"".join(origin.blob(found))

        return self._copies.instead(self._absent, whole)

    def _file(
        self, copy: Escrow, origin: Origin, wanted: Callable[[Descriptor], bool], what: str
    ) -> Descriptor:
        at = f"{place_of(copy)}: artifact {copy.digest}"
        files = artifact.files_of(origin.document(copy.digest), self._kind, at=at)
        found = next(filter(wanted, files), None)
        if found is None:
            raise GoneError(f"{at}: keeps no {what}", hint="it was kept for another pin")
        return found
