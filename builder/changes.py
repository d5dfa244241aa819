"""What a step does to a tree: changes, as values. ``builder.layer`` turns them into bytes."""

from io import BytesIO
from typing import BinaryIO, Protocol, TypeAlias

from builder.digest import Digest
from builder.value import field, value


class Content(Protocol):
    """The bytes of a new file: known by size and digest before they are read."""

    @property
    def size(self) -> int: ...

    @property
    def digest(self) -> Digest: ...

    def open(self) -> BinaryIO:
        """A fresh stream from the first byte."""


@value(kw_only=False)
class Inline:
    """Content that is in memory."""

    data: bytes = field(repr=False)

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def digest(self) -> Digest:
        return Digest.of(self.data)

    def open(self) -> BinaryIO:
        return BytesIO(self.data)


@value
class Put:
    """A regular file with this content, in place of whatever file the tree has at ``path``.

    ``mode`` is ``None`` to keep the mode of the file that is replaced, 0644 where there is none.
    Owner and xattrs are always those of the replaced file, or 0:0 and none.
    """

    path: str
    content: Content
    mode: int | None = None


@value
class Symlink:
    """A symbolic link at ``path`` with the text ``target``."""

    path: str
    target: str


@value
class Remove:
    """No file at ``path`` any more. The tree must have a file or link there."""

    path: str


Change: TypeAlias = Put | Symlink | Remove
