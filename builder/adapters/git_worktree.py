"""The Branches port: the repository that a project stands in, by git's plumbing.

Commits are made of objects and of an index of our own. Nothing is checked out, and no branch of the
repository moves.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from builder.adapters.git_author import Identity
from builder.adapters.git_process import GitProcess
from builder.adapters.git_remote import GitRemote, GitRepository
from builder.errors import ProjectError, UsageError
from builder.upstream import Start, Tip

_READ = ("variants", "lockfiles", "overlays", "builder.yaml")
"""What decides what a project bakes. Whatever else it has is pinned by content."""
_SHOWN = 5


class GitWorktree:
    """See :class:`builder.upstream.Branches`.

    Args:
        root: The project.
        home: A directory for git's home.
        author: Who makes the commits.
        time: When, as locks write it.
        remote: The remote's name.
        offline: Refuse whatever asks the remote.

    Raises:
        ProjectError: The project is in no git repository, or that has no such remote.
    """

    def __init__(
        self,
        root: Path,
        *,
        home: Path,
        author: Identity,
        time: str,
        remote: str = "origin",
        offline: bool = False,
    ) -> None:
        process = GitProcess(home)
        self._author, self._time = author, time
        found = process.run(
            None,
            *("-C", str(root), "rev-parse", "--absolute-git-dir", "--show-toplevel"),
            "--show-prefix",
        )
        if not found.ok:
            raise ProjectError(
                f"{root}: in no git repository with files: {found.complaint}",
                hint="proposals are branches of the repository that the project is in",
            )
        directory, top, prefix, *_ = found.stdout.decode("utf-8", "surrogateescape").split("\n")
        self._top, self._prefix = top, PurePosixPath(prefix)
        self._git = GitRepository(process, Path(directory))
        self._name = remote
        self.remote = GitRemote(self._git, name=remote, offline=offline)

    def start(self, branch: str | None) -> Start:
        """See :meth:`builder.upstream.Branches.start`."""
        name = branch or self._current()
        commit = self.remote.heads.get(name)
        at = f"branch {name!r} at {self._name}"
        if commit is None:
            raise ProjectError(f"{at}: there is none", hint=f"git push {self._name} {name}")
        if not self._git.has(commit):
            raise ProjectError(
                f"{at}: its commit {commit[:12]} is not here", hint=f"git fetch {self._name} {name}"
            )
        if different := self._different(commit):
            more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
            raise ProjectError(
                f"{at}: has other recipes or locks than this directory:"
                f" {', '.join(different[:_SHOWN])}{more}",
                hint="what is proposed is for that branch: check it out, push what you have, or"
                " leave out --propose",
            )
        return Start(branch=name, commit=commit)

    def tip(self, branch: str) -> Tip | None:
        """See :meth:`builder.upstream.Branches.tip`."""
        commit = self.remote.heads.get(branch)
        if commit is None:
            return None
        if not self._git.has(commit):
            self.remote.fetch(branch)
        raw = self._git.ask("cat-file", "commit", commit).decode("utf-8", "replace")
        head, _, message = raw.partition("\n\n")
        fields = [line.partition(" ") for line in head.split("\n")]
        return Tip(
            commit=commit,
            tree=next(rest for name, _, rest in fields if name == "tree"),
            parents=tuple(rest for name, _, rest in fields if name == "parent"),
            message=message,
        )

    def read(self, commit: str, file: str) -> bytes | None:
        """See :meth:`builder.upstream.Branches.read`."""
        answer = self._git.run("cat-file", "blob", f"{commit}:{self._prefix / file}")
        return answer.stdout if answer.ok else None

    def tree(self, commit: str, files: Mapping[str, bytes]) -> str:
        """See :meth:`builder.upstream.Branches.tree`."""
        entries = []
        for file, data in sorted(files.items()):
            path = str(self._prefix / file)
            mode = self._mode(commit, path)
            blob = self._git.ask("hash-object", "-w", "--stdin", stdin=data).decode().strip()
            entries.append(f"{mode} {blob}\t{path}\0")
        with tempfile.TemporaryDirectory() as directory:
            index = {"GIT_INDEX_FILE": f"{directory}/index"}
            self._git.ask("read-tree", commit, extra=index)
            lines = "".join(entries).encode("utf-8", "surrogateescape")
            self._git.ask("update-index", "-z", "--index-info", stdin=lines, extra=index)
            return self._git.ask("write-tree", extra=index).decode().strip()

    def commit(self, tree: str, parent: str, message: str) -> str:
        """See :meth:`builder.upstream.Branches.commit`."""
        who = {
            f"GIT_{role}_{key}": text
            for role in ("AUTHOR", "COMMITTER")
            for key, text in (
                ("NAME", self._author.name),
                ("EMAIL", self._author.email),
                ("DATE", self._time),
            )
        }
        made = self._git.ask("commit-tree", tree, "-p", parent, stdin=message.encode(), extra=who)
        return made.decode().strip()

    def push(self, branch: str, commit: str, *, expected: str | None) -> None:
        """See :meth:`builder.upstream.Branches.push`."""
        self.remote.push(branch, commit, expected=expected)

    def _current(self) -> str:
        answer = self._git.run("symbolic-ref", "--quiet", "--short", "HEAD")
        if not answer.ok:
            raise UsageError(
                "HEAD is on no branch, so nobody knows which one proposals are for",
                hint="name it: --base BRANCH",
            )
        return answer.stdout.decode("utf-8", "surrogateescape").strip()

    def _mode(self, commit: str, path: str) -> str:
        found = self._git.ask("ls-tree", "-z", "--full-tree", commit, "--", path)
        mode = found.decode("utf-8", "surrogateescape").partition(" ")[0] or "100644"
        if not mode.startswith("100"):
            raise ProjectError(f"{path}: expected a file in the repository, got mode {mode}")
        return mode

    def _different(self, commit: str) -> list[str]:
        """The recipes and locks of the project that are not what ``commit`` has."""
        paths = [str(self._prefix / name) for name in _READ]
        entries = self._git.ask("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths)
        with tempfile.TemporaryDirectory() as directory:
            extra = {
                "GIT_INDEX_FILE": f"{directory}/index",
                "GIT_WORK_TREE": self._top,
                "GIT_LITERAL_PATHSPECS": "1",
            }
            inside = ("-C", self._top)
            self._git.ask("update-index", "-z", "--index-info", stdin=entries, extra=extra)
            self._git.run(*inside, "update-index", "-q", "--refresh", extra=extra)
            changed = self._git.ask(*inside, "diff-files", "--name-only", "-z", extra=extra)
            others = self._git.ask(
                *(*inside, "ls-files", "-z", "--others", "--exclude-standard", "--", *paths),
                extra=extra,
            )
        text = (changed + others).decode("utf-8", "surrogateescape")
        return sorted({name for name in text.split("\0") if name})
