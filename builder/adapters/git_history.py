"""The History port: a bare mirror per repository that holds commits and tags alone.

It stands beside the mirror of :mod:`builder.adapters.git`, which holds whole commits without their
history. A remote that knows filters sends no trees (``--filter=tree:0``); what others send beside
the commits is kept, too, and not used.
"""

import logging
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from builder.adapters.git_mirrors import BareRepositories
from builder.adapters.git_objects import Objects
from builder.adapters.git_process import Answer
from builder.adapters.git_refs import Refs, read_refs
from builder.adapters.git_source import Kind, Source
from builder.errors import GoneError, IntegrityError, NetworkError
from builder.upstream import Commit, Distance

_log = logging.getLogger(__name__)

_GOT = "refs/builder/got/"
"""Below here is what was fetched, each object under its own id: names of the remote can move."""

# What makes a repository one that may lack trees (git-config, extensions.partialClone). The remote
# has no address in it: nothing is ever fetched behind our back.
_PARTIAL = """\
[core]
	repositoryFormatVersion = 1
[extensions]
	partialClone = origin
[remote "origin"]
	promisor = true
	partialCloneFilter = tree:0
"""

_FORMAT = "--format=%m %H %ct [%P] %s"
_COMMITS = 10_000
_LOOSE = 100
"""How many refs, each a file, may come at once before they are packed."""


class GitHistory:
    """See :class:`builder.upstream.History`.

    Args:
        root: Where the mirrors are kept. It can be deleted at any time between runs.
        mirrors: Replacements by URL prefix; see :func:`builder.adapters.git_source.find`.
        offline: Whether to use only what is at hand: the mirrors below ``root`` and local paths.
        limit: The most commits that a distance names.
    """

    def __init__(
        self, root: Path, *, mirrors: Mapping[str, str], offline: bool, limit: int = _COMMITS
    ) -> None:
        self._bare = BareRepositories(
            root, mirrors=mirrors, offline=offline, what=".history", settings=_PARTIAL
        )
        self._git = self._bare.git
        self._limit = limit
        self._told: dict[str, Refs] = {}
        self._asking = threading.Lock()

    def refs(self, repository: str) -> Mapping[str, str]:
        """See :meth:`builder.upstream.History.refs`."""
        return self._refs(repository).commits

    def default_branch(self, repository: str) -> str:
        """See :meth:`builder.upstream.History.default_branch`."""
        branch = self._refs(repository).branch
        if branch is None:
            raise GoneError(
                f"{repository}: HEAD names no branch that is there",
                hint="name the branch, as refs/heads/NAME",
            )
        return branch

    def reachable(self, repository: str, commit: str) -> tuple[str, ...]:
        """See :meth:`builder.upstream.History.reachable`."""
        bare = self._ensure(repository, commit)
        refs = self._refs(repository)
        self._fetch_all(bare, repository, refs)
        tips = "".join(f"{tip}\n" for tip in {*refs.commits.values()})
        walk = ("--parents", "--topo-order", "--reverse", f"^{commit}")
        lines = self._read(bare, repository, "rev-list", *walk, "--stdin", stdin=tips.encode())
        behind = {commit}  # the commits that have it in their history, parents before children
        for line in lines.split(b"\n"):
            child, *parents = line.decode().split() or [""]
            if not behind.isdisjoint(parents):
                behind.add(child)
        return tuple(name for name, tip in refs.commits.items() if tip in behind and name != "HEAD")

    def commit(self, repository: str, commit: str) -> Commit:
        """See :meth:`builder.upstream.History.commit`."""
        bare = self._ensure(repository, commit)
        said = self._read(bare, repository, "rev-list", "--no-walk", _FORMAT, commit)
        ((_, found),) = _commits(said)
        return found

    def merge_base(self, repository: str, one: str, other: str) -> str | None:
        """See :meth:`builder.upstream.History.merge_base`."""
        bare = self._ensure(repository, one, other)
        answer = self._git.run(bare, "merge-base", one, other)
        if answer.status not in (0, 1):
            raise self._damaged(bare, repository, answer)
        return answer.stdout.decode().strip() or None

    def distance(self, repository: str, old: str, new: str) -> Distance:
        """See :meth:`builder.upstream.History.distance`."""
        bare = self._ensure(repository, old, new)
        walk = ("--left-right", "--date-order", f"--max-count={self._limit + 1}", _FORMAT)
        found = list(_commits(self._read(bare, repository, "rev-list", *walk, f"{old}...{new}")))
        named = found[: self._limit]
        return Distance(
            ahead=tuple(commit for side, commit in named if side == ">"),
            behind=tuple(commit for side, commit in named if side == "<"),
            complete=len(found) <= self._limit,
        )

    def is_ancestor(self, repository: str, ancestor: str, commit: str) -> bool:
        """See :meth:`builder.upstream.History.is_ancestor`."""
        bare = self._ensure(repository, ancestor, commit)
        answer = self._git.run(bare, "merge-base", "--is-ancestor", ancestor, commit)
        if answer.status not in (0, 1):
            raise self._damaged(bare, repository, answer)
        return answer.ok

    def _refs(self, repository: str) -> Refs:
        with self._asking:
            if repository not in self._told:
                self._told[repository] = self._ask(repository)
            return self._told[repository]

    def _ask(self, repository: str) -> Refs:
        source = self._bare.source(repository, "list of refs")
        # Only so that git, which looks for a repository to work in, finds ours and not the user's.
        bare = self._bare.path(repository, "0" * 40)
        with self._bare.locked(bare) as lock:
            if source.kind is not Kind.REPOSITORY:
                return self._unpacked(source, lock=lock)
        return read_refs(self._bare.ask(bare, source, at=f"{repository}: its refs"))

    def _unpacked(self, source: Source, *, lock: int) -> Refs:
        """The refs of a bundle (which does not say what is behind a tag) or of a stream."""
        with self._bare.scratch() as scratch:
            head = b""
            self._bare.load(scratch, source, lock=lock)
            if source.kind is Kind.BUNDLE:
                listed = self._git.run(scratch, "bundle", "list-heads", source.location)
                for line in listed.stdout.splitlines():
                    target, _, name = line.decode("utf-8", "surrogateescape").partition(" ")
                    if name == "HEAD":
                        head = f"{target}\tHEAD\n".encode()
                    elif name.startswith("refs/"):
                        self._git.run(scratch, "update-ref", name, target)
            local = Source(
                location=str(scratch), kind=Kind.REPOSITORY, protocols="file", local=True
            )
            return read_refs(head + self._bare.ask(scratch, local, at=source.location))

    def _ensure(self, repository: str, *commits: str) -> Path:
        """The mirror, holding ``commits`` with their history."""
        bare, *others = {self._bare.path(repository, commit): None for commit in commits}
        if others:
            raise IntegrityError(
                f"{repository}: {' and '.join(commits)} are ids of two kinds, and no repository has"
                " both"
            )
        missing = [commit for commit in commits if not self._bare.has(bare, commit)]
        if missing:
            with self._bare.locked(bare) as lock:
                for commit in missing:
                    at = f"{repository}: {commit}"
                    if not self._take(bare, repository, commit):
                        source = self._bare.source(repository, commit)
                        _log.info("fetching the history of %s of %s", commit, repository)
                        self._fill(bare, repository, commit, source=source, lock=lock)
                        if not self._take(bare, repository, commit):
                            raise IntegrityError(
                                f"{at}: came without all of its history",
                                hint=f"a shallow clone is no mirror; if there is none, remove"
                                f" {str(bare)!r} to fetch it again",
                            )
        return bare

    def _take(self, bare: Path, repository: str, commit: str) -> bool:
        """Note that ``commit`` is here with all that is behind it, if so.

        Raises:
            IntegrityError: The id names something else.
        """
        kind = self._git.run(bare, "cat-file", "-t", commit)
        if not kind.ok:
            return False
        if kind.stdout != b"commit\n":
            with Objects(self._git, bare, at=repository) as objects:
                objects.tree_of(commit)  # raises, and says what it is
        whole = self._git.run(bare, "rev-list", "--quiet", commit)
        return whole.ok and self._bare.note(bare, commit)

    def _fill(self, bare: Path, repository: str, commit: str, *, source: Source, lock: int) -> None:
        """By id; where the server hands out only what a ref names, all that its refs lead to."""
        at = f"{repository}: {commit}"
        if source.kind is not Kind.REPOSITORY:
            self._bare.load(bare, source, lock=lock)
        elif self._fetch(bare, source, (commit,), at=at, lock=lock):
            return
        else:
            _log.info("%s does not serve %s by its id; fetching all refs", repository, commit)
            refs = read_refs(self._bare.ask(bare, source, at=at))
            self._fetch_missing(bare, repository, refs, lock)
        if not self._git.run(bare, "cat-file", "-e", commit).ok:
            raise GoneError(
                f"{at}: the remote answers and does not have it, neither by id nor behind a ref",
                hint="find a repository that has it and name it under mirrors in builder.yaml, or"
                " take another commit",
            )

    def _fetch_all(self, bare: Path, repository: str, refs: Refs) -> None:
        if self._missing(bare, refs):
            with self._bare.locked(bare) as lock:
                self._fetch_missing(bare, repository, refs, lock)

    def _missing(self, bare: Path, refs: Refs) -> set[str]:
        got = self._read(bare, "refs", "for-each-ref", "--format=%(refname)", _GOT)
        here = {line.rpartition("/")[2] for line in got.decode().splitlines()}
        return {*refs.objects.values()} - here

    def _fetch_missing(self, bare: Path, repository: str, refs: Refs, lock: int) -> None:
        missing = sorted(self._missing(bare, refs))
        if not missing:
            return
        source = self._bare.source(repository, "history of its refs")
        if source.kind is not Kind.REPOSITORY:
            self._bare.load(bare, source, lock=lock)
            noted = "".join(f"update {_GOT}{each} {each}\n" for each in missing)
            self._read(bare, repository, "update-ref", "--stdin", stdin=noted.encode())
        elif not self._fetch(bare, source, missing, at=f"{repository}: all refs", lock=lock):
            raise NetworkError(f"{repository}: its refs changed while they were read")
        if len(missing) > _LOOSE:
            self._read(bare, repository, "pack-refs", "--all")

    def _fetch(
        self, bare: Path, source: Source, wanted: Iterable[str], *, at: str, lock: int
    ) -> bool:
        return self._bare.fetched(
            bare,
            source,
            ("--filter=tree:0", "--stdin", "origin"),
            at=at,
            lock=lock,
            stdin="".join(f"+{each}:{_GOT}{each}\n" for each in wanted).encode(),
        )

    def _read(self, bare: Path, at: str, *arguments: str, stdin: bytes | None = None) -> bytes:
        answer = self._git.run(bare, *arguments, stdin=stdin)
        if not answer.ok:
            raise self._damaged(bare, at, answer)
        return answer.stdout

    @staticmethod
    def _damaged(bare: Path, at: str, answer: Answer) -> IntegrityError:
        return IntegrityError(
            f"{at}: its history cannot be read: {answer.complaint}",
            hint=f"the mirror may be damaged; remove {str(bare)!r} to fetch it again",
        )


def _commits(output: bytes) -> Iterable[tuple[str, Commit]]:
    """Side and commit of each line in our format; the lines that git puts between are left out."""
    for line in output.decode("utf-8", "replace").split("\n"):
        if line and not line.startswith("commit "):
            side, name, time, rest = line.split(" ", 3)
            parents, _, subject = rest[1:].partition("] ")
            shown = "".join(c if c.isprintable() else " " for c in subject).strip()
            yield (
                side,
                Commit(id=name, time=int(time), subject=shown, parents=tuple(parents.split())),
            )
