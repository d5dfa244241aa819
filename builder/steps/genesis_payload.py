"""The payload of a patch set, as an image and a bake get it."""

import posixpath
from collections.abc import Iterator
from typing import TypeAlias

from builder.changes import Change, Inline, Put, Symlink
from builder.errors import PatchError
from builder.ports import GitFile, GitSubtree
from builder.steps.scratch import is_compiled
from builder.tree import View
from builder.value import field, value
from builder.verdict import Verdict

_LINK = "120000"

File: TypeAlias = tuple[str, bytes, int]
"""Path in the image, content, mode."""


@value
class Payload:
    """What goes into the packages directory. A sandbox has no links: ``through`` is what is seen
    through them, as files of their own."""

    files: tuple[File, ...] = field(repr=False)
    links: tuple[Symlink, ...] = ()
    through: tuple[File, ...] = field(default=(), repr=False)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the image gets of it."""
        puts = (Put(path=path, content=Inline(data), mode=mode) for path, data, mode in self.files)
        return (*puts, *self.links)


def laid(tree: GitSubtree, directory: str, view: View, *, at: str) -> Payload:
    """The payload ``tree`` at ``directory``, without what was compiled from its files: Python makes
    that anew, and would believe it.

    Raises:
        PatchError: ``refused``: the directory is there already, or a link leads to what is no file
            or directory of the payload.
    """
    if view.stat(directory) is not None:
        raise PatchError(
            f"{at}: {directory!r} is in the image already",
            verdict=Verdict.REFUSED,
            path=directory,
            hint="one patch set goes into an image, once, and into one that has none",
        )
    items = [item for item in tree.files if not is_compiled(item.path)]
    files = {item.path: item for item in items if item.mode != _LINK}
    links: list[Symlink] = []
    through: list[File] = []
    for item in items:
        if item.mode == _LINK:
            target = item.data.decode("utf-8", "surrogateescape")
            seen = list(_seen(item, target, files))
            if not seen:
                raise PatchError(
                    f"{at}: the link {item.path!r} of the patch set leads to {target!r}, which is"
                    " no file or directory of it",
                    verdict=Verdict.REFUSED,
                    path=f"{directory}/{item.path}",
                )
            links.append(Symlink(path=f"{directory}/{item.path}", target=target))
            through += (_file(file, f"{directory}/{path}") for path, file in seen)
    own = tuple(_file(file, f"{directory}/{path}") for path, file in files.items())
    return Payload(files=own, links=tuple(links), through=tuple(through))


def _seen(link: GitFile, target: str, files: dict[str, GitFile]) -> Iterator[tuple[str, GitFile]]:
    """The files that are seen through a link, under its own name."""
    if target.startswith("/"):
        return
    place = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), target))
    for path, file in files.items():
        if path == place:
            yield link.path, file
        elif path.startswith(f"{place}/"):
            yield link.path + path.removeprefix(place), file


def _file(file: GitFile, path: str) -> File:
    return path, file.data, 0o755 if file.mode == "100755" else 0o644
