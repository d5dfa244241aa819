"""A copy of some directories for a program to work on, and the judgement of what it left there.

What a program sees is a function of the image's files alone: the same directories, the same
contents, on every machine. What it left is refused as a whole or becomes the changes of a step.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from builder.changes import Change, Inline, Put, Remove
from builder.digest import Digest
from builder.errors import PatchError, SandboxError
from builder.kept import python_text
from builder.observed import Observed
from builder.outcome import FileOutcome
from builder.sandbox import Finished, Job, Laid, LeftFile, LeftLink, LeftOther
from builder.tree import Entry
from builder.verdict import Verdict

_log = logging.getLogger(__name__)
_PERMISSIONS = 0o777
_REJECTS = (".rej", ".orig")
_COMPILED = (".pyc", ".pyo")
_LINES, _WIDTH = 20, 500


def laid(
    view: Observed, directories: Iterable[str], *, whole: Collection[str] = ()
) -> tuple[Laid, ...]:
    """What a program finds below ``directories``, and the files ``whole``, wherever they are.

    The text of Python packages (:func:`builder.kept.python_text`) is there with its content, and
    so is each of ``whole``, whatever it is. Everything else, libraries and headers most of all, is
    a hole of its size: to have the content of those, a layer of the base would have to be streamed
    once more. Compiled Python files and the links of the image are left out.
    """
    view.prefetch(whole)
    entries = {entry.path: entry for path in directories for entry in view.below(path)}
    entries |= {path: entry for path in whole if (entry := view.stat(path)) is not None}
    files = {path: entry for path, entry in sorted(entries.items()) if entry.is_file}
    if links := len(entries) - len(files):
        _log.debug("%d links and other things that are no files are not laid out", links)
    contents = view.read_many(
        path for path, entry in files.items() if path in whole or python_text(entry)
    )
    return tuple(_laid(entry, contents.get(path)) for path, entry in files.items())


def _laid(entry: Entry, data: bytes | None) -> Laid:
    size = entry.size if data is None else 0
    return Laid(path=entry.path, data=data, size=size, mode=entry.mode & _PERMISSIONS)


class Taken(NamedTuple):
    """What a program did, as a step wants it: one change and one outcome a file, by path."""

    changes: tuple[Change, ...]
    files: tuple[FileOutcome, ...]


def taken(finished: Finished, view: Observed, *, job: Job, at: str) -> Taken:
    """What became of the files of ``job``. Compiled Python files are dropped: they follow from the
    others, and Python makes them anew.

    Permission bits that were changed are part of the change; all others are kept from the image.

    Raises:
        SandboxError: It left a link, something else that is no file, a set-id bit, or a name that
            is not all letters that can be shown.
        PatchError: ``refused``: it changed a file whose content it was not shown, made one where
            the image has something that it did not see, or left the rejects of a patch program.
    """
    found = _Judge(view, job)
    left = [item for item in finished.left if not is_compiled(item.path)]
    unsafe = [line for item in left for line in found.unsafe(item)]
    if unsafe:
        raise SandboxError(
            f"{at}: the program left what cannot be taken: {'; '.join(unsafe)}",
            hint="only regular files are taken from a sandbox, with permission bits up to 0777",
        )
    files = [item for item in left if isinstance(item, LeftFile)]
    findings = [line for item in files if (line := found.refusal(item)) is not None]
    findings += [line for path in finished.removed if (line := found.unseen(path)) is not None]
    if findings:
        raise PatchError(
            f"{at}: {len(findings)} of the program's changes cannot be taken",
            verdict=Verdict.REFUSED,
            findings=tuple(findings),
        )
    gone = [path for path in finished.removed if path not in {item.path for item in left}]
    pairs = [*map(found.written, files), *map(found.removed, gone)]
    pairs.sort(key=lambda pair: pair[0].path)
    return Taken(tuple(change for change, _ in pairs), tuple(outcome for _, outcome in pairs))


def last_lines(said: bytes) -> str | None:
    """The end of what a program said, as it can be shown on a terminal, which it must not steer."""
    lines = said.decode("utf-8", "replace").splitlines()[-_LINES:]
    return "\n".join(_shown(line[:_WIDTH]) for line in lines) or None


def _shown(line: str) -> str:
    return "".join(
        letter if letter.isprintable() or letter == "\t" else ascii(letter)[1:-1] for letter in line
    )


def is_compiled(path: str) -> bool:
    """Whether a path is that of what Python compiled."""
    return path.endswith(_COMPILED) or "__pycache__" in path.split("/")


class _Judge:
    """Holds what was left against what was laid."""

    def __init__(self, view: Observed, job: Job) -> None:
        self._view = view
        self._laid = {item.path: item for item in job.files}

    def unsafe(self, item: LeftFile | LeftLink | LeftOther) -> Iterator[str]:
        match item:
            case LeftLink():
                yield f"{item.path!r}, a link to {item.target!r}"
            case LeftOther():
                yield f"{item.path!r}, {item.kind}"
            case LeftFile() if item.mode & ~_PERMISSIONS:
                yield f"{item.path!r}, of mode {item.mode:04o}"
            case LeftFile() if not item.path.isprintable():
                yield f"{item.path!r}, a name that nobody can read"
            case _:
                pass

    def refusal(self, item: LeftFile) -> str | None:
        """Why a file cannot be taken, if so."""
        path = item.path
        if path.endswith(_REJECTS):
            return f"{path}: left by a patch program, of whose change a part did not apply"
        if path in self._laid:
            return self.unseen(path)
        if self._view.resolve(path) != path:
            return f"{path}: is below a link of the image, which the program did not see"
        if (entry := self._view.stat(path)) is not None:
            return f"{path}: the image has a {entry.kind} there, which the program did not see"
        return None

    def unseen(self, path: str) -> str | None:
        """Whether a file is other than text, and was changed or removed unseen."""
        if path in self._laid and self._laid[path].data is not None:
            return None
        return f"{path}: was changed without its content having been there: it is no Python text"

    def written(self, item: LeftFile) -> tuple[Change, FileOutcome]:
        old = self._laid.get(item.path)
        mode = None if old is not None and old.mode == item.mode else item.mode
        content = Inline(item.data)
        outcome = FileOutcome(
            path=item.path,
            verdict=Verdict.APPLIED,
            pre=self._before(item.path),
            post=content.digest,
        )
        return Put(path=item.path, content=content, mode=mode), outcome

    def removed(self, path: str) -> tuple[Change, FileOutcome]:
        outcome = FileOutcome(path=path, verdict=Verdict.APPLIED, pre=self._before(path))
        return Remove(path=path), outcome

    def _before(self, path: str) -> Digest | None:
        data = self._laid[path].data if path in self._laid else None
        return None if data is None else Digest.of(data)
