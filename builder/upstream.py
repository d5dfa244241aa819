"""What moves: the world as whoever looks for newer pins sees it.

A build never asks any of this; it goes by content alone. Implemented in ``builder.adapters``, like
the Protocols of :mod:`builder.ports`. Commits are full object ids, refs full names
(``refs/heads/main``, ``refs/tags/v1``, ``refs/pull/25/head``).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from builder.digest import Digest, ObjectId
from builder.value import value


@value
class Commit:
    """One commit: its id, its committer's time in seconds since 1970 (UTC), its first line."""

    id: str
    time: int
    subject: str


@value
class Distance:
    """How two commits are apart: those of the new one's history that the old one's lacks, newest
    first (``ahead``), and the other way round (``behind``, empty where the old one is an ancestor).
    """

    ahead: tuple[Commit, ...]
    behind: tuple[Commit, ...]


class History(Protocol):
    """Refs and commits of remote repositories, without their files.

    Every method may raise GoneError (the remote answers and does not have it), AuthError,
    NetworkError, OfflineError.
    """

    def refs(self, repository: str) -> Mapping[str, str]:
        """The commit that each branch, tag and pull request names, by full ref name; ``HEAD`` has
        that of the default branch. An annotated tag counts as the commit behind it; a tag of
        something else is left out. Asked once in a run."""

    def default_branch(self, repository: str) -> str:
        """The full name of the branch that ``HEAD`` stands for."""

    def reachable(self, repository: str, commit: str) -> tuple[str, ...]:
        """The refs whose history has ``commit``, sorted by name. Empty for a commit that the remote
        hands out by id and that no ref of it leads to (that of a fork's pull request, say)."""

    def commit(self, repository: str, commit: str) -> Commit:
        """One commit."""

    def merge_base(self, repository: str, one: str, other: str) -> str | None:
        """The best common ancestor, as ``git merge-base`` has it; ``None`` where the histories have
        nothing in common."""

    def distance(self, repository: str, old: str, new: str) -> Distance:
        """See :class:`Distance`."""

    def is_ancestor(self, repository: str, ancestor: str, commit: str) -> bool:
        """Whether ``ancestor`` is in the history of ``commit`` (or is it)."""


@value
class PullFacts:
    """What a git host says about a pull request beyond what git itself has."""

    title: str
    state: str
    """``open``, ``closed`` or ``merged``."""
    base_ref: str
    """The branch that it is for, by its short name: ``main``."""
    head: str
    merge_commit: str | None = None
    """The commit that brought it in, for one that is merged."""


class Forge(Protocol):
    """The API of a git host."""

    def pull(self, repository: str, number: int) -> PullFacts | None:
        """About a pull request; ``None`` where nobody knows an API for the repository's host.

        Raises:
            GoneError: The host answers, and has no such pull request.
            AuthError, RateLimitError, NetworkError, OfflineError.
        """


@value
class FoundWheel:
    """A wheel as an index offers it. ``size`` is ``None`` where the index does not say."""

    filename: str
    version: str
    digest: Digest
    size: int | None = None


@value
class HubRevision:
    """What a revision of a model stands for now. ``repository`` is what the hub itself calls the
    model: another name than the one asked for where it was renamed."""

    repository: str
    commit: str


@value
class HubFile:
    """One file of a model's commit. ``digest`` is the sha256 of its content where the hub knows it
    (LFS and xet objects). ``blob`` is the id of the git blob, which is no digest of content: that
    of the file itself where ``digest`` is ``None``, otherwise that of a pointer."""

    path: str
    size: int
    blob: ObjectId
    digest: Digest | None = None


@value
class WantedFile:
    """A file of a model that is to be downloaded: its path at the hub, what it must be, where it
    goes, and where it is kept while it is not whole (on the same file system)."""

    path: str
    digest: Digest
    size: int
    target: Path
    part: Path


class Hub(Protocol):
    """A hub of models (the API of huggingface.co).

    Every method may raise GoneError, AuthError (also for a gated model), RateLimitError,
    NetworkError, OfflineError, and IntegrityError for answers that contradict themselves.
    """

    def revision(self, repository: str, revision: str) -> HubRevision:
        """What a branch, tag or commit id of ``owner/name`` stands for now.

        Raises:
            ProjectError: ``repository`` is not of the form ``owner/name``.
        """

    def files(self, repository: str, commit: str) -> tuple[HubFile, ...]:
        """All files of a commit, sorted by path, each path checked to be one."""

    def read(self, repository: str, commit: str, path: str, *, limit: int) -> bytes:
        """A small file's bytes, as they came: whoever asks compares them with the listing.

        Raises:
            IntegrityError: It is over ``limit`` bytes.
        """

    def alone_in(self, directory: Path) -> AbstractContextManager[None]:
        """Be the only one on this machine who downloads into a directory. Who comes second waits,
        and finds there what the first one brought. The directory is made where there is none."""

    def download(
        self, repository: str, commit: str, file: WantedFile, advance: Callable[[int], None]
    ) -> None:
        """Bring a file to its place, where it appears whole and verified, instead of whatever is
        there. What an interrupted call left is gone on with.

        Args:
            advance: Told of bytes as they come, and of those that were here already. What it
                raises ends the download.

        Raises:
            IntegrityError: The bytes are not those of the digest. Nothing is placed, and none of
                them is kept.
        """
