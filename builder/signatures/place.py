"""Where signatures are kept."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Descriptor, Index, Manifest
from builder.sigstore import carriers
from builder.sigstore.listing import Form
from builder.value import field, value

COUNT_LIMIT = 100
"""How many signatures of an image are looked at, in each of the places that hold them."""
BLOB_LIMIT = 16 << 20
"""The most bytes that one of them may have."""
TOTAL_LIMIT = 64 << 20
"""The most bytes that are read of all that lie in one of the places."""
_HINT = "somebody attached them: delete what you do not know, and look at who may push there"


class FloodError(IntegrityError):
    """There is more attached to an image than anybody looks at."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint=_HINT)


@value
class Listed:
    """Entries to be in a list under a tag, whoever else adds to it, with their contents."""

    tag: str
    form: Form
    entries: tuple[Descriptor, ...]
    blobs: tuple[bytes, ...] = field(repr=False)


@value
class Referring:
    """A manifest with a subject, to be found by it, with the contents of its config and layers."""

    manifest: Manifest
    blobs: tuple[bytes, ...] = field(repr=False)

    @property
    def listed(self) -> Listed:
        """It as an entry of the list that stands in where a place keeps none by itself."""
        subject = self.manifest.subject
        if subject is None:
            raise ValueError(f"{self.manifest.digest} does not refer to anything")
        return Listed(
            tag=carriers.referrers_tag(subject.digest),
            form=Form.MEMBERS,
            entries=(carriers.referrer(self.manifest),),
            blobs=(),
        )


Addition: TypeAlias = Listed | Referring


class Place(Protocol):
    """A repository of a registry, or a layout, that holds images and what is attached to them.

    Every method may raise what its kind of place does: NetworkError and its kind, EnvironmentFault;
    IntegrityError for bytes that are not what they were asked for as. May be shared by threads.
    """

    def at(self, name: object) -> str:
        """A tag or a digest in this place, as messages call it."""

    def tagged(self, tag: str) -> Manifest | Index | None:
        """What is under a tag now, ``None`` where there is nothing. No mirror is asked."""

    def manifest(self, digest: Digest) -> Manifest | Index:
        """The verified document.

        Raises:
            GoneError: It is not there.
        """

    def blob(self, descriptor: Descriptor) -> bytes:
        """The verified content, all of it: the caller has looked at its size.

        Raises:
            GoneError: It is not there.
        """

    def referrers(self, subject: Digest, artifact_type: str) -> tuple[Descriptor, ...]:
        """The manifests that say of themselves that they refer to ``subject``, and are of that
        type or of one that the list does not tell. Nothing is verified but the list's form.

        Raises:
            FloodError: There is no end of them.
        """

    def add(self, additions: Sequence[Addition]) -> None:
        """Have all of it there, and nothing of others lost that was there or came meanwhile.

        Success means that it was read back. What is there already is left alone. Contents come
        first, then manifests, then lists, so that a failure leaves nothing visible in part, and
        doing it again completes it.

        Raises:
            NetworkError: Others wrote at the same time, again and again, and something of ours was
                not there in the end.
        """
