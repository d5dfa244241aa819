"""A clone of a repository with a project in it, and the remote that it is pushed to."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.git_author import Identity
from builder.adapters.git_worktree import GitWorktree
from tests.adapters.git_world import clean_environment, git

URL = "https://forge.test/acme/images"
FILES = {
    "README.md": "about\n",
    "lockfiles/genesis.yaml": "version: 1\ngenesis: {}\n",
    "variants/it.yaml": "version: 1\nbase: scratch\nsteps: []\n",
}
AUTHOR = Identity(name="Night Ly", email="night@example.org")


@dataclass(kw_only=True)
class Repository:
    """``clone`` is worked in; ``remote`` is bare. ``project`` is a directory of the clone."""

    clone: Path
    remote: Path
    project: Path

    @classmethod
    def make(cls, directory: Path, *, below: str = "") -> "Repository":
        """Both, with one commit on ``main``; the project is ``below`` the top of the clone."""
        clone, remote = directory / "clone", directory / "remote.git"
        made = cls(clone=clone, remote=remote, project=clone / below)
        _git(directory, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
        _git(directory, "init", "--quiet", "--initial-branch=main", str(clone))
        for file, text in FILES.items():
            path = made.project / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        made.git("config", "remote.origin.url", URL)
        made.git("config", f"url.{remote}.insteadOf", URL)
        made.save()
        return made

    def git(self, *arguments: str) -> str:
        return _git(self.clone, *arguments)

    def save(self, message: str = "change") -> str:
        """Commit everything and push it."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        self.git("push", "--quiet", "origin", "HEAD:refs/heads/main")
        return self.git("rev-parse", "HEAD")

    def worktree(self, home: Path | None = None, *, offline: bool = False) -> GitWorktree:
        return GitWorktree(
            self.project,
            home=home or self.clone.parent / "home",
            author=AUTHOR,
            time="2026-05-11T00:00:00Z",
            offline=offline,
        )

    def branches(self) -> dict[str, str]:
        """What the remote has."""
        lines = git(self.remote, "for-each-ref", "--format=%(refname:short) %(objectname)")
        return dict(line.split() for line in lines.splitlines())

    def state(self) -> tuple[dict[str, bytes], str]:
        """Everything that a proposal must leave as it is: files, index and local branches."""
        files = {
            str(path.relative_to(self.clone)): path.read_bytes()
            for path in sorted(self.clone.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.clone).parts
        }
        files["index"] = (self.clone / ".git/index").read_bytes()
        refs = self.git("for-each-ref", "refs/heads", "refs/tags")
        return files, refs + (self.clone / ".git/HEAD").read_text()


def _git(directory: Path, *arguments: str) -> str:
    who = {
        f"GIT_{role}_{key}": text
        for role in ("AUTHOR", "COMMITTER")
        for key, text in (("NAME", "A"), ("EMAIL", "a@example.org"))
    }
    done = subprocess.run(
        ("git", "-C", str(directory), *arguments),
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        env=clean_environment(directory) | who | {"PATH": os.environ["PATH"]},
        check=True,
    )
    return done.stdout.decode().strip()
