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
    """One commit."""

    id: str
    time: int
    """Its committer's, in seconds since 1970 (UTC)."""
    subject: str
    """The first paragraph of its message, on one line, as git has it; no control characters."""
    parents: tuple[str, ...] = ()


@value
class Distance:
    """How two commits are apart: those of the new one's history that the old one's lacks, newest
    first (``ahead``), and the other way round (``behind``, empty where the old one is an ancestor).
    """

    ahead: tuple[Commit, ...]
    behind: tuple[Commit, ...]
    complete: bool = True
    """Whether these are all; else the newest of both."""


class History(Protocol):
    """Refs and commits of remote repositories, without their files.

    Every method may raise GoneError (the remote answers and does not have it), AuthError,
    NetworkError, OfflineError.
    """

    def refs(self, repository: str) -> Mapping[str, str]:
        """The commit that each branch, tag and pull request names, by full ref name; ``HEAD`` has
        that of the default branch. An annotated tag counts as what is behind it, which remotes do
        not say to be a commit: :meth:`commit` does. Names that cannot be written down (control
        characters, not UTF-8) are left out. Asked once in a run."""

    def default_branch(self, repository: str) -> str:
        """The full name of the branch that ``HEAD`` stands for.

        Raises:
            GoneError: There is none, or the remote does not say which.
        """

    def reachable(self, repository: str, commit: str) -> tuple[str, ...]:
        """The refs whose history has ``commit``, sorted by name; not ``HEAD``. Empty for a commit
        that the remote hands out by id and that no ref of it leads to (that of a fork, say)."""

    def commit(self, repository: str, commit: str) -> Commit:
        """One commit.

        Raises:
            IntegrityError: The id names a tag object, a tree, a file.
        """

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


@value
class Start:
    """The branch that proposals are for: its short name, and the commit at the remote."""

    branch: str
    commit: str


@value
class Tip:
    """The commit that a branch of the remote ends with."""

    commit: str
    tree: str
    parents: tuple[str, ...]
    message: str


class Branches(Protocol):
    """Branches of the repository that a project stands in, at the remote that it is pushed to.

    The working tree, the index and the branches of the local repository stay as they are. Paths are
    relative to the project. Every method may raise AuthError, NetworkError, EnvironmentFault.
    """

    def start(self, branch: str | None) -> Start:
        """The base for proposals; ``None`` for the branch that HEAD is on.

        Raises:
            UsageError: HEAD is on none.
            ProjectError: The remote has no such branch; its commit is not at hand; the project's
                recipes and locks are not what that commit has.
        """

    def tip(self, branch: str) -> Tip | None:
        """What a branch ends with at the remote; ``None`` where there is none."""

    def read(self, commit: str, file: str) -> bytes | None:
        """A file of a commit that :meth:`start` or :meth:`tip` gave, or ``None``."""

    def tree(self, commit: str, files: Mapping[str, bytes]) -> str:
        """The id of the commit's tree with these files in it.

        Raises:
            ProjectError: One of them is a link or a directory there.
        """

    def commit(self, tree: str, parent: str, message: str) -> str:
        """Make a commit, which nothing names yet."""

    def push(self, branch: str, commit: str, *, expected: str | None) -> None:
        """Point a branch of the remote at a commit, if it still ends with ``expected`` (``None``:
        if it is not there).

        Raises:
            ProjectError: It ends with something else by now.
        """


@value
class Proposal:
    """A pull request of ours. ``state`` says what became of it: ``opened``, ``updated``,
    ``unchanged``; ``closed`` where a person has closed it without merging, which is left so."""

    url: str
    state: str


class Proposals(Protocol):
    """The pull requests of a repository that we may open."""

    def open_or_update(self, *, head: str, base: str, title: str, body: str) -> Proposal:
        """Have one open pull request from branch ``head``, with this title and body. One that a
        person closed under this very title is not opened again.

        Raises:
            AuthError, RateLimitError, NetworkError, GoneError, OfflineError.
            ProjectError: The host refuses it for what it says.
        """
