"""The files of a project on disk: read within limits, listed, and replaced as a whole.

Nothing else in the package touches the project's directory. Paths are relative to its root, with
``/``, and stand in messages as they are.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path, PurePath
from typing import ClassVar

from builder import durable
from builder.digest import Digest
from builder.errors import ProjectError

LIMIT = 64 << 20
"""The most bytes of one file of a project."""


class Files:
    """The files below one root, some of them ``replaced``: read as if they had these bytes.

    ``asked`` has every question so far with the digest of its answer: as long as the same
    questions have the same answers (:meth:`ask`), everything that was made of them is the same.
    A question has one answer: the second time that it has another is a ProjectError, because some
    of what was made would be of the old state and some of the new one.
    """

    def __init__(self, root: Path, *, replaced: Mapping[str, bytes] | None = None) -> None:
        self._root = root
        self._replaced = dict(replaced or {})
        self.asked: dict[tuple[str, str], Digest | None] = {}

    def ask(self, question: str, about: str) -> Digest | None:
        """The digest of the answer to a question of ``asked``; ``None`` for no such file.

        Raises:
            ProjectError: As the method of that name says.
        """
        Files.QUESTIONS[question](self, about)
        return self.asked[question, about]

    def _note(self, question: str, about: str, answer: bytes | None) -> None:
        digest = None if answer is None else Digest.of(answer)
        if self.asked.setdefault((question, about), digest) != digest:
            raise ProjectError(
                f"{about}: changed while the project was read",
                hint="run it again when nobody writes there",
            )

    def read(self, file: str, *, limit: int = LIMIT) -> bytes | None:
        """The bytes of a regular file, or ``None`` where there is none.

        Raises:
            ProjectError: It is no regular file, is over ``limit`` bytes, or cannot be read.
        """
        data = self._read(file, limit)
        self._note("read", file, data)
        return data

    def _read(self, file: str, limit: int) -> bytes | None:
        return self._replaced[file] if file in self._replaced else self._stored(file, limit)

    def _stored(self, file: str, limit: int) -> bytes | None:
        try:
            # Without O_NONBLOCK, opening a named pipe waits for a writer.
            number = os.open(self._root / file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            if (self._root / file).is_symlink():  # no file, and no sign that there shall be none
                raise ProjectError(f"{file}: a link that leads nowhere") from None
            return None
        except OSError as error:
            raise ProjectError(f"{file}: cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise ProjectError(f"{file}: expected a file, got something else")
        with os.fdopen(number, "rb") as stream:
            data = stream.read(limit + 1)
        if len(data) > limit:
            raise ProjectError(f"{file}: more than {limit} bytes")
        return data

    def names(self, directory: str) -> tuple[str, ...]:
        """The sorted names in a directory, hidden ones and ``README*`` aside; empty where there is
        no directory."""
        try:
            names = [path.name for path in (self._root / directory).iterdir()]
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise ProjectError(f"{directory}: cannot be listed: {error.strerror}") from error
        names += [
            path.name for path in map(PurePath, self._replaced) if str(path.parent) == directory
        ]
        found = tuple(sorted({name for name in names if not name.startswith((".", "README"))}))
        self._note("names", directory, os.fsencode("\0".join(found)))
        return found

    def is_directory(self, directory: str) -> bool:
        """Whether there is such a directory."""
        there = (self._root / directory).is_dir()
        self._note("is_directory", directory, b"yes" if there else None)
        return there

    def tree(self, directory: str) -> tuple[str, ...]:
        """Every file below a directory, hidden ones too, by its path there, sorted.

        Raises:
            ProjectError: A link that leads out of the project, to a directory or in a circle, a
                device, a name that is not UTF-8, a directory that cannot be listed.
        """
        top = self._root / directory
        self._contained(top, directory)
        try:
            found = tuple(sorted(self._walk(top, directory, "")))
        except OSError as error:  # a loop of links, no permission, or gone meanwhile
            where = os.path.relpath(error.filename or top, self._root)
            raise ProjectError(f"{where}: cannot be read: {error.strerror}") from error
        self._note("tree", directory, os.fsencode("\0".join(found)))
        return found

    QUESTIONS: ClassVar[dict[str, Callable[..., object]]] = {
        "read": read,
        "names": names,
        "is_directory": is_directory,
        "tree": tree,
    }

    def replace(self, file: str, change: Callable[[bytes | None], bytes], *, limit: int) -> bool:
        """Put what ``change`` makes of a file's bytes in its place; returns whether they differ.

        Raises:
            EnvironmentFault, ProjectError: As for :meth:`replace_all`.
        """
        return bool(self.replace_all((file,), lambda old: {file: change(old[file])}, limit=limit))

    def replace_all(
        self,
        files: Iterable[str],
        change: Callable[[Mapping[str, bytes | None]], Mapping[str, bytes]],
        *,
        limit: int,
    ) -> tuple[str, ...]:
        """Put what ``change`` makes of the bytes of ``files`` (``None`` for no such file) in place
        of some of them; returns those that differ.

        Others who replace files of this project wait, so that no change is lost. Each file appears
        whole or not at all, also after a kill, and none before all are ready; its mode stays, and
        a link stays a link. Files that are ``replaced`` are taken as they are on disk.

        Raises:
            EnvironmentFault: A directory cannot be written.
            ProjectError: As for ``read``; whatever ``change`` raises leaves all files as they were.
        """
        with durable.held(self._root), ExitStack() as stack:
            old = {file: self._stored(file, limit) for file in files}
            new = {file: data for file, data in change(old).items() if data != old[file]}
            ready = [
                (file, *_staged(stack, Path(os.path.realpath(self._root / file)), data, file))
                for file, data in new.items()
            ]
            for file, temporary, path in ready:
                with durable.writing(file):
                    durable.rename(temporary, path)
            return tuple(new)

    def _walk(self, top: Path, directory: str, below: str) -> Iterator[str]:
        with os.scandir(top / below) as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                if not path.isprintable():
                    raise ProjectError(f"{directory}: the name of a file is not text: {path!r}")
                if entry.is_dir(follow_symlinks=False):
                    yield from self._walk(top, directory, path)
                    continue
                self._contained(top / path, f"{directory}/{path}")
                if not entry.is_file():
                    raise ProjectError(f"{directory}/{path}: expected a file, got something else")
                yield path

    def _contained(self, path: Path, file: str) -> None:
        root = os.path.realpath(self._root)
        real = os.path.realpath(path)
        if os.path.commonpath((root, real)) != root:
            raise ProjectError(
                f"{file}: a link that leads out of the project, to {real!r}",
                hint="put the file itself there",
            )


def _staged(stack: ExitStack, path: Path, data: bytes, file: str) -> tuple[Path, Path]:
    """A file with ``data`` beside the place where it is to be, and that place. Under the lock, so
    that one name will do."""
    with durable.writing(file):
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        temporary = path.with_name(f".{path.name}.tmp")
        return stack.enter_context(durable.staged(temporary, data, mode)), path


def elsewhere(root: Path) -> str:
    """Where a project may be, if it is not at ``root``: a hint."""
    with suppress(FileNotFoundError):  # the working directory itself may be gone
        for above in root.absolute().parents:
            if (above / "variants").is_dir():
                return f"-C {os.path.relpath(above)} is a project: did you mean that one?"
    return "give the project's directory with -C, or start one with builder init"
