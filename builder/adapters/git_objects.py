"""Reading a git object database as it is: no checkout, no filters, no attributes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from builder.adapters.git_process import GitProcess
from builder.errors import IntegrityError
from builder.ports import GitEntry, GitFile, GitSubtree

_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_LIMIT = 1024  # git-lfs spec: "pointer files must be less than 1024 bytes in size"
_DIRECTORY, _SUBMODULE = "040000", "160000"
_NO_NAMES = frozenset({b"", b".", b"..", b".git"})
_PATH = 4096
_SUBTREE_FILES = 20_000
"""The most files and directories that are taken from below one directory. (A tree may name one of
its subtrees many times: a few hundred bytes can stand for any number of files.)"""
_BYTES = 256 << 20
"""The most bytes that are read of one object, and of all files below one directory."""
_LISTED = 200_000
"""The most entries of a commit that are listed; as above."""
_TOGETHER = 256
"""How many objects are asked for at once: their names must fit into a pipe that nobody reads while
git is busy answering."""


class Objects:
    """One ``git cat-file --batch``, asked object by object. ``at`` names the repository."""

    def __init__(self, process: GitProcess, bare: Path, *, at: str) -> None:
        self._process = process
        self._bare = bare
        self._at = at
        self._trees: dict[str, dict[bytes, tuple[str, str]]] = {}

    def __enter__(self) -> Self:
        self._child = self._process.start(self._bare, "cat-file", "--batch")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _pipe(self._child.stdin).close()
        _pipe(self._child.stdout).close()
        self._child.wait()

    def read(self, object_id: str) -> tuple[str, bytes]:
        """The type and content of an object.

        Raises:
            IntegrityError: The mirror lacks it, git cannot read it, or it is larger than any that
                is wanted.
        """
        self._ask((object_id,))
        return self._answer(object_id, left=_BYTES, at=f"{self._at}: object {object_id}")

    def _ask(self, object_ids: Sequence[str]) -> None:
        asked = _pipe(self._child.stdin)
        asked.write("".join(f"{object_id}\n" for object_id in object_ids).encode())
        asked.flush()

    def _answer(self, object_id: str, *, left: int, at: str) -> tuple[str, bytes]:
        answers = _pipe(self._child.stdout)
        header = answers.readline().split()
        if len(header) != 3:
            said = b" ".join(header).decode() or "git stopped"
            raise IntegrityError(
                f"{self._at}: object {object_id} cannot be read: {said}",
                hint=f"the mirror is damaged; remove {str(self._bare)!r} to fetch it again",
            )
        if (size := int(header[2])) > left:
            raise IntegrityError(f"{at}: more than {_BYTES} bytes")
        data = answers.read(size)
        answers.read(1)
        return header[1].decode(), data

    def tree_of(self, commit: str) -> str:
        """The tree id of a commit.

        Raises:
            IntegrityError: The id names something else; for a tag, the message has the commit.
        """
        kind, data = self.read(commit)
        if kind == "commit":
            return data.split(b"\n", 1)[0].removeprefix(b"tree ").decode()
        if kind != "tag":
            raise IntegrityError(f"{self._at}: {commit} names a {kind}, wanted a commit")
        target = commit
        while kind == "tag":
            target = data.split(b"\n", 1)[0].removeprefix(b"object ").decode()
            kind, data = self.read(target)
        raise IntegrityError(
            f"{self._at}: {commit} names a tag object, the {kind} is {target}",
            hint=f"write {target}" if kind == "commit" else "a pin needs a commit",
        )

    def file(self, commit: str, path: str) -> GitFile:
        """The file at ``path``, byte for byte as it was committed.

        Raises:
            IntegrityError: It is missing, a directory, a submodule or an LFS pointer.
        """
        at = f"{self._at}: {commit}: {path!r}"
        mode, object_id = self._find(commit, path, at=at, what="file")
        if mode == _DIRECTORY:
            raise IntegrityError(f"{at}: is a directory, wanted a file", hint="name its files")
        if mode == _SUBMODULE:
            raise _submodule(object_id, at=at)
        _, data = self.read(object_id)
        return _file(path, mode, data, at=at)

    def subtree(self, commit: str, path: str) -> GitSubtree:
        """The directory at ``path``, with everything below it.

        Raises:
            IntegrityError: There is none; something below it is a submodule or an LFS pointer; it
                is larger than any that is wanted.
        """
        at = f"{self._at}: {commit}: {path!r}"
        mode, tree = self._find(commit, path, at=at, what="directory")
        if mode != _DIRECTORY:
            raise IntegrityError(f"{at}: is no directory")
        found = sorted(self._walk(tree, at=at))
        files: list[GitFile] = []
        left = _BYTES
        for start in range(0, len(found), _TOGETHER):
            part = found[start : start + _TOGETHER]
            self._ask([object_id for _, _, object_id in part])
            for name, kind, object_id in part:
                _, data = self._answer(object_id, left=left, at=at)
                left -= len(data)
                files.append(_file(name, kind, data, at=f"{at}: {name!r}"))
        return GitSubtree(tree=tree, files=tuple(files))

    def listing(self, commit: str) -> Mapping[str, GitEntry]:
        """Everything in a commit by path, sorted.

        Raises:
            IntegrityError: There is more than any that is wanted.
        """
        found: dict[str, GitEntry] = {}
        todo = [("", self.tree_of(commit))]
        while todo:
            above, tree = todo.pop()
            for raw, (mode, child) in self._entries(tree).items():
                path = above + raw.decode("utf-8", "surrogateescape")
                if len(found) >= _LISTED or len(path) > _PATH:
                    raise IntegrityError(f"{self._at}: {commit}: more than {_LISTED} entries")
                found[path] = GitEntry(mode=mode, id=child)
                if mode == _DIRECTORY:
                    todo.append((f"{path}/", child))
        return dict(sorted(found.items()))

    def _find(self, commit: str, path: str, *, at: str, what: str) -> tuple[str, str]:
        """Mode and id of what is at ``path``; ``what`` is the word for what is wanted there."""
        mode, object_id = _DIRECTORY, self.tree_of(commit)
        parts = path.encode("utf-8", "surrogateescape").split(b"/")
        for depth, part in enumerate(parts):
            found = self._entries(object_id).get(part) if mode == _DIRECTORY else None
            if found is None:
                above = b"/".join(parts[:depth]).decode("utf-8", "replace")
                where = repr(above) if above else "the top directory"
                name = part.decode("utf-8", "replace")
                raise IntegrityError(f"{at}: no such {what}; {where} has no {name!r}")
            mode, object_id = found
        return mode, object_id

    def _walk(self, tree: str, *, at: str) -> Iterator[tuple[str, str, str]]:
        """Path, mode and id of each file below a tree."""
        todo = [("", tree)]
        seen = 0
        while todo:
            above, object_id = todo.pop()
            for raw, (mode, child) in self._entries(object_id).items():
                seen += 1
                path = above + raw.decode("utf-8", "surrogateescape")
                if seen > _SUBTREE_FILES:
                    raise IntegrityError(f"{at}: more than {_SUBTREE_FILES} files")
                if raw in _NO_NAMES or b"/" in raw or len(path) > _PATH:
                    raise IntegrityError(f"{at}: not the name of a file: {path[:200]!r}")
                if mode == _SUBMODULE:
                    raise _submodule(child, at=f"{at}: {path!r}")
                if mode == _DIRECTORY:
                    todo.append((f"{path}/", child))
                else:
                    yield path, mode, child

    def _entries(self, object_id: str) -> dict[bytes, tuple[str, str]]:
        if object_id not in self._trees:
            _, data = self.read(object_id)
            size = len(object_id) // 2
            entries: dict[bytes, tuple[str, str]] = {}
            position = 0
            while position < len(data):
                end = data.index(b"\0", position)
                mode, _, name = data[position:end].partition(b" ")
                position = end + 1 + size
                entries[name] = (mode.decode().zfill(6), data[end + 1 : position].hex())
            self._trees[object_id] = entries
        return self._trees[object_id]


def _file(path: str, mode: str, data: bytes, *, at: str) -> GitFile:
    if len(data) < _LFS_LIMIT and data.startswith(_LFS) and b"\noid sha256:" in data:
        raise IntegrityError(
            f"{at}: is a Git LFS pointer; the content is not in the repository",
            hint="take the file from where its content is, for example as a wheel or a model",
        )
    return GitFile(path=path, mode=mode, data=data)


def _submodule(object_id: str, *, at: str) -> IntegrityError:
    return IntegrityError(
        f"{at}: is a submodule at {object_id}, wanted a file",
        hint="pin the submodule's repository as a source of its own",
    )


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("the process was started without pipes")
    return stream
