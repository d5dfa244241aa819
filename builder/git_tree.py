"""Directories of git commits: the id that git gives to some files, and one text that holds them.

git, Documentation/technical ("gitformat-pack", "hash-function-transition") and tree.c: a tree is
its entries ``MODE NAME NUL ID``, sorted by name as bytes, where the name of a directory counts with
a slash at its end; an object's id is the hash of ``KIND SIZE NUL`` and its content.
"""

from collections.abc import Iterable
from typing import NamedTuple

from builder import canonical
from builder.digest import ObjectId
from builder.errors import IntegrityError
from builder.ports import GitFile
from builder.tree import normal, parents

_DIRECTORY = b"40000"
_HEAD_LIMIT = 16 << 20


class _Entry(NamedTuple):
    sorts_as: bytes
    mode: bytes
    name: bytes
    object_id: ObjectId


def tree_id(files: Iterable[GitFile], *, like: ObjectId) -> ObjectId:
    """The id of the tree that holds exactly ``files``, by the hash that ``like`` was made with.

    git has no empty directories: what has no file below it is not there.
    """
    directories: dict[str, list[_Entry]] = {"": []}
    for file in files:
        for parent in parents(file.path):
            directories.setdefault(parent, [])
        directory, _, name = file.path.rpartition("/")
        raw = name.encode("utf-8", "surrogateescape")
        blob = ObjectId.of("blob", file.data, like=like)
        directories[directory].append(_Entry(raw, file.mode.encode(), raw, blob))
    for path in sorted(directories, key=lambda path: path.count("/"), reverse=True):
        if path:
            directory, _, name = path.rpartition("/")
            raw = name.encode("utf-8", "surrogateescape")
            made = _tree(directories[path], like=like)
            directories[directory].append(_Entry(raw + b"/", _DIRECTORY, raw, made))
    return _tree(directories[""], like=like)


def _tree(entries: Iterable[_Entry], *, like: ObjectId) -> ObjectId:
    lines = (
        b"%b %b\0%b" % (entry.mode, entry.name, bytes.fromhex(entry.object_id.hex))
        for entry in sorted(entries)
    )
    return ObjectId.of("tree", b"".join(lines), like=like)


def pack(files: Iterable[GitFile]) -> bytes:
    """The files one after the other, with a line before that says which they are.

    Raises:
        IntegrityError: A name is not UTF-8.
    """
    kept = tuple(files)
    head = canonical.encode([[file.path, file.mode, len(file.data)] for file in kept])
    return b"\n".join((head, b"".join(file.data for file in kept)))


def unpack(raw: bytes) -> tuple[GitFile, ...]:
    """The inverse of :func:`pack`. Whether they are the right files, :func:`tree_id` says.

    Raises:
        IntegrityError: Not one of ours.
    """
    head, _, data = raw.partition(b"\n")
    value = canonical.decode(head, at="packed files", limit=_HEAD_LIMIT)
    files: list[GitFile] = []
    start = 0
    try:
        for path, mode, size in value:
            if normal(path, at="packed files") != path or not isinstance(mode, str):
                raise ValueError(path)
            files.append(GitFile(path=path, mode=mode, data=data[start : start + size]))
            start += size
    except (AttributeError, TypeError, ValueError) as error:
        raise IntegrityError("packed files: not a list of paths, modes and sizes") from error
    return tuple(files)
