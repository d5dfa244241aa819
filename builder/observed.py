"""A view that remembers what was asked of it, so that a step's output can be used again wherever
the same questions have the same answers."""

from collections.abc import Iterable, Mapping, Sequence

from builder.derivation import Read
from builder.digest import Digest
from builder.lines import encode, escape
from builder.python_layout import PythonLayout, discover
from builder.tree import Entry, View


class Observed:
    """A :class:`~builder.tree.View` over another, recording every question and its answer.

    Reading a file records its metadata with its digest: the content is covered by that.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._reads: dict[tuple[str, str], object] = {}
        self._known: set[str] = set()  # what an answer of below covers

    @property
    def reads(self) -> tuple[Read, ...]:
        """What was asked so far, each question once, in the order of asking.

        The order matters to :func:`answers_alike`: a step asks its next question because of the
        answers before it, and may not be asked that question of a tree that gave others.
        """
        return tuple((*key, answer) for key, answer in self._reads.items())

    def stat(self, path: str) -> Entry | None:
        entry = self._view.stat(path)
        self._reads["stat", path] = _stat(entry)
        return entry

    def children(self, path: str, *, prefix: str = "") -> tuple[str, ...]:
        names = self._view.children(path, prefix=prefix)
        self._reads["children", f"{path}/{prefix}"] = _children(names)
        return names

    def below(self, path: str) -> tuple[Entry, ...]:
        """One read, however many files there are: whoever lays out a whole directory depends on
        all of it."""
        entries = self._view.below(path)
        self._reads["below", path] = _below(entries)
        self._known.update(entry.path for entry in entries)
        return entries

    def read_many(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        wanted = tuple(paths)
        for path in wanted:
            if path not in self._known:
                self.stat(path)
        return self._view.read_many(wanted)

    def read(self, path: str) -> bytes:
        self.stat(path)
        return self._view.read(path)

    def resolve(self, path: str) -> str:
        resolved = self._view.resolve(path)
        self._reads["resolve", path] = resolved
        return resolved

    def python(self) -> PythonLayout:
        """Where the tree's Python keeps its packages; the answer is one read, not the listings
        from which it was found."""
        layout = discover(self._view)
        self._reads["python", ""] = layout.record()
        return layout

    def prefetch(self, paths: Iterable[str]) -> None:
        self._view.prefetch(paths)


_UNKNOWN = object()
"""No answer: the question is one of another version of builder."""


def answers_alike(view: View, reads: Sequence[Read]) -> bool:
    """Whether ``view`` answers every recorded question as it was answered then.

    Asks in the recorded order and stops at the first other answer. What a question raises is
    therefore what the step itself would have met.
    """
    return all(_ask(view, operation, path) == answer for operation, path, answer in reads)


def _ask(view: View, operation: str, path: str) -> object:
    match operation:
        case "stat":
            return _stat(view.stat(path))
        case "children":
            directory, _, prefix = path.rpartition("/")
            return _children(view.children(directory, prefix=prefix))
        case "below":
            return _below(view.below(path))
        case "resolve":
            return view.resolve(path)
        case "python":
            return discover(view).record()
        case _:
            return _UNKNOWN


def _stat(entry: Entry | None) -> object:
    return None if entry is None else entry.record()


def _below(entries: tuple[Entry, ...]) -> object:
    """Of each file all that its index line says: path, mode, owner, size, content, xattrs."""
    lines = (escape(entry.path) + encode(entry, entry.digest) for entry in entries)
    return str(Digest.of(b"".join(lines)))


def _children(names: tuple[str, ...]) -> object:
    return str(Digest.of("\0".join(names).encode("utf-8", "surrogateescape")))
