"""Bare repositories of ours below one directory: made, locked, filled, swept.

What both ports over git need: :mod:`builder.adapters.git` keeps whole commits in them,
:mod:`builder.adapters.git_history` commits without their files.
"""

import fcntl
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from builder.adapters.git_process import Answer, GitProcess, fault, refused
from builder.adapters.git_source import Kind, Source, find
from builder.digest import Digest
from builder.errors import (
    BuilderError,
    EnvironmentFault,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
)

HAVE = "refs/builder/commits/"
"""A ref below here is written last: all that is kept of the commit it names is here."""

_NOWHERE = "refs/builder/none"
"""Where HEAD points. It never exists: git 2.43 to 2.45 read attributes of bare repositories from
HEAD's tree, and attributes change diffs."""

FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
    *("--no-recurse-submodules", "--no-show-forced-updates"),
)

_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class BareRepositories:
    """Bare repositories below ``root``, shared between processes.

    Args:
        root: It can be deleted at any time between builds.
        mirrors: Replacements by URL prefix; see :func:`builder.adapters.git_source.find`.
        offline: Whether to use only what is at hand: what is below ``root``, and local paths.
        what: The part of their names that says what they keep, with a dot before it.
        settings: What stands in the configuration of each, behind what git writes there.
    """

    def __init__(
        self,
        root: Path,
        *,
        mirrors: Mapping[str, str],
        offline: bool,
        what: str = "",
        settings: str = "",
    ) -> None:
        self._root = root
        self._mirrors = dict(mirrors)
        self._offline = offline
        self._what = what
        self._settings = settings
        self.git = GitProcess(root / "home")

    def path(self, repository: str, commit: str) -> Path:
        """Where objects of ``repository`` are kept that are named as ``commit`` is."""
        if not _FULL_ID.fullmatch(commit):
            raise RuntimeError(f"not a full object id: {commit!r}")
        form = "sha1" if len(commit) == 40 else "sha256"
        return self._root / f"{Digest.of(repository.encode()).hex}.{form}{self._what}.git"

    def source(self, repository: str, what: str) -> Source:
        """Where ``what`` of a repository is to be had.

        Raises:
            OfflineError: On another machine.
            ProjectError: See :func:`builder.adapters.git_source.find`.
        """
        source = find(repository, self._mirrors, offline=self._offline)
        if self._offline and not source.local:
            raise OfflineError(
                f"{repository}: no {what} at hand, and --offline is set",
                hint="run once without --offline, or configure a local mirror",
            )
        return source

    def has(self, bare: Path, commit: str) -> bool:
        """Whether the commit was noted as being here (:data:`HAVE`)."""
        return (
            bare.is_dir()
            and self.git.run(bare, "rev-parse", "--verify", "--quiet", HAVE + commit).ok
        )

    def note(self, bare: Path, commit: str) -> bool:
        """Note that the commit is here."""
        return self.git.run(bare, "update-ref", HAVE + commit, commit).ok

    def fetched(
        self,
        bare: Path,
        source: Source,
        arguments: Sequence[str],
        *,
        at: str,
        lock: int,
        stdin: bytes | None = None,
    ) -> bool:
        """Fetch; ``False`` where the remote answers and does not hand out what was asked for.

        Args:
            bare: The repository to fetch into.
            source: The one to fetch from; it can be called ``origin``.
            arguments: What ``git fetch`` takes after the options that are always given.
            at: What is fetched, for messages.
            lock: The descriptor of the lock.
            stdin: What git reads.
        """
        named = ("-c", f"remote.origin.url={source.location}")
        answer = self.git.run(
            bare, *named, *FETCH, *arguments, stdin=stdin, protocols=source.protocols, keep=lock
        )
        if answer.ok:
            return True
        if not refused(answer) and fault(answer, at=at) is not None:
            raise unread(answer, source, at=at)
        # Also words that we do not know: if the remote answers at all, it was a refusal.
        self.ask(bare, source, at=at)
        return False

    def ask(self, bare: Path, source: Source, *, at: str) -> bytes:
        """What ``git ls-remote --symref`` says.

        Raises:
            GoneError, AuthError, RateLimitError, NetworkError: The remote does not answer as a git
                server does; also where it names no ref at all, as git takes any page for.
            IntegrityError: It is here, and cannot be read.
        """
        question = ("ls-remote", "--symref", "--", source.location)
        answer = self.git.run(bare, *question, protocols=source.protocols)
        if not answer.ok:
            raise unread(answer, source, at=at)
        if not answer.stdout.strip() and not source.local:
            raise NetworkError(
                f"{at}: the remote names no ref at all",
                hint="it is empty, or a proxy or login page answers in its place",
            )
        return answer.stdout

    def load(self, bare: Path, source: Source, *, lock: int) -> None:
        """Take in a bundle or a fast-export stream, whole.

        Raises:
            ProjectError: It is none.
        """
        if source.kind is Kind.BUNDLE:
            answer = self.git.run(bare, "bundle", "unbundle", source.location, keep=lock)
        else:
            with Path(source.location).open("rb") as stream:
                answer = self.git.run(
                    bare, "fast-import", "--quiet", "--force", stdin=stream, keep=lock
                )
        if not answer.ok:
            raise ProjectError(
                f"mirrors: {source.location!r}: not a {source.kind.value} that git can read:"
                f" {answer.complaint}"
            )

    @contextmanager
    def locked(self, bare: Path) -> Iterator[int]:
        """Make ``bare`` where it is not there, and exclude other processes and threads from
        changing it. git inherits the descriptor: when we are killed the lock stays until the git
        that we started has ended too."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            file = (self._root / f"{bare.name}.lock").open("ab")
        except OSError as error:
            raise EnvironmentFault(
                f"{error.filename}: cannot be written: {error.strerror}",
                hint="git repositories are kept in the store: choose another with --store DIR",
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not bare.is_dir():
                with self.scratch(form=bare.name.split(".")[1]) as fresh:
                    fresh.replace(bare)
            _sweep(bare)
            yield file.fileno()

    @contextmanager
    def scratch(self, *, form: str = "sha1") -> Iterator[Path]:
        """A new bare repository, which is gone with the end of the block unless it was moved."""
        with tempfile.TemporaryDirectory(dir=self._root, prefix="new-") as temporary:
            fresh = Path(temporary) / "git"
            make = ("init", "--quiet", "--bare", "--template=", f"--object-format={form}")
            made = self.git.run(None, *make, str(fresh))
            if not made.ok:
                raise fault(made, at=str(fresh)) or EnvironmentFault(f"{fresh}: {made.complaint}")
            (fresh / "HEAD").write_text(f"ref: {_NOWHERE}\n")
            with (fresh / "config").open("a") as config:
                config.write(self._settings)
            yield fresh


def unread(answer: Answer, source: Source, *, at: str) -> BuilderError:
    """The error for a source that could not be read."""
    known = fault(answer, at=at)
    if isinstance(known, EnvironmentFault):
        return known  # it is we who cannot write
    if source.local and "mismatched algorithms" not in answer.stderr:
        return IntegrityError(
            f"{at}: cannot be read from {source.location!r}: {answer.complaint}",
            hint="git fsck in that repository says more",
        )
    return known or NetworkError(f"{at}: {answer.complaint}")


def _sweep(bare: Path) -> None:
    """Remove what a killed git left. Nobody else can own it: we hold the lock."""
    for stale in (
        *bare.glob("*.lock"),
        *bare.glob("refs/**/*.lock"),
        *bare.glob("objects/pack/tmp_*"),
    ):
        stale.unlink(missing_ok=True)
