"""git as the oracle: makes diffs between trees, and applies diffs to trees.

A tree is a mapping of path to (bytes, executable). git runs without any configuration of the user
and outside of any repository that this one may lie in.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from builder.diff import Applied, Diff, Place, SourceText, apply

Tree = Mapping[str, tuple[bytes, bool]]
HERE = Place(root="", strip=1)


def read_from(tree: Tree) -> "dict[str, SourceText]":
    """The tree as ``apply`` reads it."""
    return {
        path: SourceText(data=data, mode=0o755 if executable else 0o644)
        for path, (data, executable) in tree.items()
    }


def result(tree: Tree, applied: Applied) -> dict[str, tuple[bytes, bool]]:
    """The tree after all files of ``applied``, the way a layer is laid over it."""
    after = dict(tree)
    for file in applied.files:
        if file.data is None:
            del after[file.path]
        else:
            before = after.get(file.path, (b"", False))[1]
            executable = before if file.mode is None else bool(file.mode & 0o111)
            after[file.path] = (file.data, executable)
    return after


def patched(tree: Tree, diff: Diff, place: Place = HERE) -> dict[str, tuple[bytes, bool]]:
    """The tree after ``diff``, by our own applier."""
    return result(tree, apply(diff, place, read=read_from(tree).get))


class Git:
    """A repository for diffs and a directory for applying them."""

    def __init__(self, directory: Path) -> None:
        self._repository = directory / "repository"
        self._work = directory / "work"
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(directory),
            "LC_ALL": "C",
        }
        self.run("init", "-q", str(self._repository), cwd=directory)

    def run(
        self, *arguments: str, cwd: Path | None = None, data: bytes = b"", check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd or self._repository,
            input=data,
            capture_output=True,
            check=check,
            env=self._environment,
        )

    def commit(self, trees: Sequence[Tree], messages: Sequence[bytes] = ()) -> None:
        """Make the branch ``series`` anew, one commit for each tree."""
        stream = [b"reset refs/heads/series\n"]
        for number, tree in enumerate(trees):
            message = messages[number] if messages else b"a change\n"
            stream.append(b"commit refs/heads/series\nmark :%d\n" % (number + 1))
            stream.append(b"committer A <a@example.org> %d +0000\n" % (10**9 + number))
            stream.append(b"data %d\n%s\n" % (len(message), message))
            stream.append(b"from :%d\ndeleteall\n" % number if number else b"")
            for path, (data, executable) in tree.items():
                mode = b"100755" if executable else b"100644"
                stream.append(b"M %s inline %s\n" % (mode, _quoted(path)))
                stream.append(b"data %d\n%s\n" % (len(data), data))
        self.run("fast-import", "--quiet", "--force", data=b"".join(stream))

    def diff(self, old: Tree, new: Tree, *options: str) -> bytes:
        """The diff between two trees."""
        self.commit([old, new])
        return self.run("diff-tree", "-r", "-p", "--text", *options, "series~1", "series").stdout

    def mails(self, trees: Sequence[Tree], messages: Sequence[bytes], *options: str) -> bytes:
        """The series between the trees, as mails; the first message belongs to the second tree."""
        self.commit(trees, [b"base\n", *messages])
        count = f"-{len(trees) - 1}"
        return self.run("format-patch", "--text", "--stdout", *options, count, "series").stdout

    def apply(self, tree: Tree, diff: bytes, *options: str) -> dict[str, tuple[bytes, bool]] | None:
        """The tree after ``git apply``; ``None`` where git refuses."""
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        for path, (data, executable) in tree.items():
            file = self._work / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o755 if executable else 0o644)
        done = self.run("apply", *options, cwd=self._work, data=diff, check=False)
        if done.returncode:
            return None
        return {
            str(file.relative_to(self._work)): (
                file.read_bytes(),
                bool(file.stat().st_mode & 0o100),
            )
            for file in self._work.rglob("*")
            if file.is_file()
        }


def _quoted(path: str) -> bytes:
    escaped = "".join(f"\\{byte:03o}" for byte in os.fsencode(path))
    return b'"%s"' % escaped.encode()
