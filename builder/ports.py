"""The world as the flow sees it: small Protocols whose docstrings are the contract.

Implemented in ``builder.adapters``; fakes for the tests implement the same Protocols and pass the
same contract tests.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol

from builder.digest import Digest
from builder.oci import Descriptor, Index, Manifest
from builder.reference import Reference
from builder.upstream import FoundWheel
from builder.value import field, value


class BlobWriter(Protocol):
    """A blob on its way into the store. Nothing is visible before ``commit``."""

    def write(self, chunk: bytes | bytearray | memoryview) -> int:
        """Append; returns the count of bytes taken (all of them)."""

    def commit(self, expected: Digest | None = None, *, size: int | None = None) -> Digest:
        """Make the blob visible under its digest, durably, and return it.

        Raises:
            IntegrityError: It is not ``expected``, or not ``size`` bytes; nothing is kept.
        """


class Store(Protocol):
    """Everything this machine keeps: an OCI image layout with traces and file indexes beside.

    Blobs are immutable and named by content. Files appear whole or not at all, also after a kill
    or a crash; success means "it is there", not "we wrote it".
    """

    def has(self, digest: Digest, *, size: int | None = None) -> bool:
        """Whether the blob is there (by name and size; the bytes are checked when read)."""

    def read(self, digest: Digest, *, limit: int = ...) -> bytes:
        """The verified bytes.

        Raises:
            KeyError: No such blob.
            IntegrityError: It is there and is not what its name says, or is over ``limit``.
        """

    def open(self, digest: Digest) -> BinaryIO:
        """A stream over the blob that verifies: reading to the end raises IntegrityError where
        the bytes are not what the name says. Seekable (a seek forgoes the check).

        Raises:
            KeyError: No such blob.
        """

    def put(self, data: bytes) -> Digest:
        """Keep ``data``. Idempotent."""

    def writer(self) -> AbstractContextManager[BlobWriter]:
        """A writer for a blob of unknown size; leaving the block without ``commit`` drops it."""

    def note(self, kind: str, key: str) -> bytes | None:
        """A memo (trace, file index pointer, ...) or ``None``. ``kind`` and ``key`` are plain
        file names. Memos are claims, deletable at any time; what they name is checked on use."""

    def notes(self, kind: str) -> Iterator[str]:
        """The keys of one kind, sorted."""

    def take_note(self, kind: str, key: str, data: bytes) -> None:
        """Keep a memo, replacing an older one. The blobs it names must be there already."""

    def references(self) -> Mapping[str, Descriptor]:
        """Named manifests: the ``org.opencontainers.image.ref.name`` entries of index.json."""

    def set_reference(self, name: str, descriptor: Descriptor) -> None:
        """Point ``name`` at a manifest whose blob is there. The last, visible act of a build."""

    def lease(self) -> AbstractContextManager[None]:
        """Keep everything that is written until the end of the block from being collected. Held
        by whoever builds, from the first question to the last write; may be nested."""

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Exclude other processes (and threads) that take the same name."""


class Registry(Protocol):
    """An OCI distribution registry, and the rules of docker.io. All bytes are verified.

    Every method may raise GoneError (404 for what was pinned), AuthError, RateLimitError,
    NetworkError, OfflineError, and IntegrityError for bytes that are not what was asked for.
    """

    def resolve(self, reference: Reference) -> Descriptor:
        """What a tag or digest names now, by HEAD where the registry allows; no body is kept."""

    def tags(self, reference: Reference) -> tuple[str, ...]:
        """All tags of ``reference``'s repository, sorted, however many pages they come in. The
        registry itself is asked, no mirror."""

    def manifest(self, reference: Reference) -> Manifest | Index:
        """Fetch a manifest or index; with a digest in the reference the bytes are checked."""

    def tagged(self, reference: Reference) -> Manifest | Index | None:
        """What a tag names now, or ``None`` where there is no such tag (or repository). The
        registry itself is asked, no mirror: what is read so may be written again."""

    def referrers(
        self, reference: Reference, subject: Digest, *, artifact_type: str
    ) -> tuple[Descriptor, ...]:
        """The manifests in ``reference``'s repository that refer to ``subject``, from the registry
        itself; where it has no such question, those in the index under the tag that the
        distribution-spec sets aside for it. None at all is a result.

        Registries leave out what is of another ``artifact_type``, or do not: the caller looks.

        Raises:
            IntegrityError: The list is none, or too long to be looked at.
        """

    def blob(self, reference: Reference, descriptor: Descriptor) -> Iterator[bytes]:
        """Stream a blob of ``reference``'s repository, resuming where the connection broke.

        The digest and size are checked at the end: the iterator raises IntegrityError instead of
        ending normally. Nothing may be used before it has ended.
        """

    def blob_range(
        self, reference: Reference, descriptor: Descriptor, *, start: int, length: int
    ) -> bytes:
        """``length`` bytes of a blob from ``start``. Unverified: the caller checks what it uses."""

    def has_blob(self, reference: Reference, descriptor: Descriptor) -> bool:
        """Whether the repository holds the blob (HEAD)."""

    def mount(self, target: Reference, descriptor: Descriptor, *, source: Reference) -> bool:
        """Try a cross-repository mount from ``source``; ``True`` only when the registry says that
        it happened (201). A refused mount leaves no upload open."""

    def push_blob(self, target: Reference, descriptor: Descriptor, content: BinaryIO) -> bool:
        """Upload, in chunks where the blob is big. Idempotent: what is there is not sent again.
        Returns whether it was sent."""

    def push_manifest(self, target: Reference, manifest: Manifest | Index) -> bool:
        """Put a manifest under ``target``'s tag, or under its digest where there is no tag.
        Returns whether the registry says that it lists it among the referrers of its subject."""


@value
class GitFile:
    """One file of a commit's tree, read from the object database without any filter."""

    path: str
    mode: str
    """As in the tree: ``100644``, ``100755``, ``120000``."""
    data: bytes


@value
class GitEntry:
    """What a commit's tree has at a path."""

    mode: str
    """As in the tree: ``100644``, ``100755``, ``120000``, ``160000`` (a submodule), ``040000``."""
    id: str

    @property
    def is_directory(self) -> bool:
        return self.mode == "040000"


@value
class GitSubtree:
    """A directory of a commit. ``files`` have paths relative to it, sorted; ``tree`` is its id."""

    tree: str
    files: tuple[GitFile, ...] = field(repr=False)


class Git(Protocol):
    """Objects of remote repositories, by full object id, through a bare mirror in the store.

    Every method may raise GoneError (the remote answers and does not have the commit),
    NetworkError, OfflineError, and IntegrityError for an id that names something else.
    """

    def tree(self, repository: str, commit: str) -> str:
        """The tree id of a commit. The commit is fetched when it is not at hand.

        Raises:
            GoneError: The remote answers and does not have it.
            IntegrityError: The id names something that is not a commit.
        """

    def files(self, repository: str, commit: str, paths: tuple[str, ...]) -> tuple[GitFile, ...]:
        """The files at ``paths`` in that commit, in that order.

        Raises:
            GoneError: The commit is not to be had.
            IntegrityError: A path is missing, a directory, a submodule or an LFS pointer.
        """

    def subtree(self, repository: str, commit: str, path: str) -> "GitSubtree":
        """A directory of that commit with everything below it.

        Raises:
            GoneError: The commit is not to be had.
            IntegrityError: There is no directory at ``path``, or one of its files is a submodule
                or an LFS pointer.
        """

    def listing(self, repository: str, commit: str) -> Mapping[str, GitEntry]:
        """Everything in a commit by path, directories and submodules too, sorted by path.

        Raises:
            GoneError: The commit is not to be had.
            IntegrityError: It has more entries than any that is wanted.
        """

    def diff(self, repository: str, base: str, head: str) -> bytes:
        """The diff between two commits: full index, renames not detected, no external drivers, no
        configuration of the user's. The same bytes from every git."""


class Wheels(Protocol):
    """Where wheels come from."""

    def fetch(self, *, project: str, version: str, filename: str, digest: Digest) -> Path:
        """The wheel's file, its bytes verified. Kept by digest; asked for once.

        Raises:
            GoneError, NetworkError, OfflineError, IntegrityError.
        """

    def keep(self, chunks: Iterator[bytes], *, filename: str, digest: Digest) -> Path:
        """Take a wheel from elsewhere: the file as ``fetch`` would give it from now on.

        Raises:
            IntegrityError: It is not what ``digest`` names; nothing is kept.
        """

    def find(self, *, project: str, version: str | None, like: str | None) -> FoundWheel:
        """The wheel that pip would take now, without fetching it whole where the index allows.

        Args:
            version: Exactly this one; ``None`` for the newest that is no pre-release.
            like: The file name of a wheel for the same Python and platform; ``None`` for CPython
                3.12 on x86-64 Linux with glibc.

        Raises:
            GoneError: No index has such a wheel.
            AuthError, RateLimitError, NetworkError, OfflineError, EnvironmentFault.
        """

    def pack(self, path: str) -> bytes:
        """The wheel that is unpacked in the project's directory ``path``, the same bytes on every
        machine.

        Raises:
            ProjectError: It is no unpacked wheel, or not inside the project.
        """


class Engine(Protocol):
    """A local Docker Engine."""

    def has_image(self, image_id: Digest) -> bool:
        """Whether an image with this config digest is there."""

    def keeps_layers(self) -> bool:
        """Whether it takes layers that it has from its own store when an archive leaves them
        out."""

    def pull(self, reference: Reference) -> None:
        """Pull by digest."""

    def load(self, archive: Iterator[bytes], *, expected: Digest | None = None) -> None:
        """Load a docker-archive stream.

        Raises:
            IntegrityError: The engine made another image than ``expected`` of it.
            EnvironmentFault: It refuses, or is not there.
        """

    def tag(self, image_id: Digest, name: str) -> None:
        """Give an image that is there a name."""


class Progress(Protocol):
    """Who is told what takes time. Drawing is the command line's affair."""

    def task(self, title: str, *, total: int | None = None) -> AbstractContextManager["Task"]:
        """Announce work of ``total`` bytes (or of unknown size)."""


class Task(Protocol):
    """One piece of work under way."""

    def advance(self, count: int) -> None:
        """``count`` more bytes are done."""
