"""Laying files, and telling afterwards what has become of them."""

from __future__ import annotations

import os
import stat

from builder.adapters.sandbox.inside.wire import exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from builder.adapters.sandbox.inside.wire import Source

EPOCH = 315532800
"""The time of every laid file: as in the layers that builder makes."""

FILE, LINK, OTHER = "file", "link", "other"

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
_CHUNK = 1 << 20
_MASKED = 0o7022
"""The permission bits that creating a file does not give."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class LeftTooMuchError(Exception):
    """What a program left cannot be taken back."""


class Laid:
    """A file that is to be there: its path from the root, its permission bits, and its bytes, or
    ``None`` for ``size`` zero bytes."""

    __slots__ = ("data", "mode", "path", "size")

    def __init__(self, path: str, mode: int, size: int, data: bytes | None) -> None:
        self.path = path
        self.mode = mode
        self.size = size
        self.data = data

    def is_in(self, file: int, size: int) -> bool:
        """Whether the open ``file`` has these bytes."""
        if size != self.size:
            return False
        if self.data is not None:
            return read(file, size) == self.data
        # No blocks: nobody has written to it, and nothing of it need be read.
        return os.fstat(file).st_blocks == 0 or not any(map(any, chunks(file)))


class Left:
    """What is not as it was laid. ``detail`` is a link's target, or a word for what it is."""

    __slots__ = ("detail", "kind", "mode", "path", "size")

    def __init__(
        self, path: str, kind: str, detail: str = "", mode: int = 0, size: int = 0
    ) -> None:
        self.path = path
        self.kind = kind
        self.detail = detail
        self.mode = mode
        self.size = size

    def row(self) -> tuple[str, ...]:
        """The fields as strings."""
        return self.path, self.kind, self.detail, str(self.mode), str(self.size)


def announced(rows: list[str]) -> list[tuple[str, int, int, bool]]:
    """Path, mode, size and whether there are bytes, of each file that will be laid."""
    return [
        (path, int(mode), int(size), bool(data))
        for path, mode, size, data in zip(*(iter(rows),) * 4, strict=True)
    ]


def lay(files: list[tuple[str, int, int, bool]], source: Source) -> Iterator[Laid]:
    """Make the files whose bytes come from ``source``, and the directories above them."""
    made = set()
    for path, mode, size, has_data in files:
        parent = path.rpartition("/")[0]
        if parent not in made:
            os.makedirs(f"/{parent}", mode=0o755, exist_ok=True)
            made.add(parent)
        data = exactly(source, size) if has_data else None
        _make(f"/{path}", mode, size, data)
        yield Laid(path, mode, size, data)


def _make(path: str, mode: int, size: int, data: bytes | None) -> None:
    file = os.open(path, _WRITE, mode)
    try:
        if data is None:
            os.truncate(file, size)
        else:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        os.utime(file, (EPOCH, EPOCH))
        if mode & _MASKED:
            os.chmod(file, mode)
    finally:
        os.close(file)


def changes(roots: list[str], laid: dict[str, Laid], limit: int) -> tuple[list[Left], list[str]]:
    """What below ``roots`` is not as it was laid, and which files are gone, both sorted.

    Nothing but this process runs any more, so that a name means the same twice; links are not
    followed.

    Raises:
        LeftTooMuchError: The changed files have more than ``limit`` bytes, or names that are too
            long to say.
    """
    left: list[Left] = []
    seen: set[str] = set()
    for entry in _walk(roots):
        path = entry.path[1:]
        seen.add(path)
        if (item := _difference(entry, laid.get(path))) is not None:
            left.append(item)
            limit -= item.size
            if limit < 0:
                raise LeftTooMuchError("it left more bytes than it may write, in sparse files")
    return sorted(left, key=lambda item: item.path), sorted(laid.keys() - seen)


def _walk(roots: list[str]) -> Iterator[os.DirEntry[str]]:
    """Everything below ``roots`` that is not a directory."""
    todo = [f"/{root}" for root in roots]
    while todo:
        directory = todo.pop()
        try:
            os.chmod(directory, 0o700)
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        yield entry
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise LeftTooMuchError(f"it left a directory that cannot be read: {reason}") from error


def _difference(entry: os.DirEntry[str], laid: Laid | None) -> Left | None:
    status = entry.stat(follow_symlinks=False)
    path = entry.path[1:]
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        return Left(path, LINK, os.readlink(entry.path))
    if kind != stat.S_IFREG:
        return Left(path, OTHER, _KINDS.get(kind, "neither file nor link"))
    mode = stat.S_IMODE(status.st_mode)
    # A hard link is one more file: from here to another mount there can be none.
    if laid is None or mode != laid.mode or not _is_as_laid(entry.path, status, laid):
        return Left(path, FILE, "", mode, status.st_size)
    return None


def _is_as_laid(path: str, status: os.stat_result, laid: Laid) -> bool:
    # Times are no evidence: writing through a shared mapping need not change them.
    file = open_left(path)
    try:
        return laid.is_in(file, status.st_size)
    finally:
        os.close(file)


def open_left(path: str) -> int:
    """A descriptor to read a regular file with, whatever its permission bits are."""
    try:
        return os.open(path, _READ)
    except PermissionError:
        os.chmod(path, 0o600, follow_symlinks=True)
        return os.open(path, _READ)


def read(file: int, size: int) -> bytes:
    """All ``size`` bytes of an open file."""
    data = os.read(file, size)
    if len(data) == size:
        return data
    return data + b"".join(chunks(file))


def chunks(file: int) -> Iterator[bytes]:
    """The rest of an open file."""
    while data := os.read(file, _CHUNK):
        yield data
