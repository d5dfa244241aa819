"""The Git port: one bare mirror per repository, filled by full object id, read without filters."""

import fcntl
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from builder.adapters.git_objects import Objects
from builder.adapters.git_process import Answer, GitProcess, fault, refused
from builder.adapters.git_source import Kind, Source, find
from builder.digest import Digest
from builder.errors import (
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
)
from builder.ports import GitFile, GitSubtree

_log = logging.getLogger(__name__)

_HAVE = "refs/builder/commits/"
"""A ref below here is written last: the commit it names is whole, with its tree and files."""

_NOWHERE = "refs/builder/none"
"""Where HEAD points. It never exists: git 2.43 to 2.45 read attributes of bare repositories from
HEAD's tree, and attributes change diffs."""

_FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
    *("--no-recurse-submodules", "--no-show-forced-updates"),
)
_EVERYTHING = ("+refs/heads/*:refs/builder/heads/*", "+refs/pull/*/head:refs/builder/pull/*")

# Every option that user configuration could set, and every default that changed between versions.
_DIFF = (
    *("-c", "core.quotePath=true", "-c", "diff.suppressBlankEmpty=false"),
    *("diff-tree", "-r", "-p", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--no-renames", "--src-prefix=a/", "--dst-prefix=b/", "-U3", "--inter-hunk-context=0"),
    *("--diff-algorithm=myers", "--indent-heuristic", "--ignore-submodules=none"),
    *("--submodule=short", "--no-relative"),
)


class GitMirror:
    """Bare mirrors below one directory, shared between processes.

    Args:
        root: Where the mirrors are kept. It can be deleted at any time between builds.
        mirrors: Replacements by URL prefix; see :func:`builder.adapters.git_source.find`.
        offline: Whether to use only what is at hand: the mirrors below ``root`` and local paths.
    """

    def __init__(self, root: Path, *, mirrors: Mapping[str, str], offline: bool) -> None:
        self._root = root
        self._mirrors = dict(mirrors)
        self._offline = offline
        self._git = GitProcess(root / "home")

    def tree(self, repository: str, commit: str) -> str:
        """See :meth:`builder.ports.Git.tree`."""
        bare = self._ensure(repository, commit)
        with Objects(self._git, bare, at=repository) as objects:
            return objects.tree_of(commit)

    def files(self, repository: str, commit: str, paths: tuple[str, ...]) -> tuple[GitFile, ...]:
        """See :meth:`builder.ports.Git.files`. A symbolic link is a file of mode ``120000``."""
        bare = self._ensure(repository, commit)
        with Objects(self._git, bare, at=repository) as objects:
            return tuple(objects.file(commit, path) for path in paths)

    def subtree(self, repository: str, commit: str, path: str) -> GitSubtree:
        """See :meth:`builder.ports.Git.subtree`."""
        bare = self._ensure(repository, commit)
        with Objects(self._git, bare, at=repository) as objects:
            return objects.subtree(commit, path)

    def diff(self, repository: str, base: str, head: str) -> bytes:
        """See :meth:`builder.ports.Git.diff`. Binary files are named, without their content."""
        self._ensure(repository, base)
        bare = self._ensure(repository, head)
        with Objects(self._git, bare, at=repository) as objects:
            trees = objects.tree_of(base), objects.tree_of(head)
        answer = self._git.run(bare, *_DIFF, *trees)
        if not answer.ok:
            raise IntegrityError(
                f"{repository}: no diff from {base} to {head}: {answer.complaint}",
                hint=f"the mirror may be damaged; remove {str(bare)!r} to fetch it again",
            )
        return answer.stdout

    def _ensure(self, repository: str, commit: str) -> Path:
        """The mirror, holding ``commit`` whole."""
        if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit):
            raise RuntimeError(f"not a full object id: {commit!r}")
        form = "sha1" if len(commit) == 40 else "sha256"
        name = f"{Digest.of(repository.encode()).hex}.{form}.git"
        bare = self._root / name
        if bare.is_dir() and self._has(bare, commit):
            return bare
        with self._locked(name) as lock:
            self._make(bare, form=form)
            _sweep(bare)
            if not self._has(bare, commit) and not self._take(bare, commit):
                source = find(repository, self._mirrors)
                if self._offline and not source.local:
                    raise OfflineError(
                        f"{repository}: no {commit} at hand, and --offline is set",
                        hint="run once without --offline, or configure a local mirror",
                    )
                _log.info("fetching %s of %s", commit, repository)
                self._fill(bare, repository, commit, source=source, lock=lock)
        return bare

    def _has(self, bare: Path, commit: str) -> bool:
        return self._git.run(bare, "rev-parse", "--verify", "--quiet", _HAVE + commit).ok

    def _take(self, bare: Path, commit: str) -> bool:
        """Note that ``commit`` is whole, if so; rev-list fails where a tree or blob is missing."""
        whole = self._git.run(bare, "rev-list", "--objects", "--quiet", "--no-walk", commit)
        return whole.ok and self._git.run(bare, "update-ref", _HAVE + commit, commit).ok

    def _fill(self, bare: Path, repository: str, commit: str, *, source: Source, lock: int) -> None:
        if source.kind is Kind.REPOSITORY:
            self._fetch(bare, repository, commit, source=source, lock=lock)
        else:
            self._import(bare, source, lock=lock)
            if not self._take(bare, commit):
                raise GoneError(
                    f"{repository}: {commit} is not in {source.location!r}",
                    hint="make the file again with this commit in it",
                )

    def _fetch(
        self, bare: Path, repository: str, commit: str, *, source: Source, lock: int
    ) -> None:
        """By id; where the server hands out only what a ref names, all branches, then pulls."""
        at = f"{repository}: {commit}"

        def fetch(*arguments: str) -> Answer:
            return self._git.run(bare, *arguments, protocols=source.protocols, keep=lock)

        def failed(answer: Answer) -> BuilderError:
            if source.local:
                return IntegrityError(
                    f"{at}: cannot be read from {source.location!r}: {answer.complaint}",
                    hint="git fsck in that repository says more",
                )
            return fault(answer, at=at) or NetworkError(f"{at}: {answer.complaint}")

        want = f"+{commit}:{_HAVE}{commit}"
        answer = fetch(*_FETCH, "--depth=1", "--", source.location, want)
        if answer.ok:
            return
        if not refused(answer):
            # Words that we do not know: if the remote answers at all, it was a refusal.
            known = fault(answer, at=at) is not None
            if known or not (answer := fetch("ls-remote", "--", source.location, "HEAD")).ok:
                raise failed(answer)
        for refspec in _EVERYTHING:
            _log.info("%s does not serve %s by its id; fetching %s", repository, commit, refspec)
            # What came by id alone has no history; without this the server would believe that
            # what lies behind it is here.
            deepen = ("--unshallow",) if (bare / "shallow").exists() else ()
            answer = fetch(*_FETCH, *deepen, "--", source.location, refspec)
            if not answer.ok:
                raise failed(answer)
            if self._take(bare, commit):
                return
        raise GoneError(
            f"{at}: the remote answers and does not have it, neither by id nor in a branch or pull",
            hint="find a repository that has it and name it under mirrors in builder.yaml, or pin"
            " another commit",
        )

    def _import(self, bare: Path, source: Source, *, lock: int) -> None:
        if source.kind is Kind.BUNDLE:
            answer = self._git.run(bare, "bundle", "unbundle", source.location, keep=lock)
        else:
            with Path(source.location).open("rb") as stream:
                answer = self._git.run(
                    bare, "fast-import", "--quiet", "--force", stdin=stream, keep=lock
                )
        if not answer.ok:
            raise ProjectError(
                f"mirrors: {source.location!r}: not a {source.kind.value} that git can read:"
                f" {answer.complaint}"
            )

    def _make(self, bare: Path, *, form: str) -> None:
        if bare.is_dir():
            return
        with tempfile.TemporaryDirectory(dir=self._root, prefix="new-") as temporary:
            fresh = Path(temporary) / "git"
            made = self._git.run(
                None,
                *("init", "--quiet", "--bare", "--template=", f"--object-format={form}"),
                str(fresh),
            )
            if made.ok:
                made = self._git.run(fresh, "symbolic-ref", "HEAD", _NOWHERE)
            if not made.ok:
                raise fault(made, at=str(bare)) or RuntimeError(made.complaint)
            fresh.replace(bare)

    @contextmanager
    def _locked(self, name: str) -> Iterator[int]:
        """Exclude other processes and threads. git inherits the descriptor: when we are killed the
        lock stays until the git that we started has ended too."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            file = (self._root / f"{name}.lock").open("ab")
        except OSError as error:
            raise EnvironmentFault(
                f"{error.filename}: cannot be written: {error.strerror}",
                hint="git repositories are kept in the store: choose another with --store DIR",
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file.fileno()


def _sweep(bare: Path) -> None:
    """Remove what a killed git left. Nobody else can own it: we hold the lock."""
    for stale in (
        *bare.glob("*.lock"),
        *bare.glob("refs/**/*.lock"),
        *bare.glob("objects/pack/tmp_*"),
    ):
        stale.unlink(missing_ok=True)
