"""Everything below a directory of a stack of layers, from one pass over each of their indexes.

The same answer as asking for children and entries one by one, for whoever wants all of them. See
:mod:`builder.merged` for the rules; compiled files (``__pycache__``) are left out, because they
follow from the others.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.lines import OPAQUE, WHITEOUT, decode
from builder.tree import Entry

_COMPILED = b"/__pycache__/"


class Listed(NamedTuple):
    """An entry that is no directory, and which of the indexes has it."""

    entry: Entry
    number: int


def below(directory: str, indexes: Iterable[FileIndex]) -> dict[str, Listed]:
    """By path, what ``indexes`` have below ``directory`` together; the topmost comes first. What
    hides the directory itself is not looked at.

    Raises:
        IntegrityError: A layer has files below something that is no directory in a lower one.
    """
    found: dict[str, Listed] = {}
    above, said = _Above(), _Said()
    for number, index in enumerate(indexes):
        above.take(said)
        said = _Said()
        for path, word, line in _lines(index, directory):
            if word == WHITEOUT:
                said.gone.add(path)
            elif word == OPAQUE:
                said.shut.add(path)
            elif word.startswith(b"dir "):
                said.there.add(path)
            else:
                said.files.add(path)
                if not above.hides(path):
                    found[path] = Listed(decode(path, line), number)
    return found


def _lines(index: FileIndex, directory: str) -> Iterator[tuple[str, bytes, bytes]]:
    """Path, what is said of it, and the whole line."""
    for path, line in index.below(directory):
        if _COMPILED not in line:
            yield path, line.partition(b" ")[2], line


class _Said:
    """The paths of one layer, by what it says of them."""

    __slots__ = ("files", "gone", "shut", "there")

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.there: set[str] = set()
        self.gone: set[str] = set()
        self.shut: set[str] = set()


class _Above:
    """What the layers so far do to those below them."""

    def __init__(self) -> None:
        self._stated: set[str] = set()  # there, or gone, as upper layers say in so many words
        self._covers: set[str] = set()  # nothing of lower layers shows below these
        self._implied: set[str] = set()  # directories because of what upper layers have in them
        self._known: dict[str, bool] = {"": False}

    def take(self, said: _Said) -> None:
        """One layer more."""
        self._stated |= said.files | said.there | said.gone
        self._covers |= said.files | said.gone | said.shut
        for path in said.files | said.there | said.gone | said.shut:
            while (path := path.rpartition("/")[0]) and path not in self._implied:
                self._implied.add(path)
        self._implied |= said.shut
        self._known = {"": False}

    def hides(self, path: str) -> bool:
        """Whether a file of the next layer is not to be seen."""
        if not (self._stated or self._implied):
            return False
        if path in self._stated or self._covered(path.rpartition("/")[0]):
            return True
        if path in self._implied:
            raise IntegrityError(
                f"{path!r}: a layer has files below it, and a lower layer has no directory there"
            )
        return False

    def _covered(self, directory: str) -> bool:
        """Whether lower layers show nothing in a directory."""
        if (known := self._known.get(directory)) is None:
            known = directory in self._covers or self._covered(directory.rpartition("/")[0])
            self._known[directory] = known
        return known
