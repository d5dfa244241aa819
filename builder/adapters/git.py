"""The Git port: one bare mirror per repository, filled by full object id, read without filters."""

import logging
from collections.abc import Mapping
from pathlib import Path

from builder.adapters.git_mirrors import FETCH, HAVE, BareRepositories, unread
from builder.adapters.git_objects import Objects
from builder.adapters.git_source import Kind, Source
from builder.errors import GoneError, IntegrityError
from builder.ports import GitEntry, GitFile, GitSubtree

_log = logging.getLogger(__name__)

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
        self._bare = BareRepositories(root, mirrors=mirrors, offline=offline)
        self._git = self._bare.git

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

    def listing(self, repository: str, commit: str) -> Mapping[str, GitEntry]:
        """See :meth:`builder.ports.Git.listing`."""
        bare = self._ensure(repository, commit)
        with Objects(self._git, bare, at=repository) as objects:
            return objects.listing(commit)

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
        bare = self._bare.path(repository, commit)
        if self._bare.has(bare, commit):
            return bare
        with self._bare.locked(bare) as lock:
            if not self._bare.has(bare, commit) and not self._take(bare, commit):
                source = self._bare.source(repository, commit)
                _log.info("fetching %s of %s", commit, repository)
                self._fill(bare, repository, commit, source=source, lock=lock)
        return bare

    def _take(self, bare: Path, commit: str) -> bool:
        """Note that ``commit`` is whole, if so; rev-list fails where a tree or blob is missing."""
        whole = self._git.run(bare, "rev-list", "--objects", "--quiet", "--no-walk", commit)
        return whole.ok and self._bare.note(bare, commit)

    def _fill(self, bare: Path, repository: str, commit: str, *, source: Source, lock: int) -> None:
        if source.kind is Kind.REPOSITORY:
            self._fetch(bare, repository, commit, source=source, lock=lock)
        else:
            self._bare.load(bare, source, lock=lock)
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
        alone = ("--depth=1", "--", source.location, f"+{commit}:{HAVE}{commit}")
        if self._bare.fetched(bare, source, alone, at=at, lock=lock):
            return
        for refspec in _EVERYTHING:
            _log.info("%s does not serve %s by its id; fetching %s", repository, commit, refspec)
            # What came by id alone has no history; without this the server would believe that
            # what lies behind it is here.
            deepen = ("--unshallow",) if (bare / "shallow").exists() else ()
            everything = (*FETCH, *deepen, "--", source.location, refspec)
            answer = self._git.run(bare, *everything, protocols=source.protocols, keep=lock)
            if not answer.ok:
                raise unread(answer, source, at=at)
            if self._take(bare, commit):
                return
        raise GoneError(
            f"{at}: the remote answers and does not have it, neither by id nor in a branch or pull",
            hint="find a repository that has it and name it under mirrors in builder.yaml, or pin"
            " another commit",
        )
