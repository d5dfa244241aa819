"""A commit beside the files of a working tree, byte for byte.

Not by git's own comparison: that passes over what ``.gitignore`` names and what filters and line
ends do to files, and who reads the files themselves sees both.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from builder.adapters.git_remote import GitRepository
from builder.digest import ObjectId

_LINK = "120000"
_JUNK = frozenset({".git", "__pycache__"})
_Entry = tuple[str, str]
"""Mode and id, as in a tree."""


def different(
    git: GitRepository, top: Path, commit: str, paths: tuple[str, ...]
) -> tuple[str, ...]:
    """What is at and below ``paths`` and is not the same in ``commit`` and below ``top``, sorted.

    A link is compared, and then what it leads to; one out of the working tree is no part of any
    commit, and different. So is a submodule, whose files are not in the commit.
    """
    like = ObjectId.parse(commit)
    waiting, seen = list(paths), set[str]()
    found: set[str] = set()
    while waiting:
        if (path := waiting.pop()) in seen:
            continue
        seen.add(path)
        there, here = _committed(git, commit, path), dict(_on_disk(top, path, like=like))
        found |= {name for name in there.keys() | here.keys() if there.get(name) != here.get(name)}
        for name in (name for name, (mode, _) in here.items() if mode == _LINK):
            target = os.path.relpath(os.path.realpath(top / name), os.path.realpath(top))
            if target.partition("/")[0] == "..":
                found.add(name)
            else:
                waiting.append(target)
    return tuple(sorted(found))


def _committed(git: GitRepository, commit: str, path: str) -> dict[str, _Entry]:
    listed = git.ask("ls-tree", "-r", "-z", "--full-tree", commit, "--", path)
    lines = (line.partition("\t") for line in listed.decode("utf-8", "surrogateescape").split("\0"))
    fields = ((name, head.split(" ")) for head, _, name in lines if name)
    return {name: (mode, found) for name, (mode, _, found) in fields}


def _on_disk(top: Path, path: str, *, like: ObjectId) -> Iterator[tuple[str, _Entry]]:
    place = top / path
    try:
        status = place.lstat()
    except OSError:
        return  # it is not there
    if stat.S_ISDIR(status.st_mode):
        for name in sorted({item.name for item in place.iterdir()} - _JUNK):
            yield from _on_disk(top, f"{path}/{name}", like=like)
    elif stat.S_ISLNK(status.st_mode):
        data = os.fsencode(os.readlink(place))  # noqa: PTH115 - a Path is not that text
        yield path, (_LINK, ObjectId.of("blob", data, like=like).hex)
    elif stat.S_ISREG(status.st_mode):
        mode = "100755" if status.st_mode & stat.S_IXUSR else "100644"
        yield path, (mode, ObjectId.of("blob", place.read_bytes(), like=like).hex)
    else:
        yield path, ("", "")
