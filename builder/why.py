"""Why a file of an image is as it is: the steps that wrote it, the pins that they worked with, and
what the base had. Over the record of a build and the indexes of its layers: nothing is fetched."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from builder.build_record import Record, RecordedStep
from builder.digest import Digest
from builder.errors import IntegrityError, ProjectError, UsageError
from builder.files import FileIndex
from builder.layer_files import OwnLayer, known
from builder.merged import MergedView
from builder.node import did_you_mean, nearest
from builder.oci import Manifest
from builder.outcome import FileOutcome
from builder.ports import Store
from builder.tree import Entry, normal
from builder.verdict import Verdict

_LISTED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One step that wrote or removed a file. ``post`` is ``None`` where it was removed."""

    step: str
    kind: str
    pins: tuple[str, ...]
    verdict: str
    pre: Digest | None
    post: Digest | None
    offsets: tuple[int, ...] = ()
    patches: tuple[str, ...] = ()
    """Those of a patch set that wrote to it, in the order of their run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFile:
    """What the base has at a path: the layer that brings it, and its content (``None`` for a link
    or a device)."""

    layer: Digest
    content: Digest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """How a file came to be as it is.

    ``path`` is where the given one leads, all links on the way followed. ``touches`` are the steps
    that wrote or removed it, in their order: the last one is what the image shows. ``link`` is its
    target where it is a link itself. ``base`` is what the base has there; with ``base_read``
    false, a layer of the base was never read on this machine, and nobody knows.
    """

    path: str
    touches: tuple[Touch, ...]
    link: str | None = None
    base: BaseFile | None = None
    base_read: bool = True


def trail(record: Record, path: str, store: Store) -> Trail:
    """Follow a file through the layers of a build.

    Args:
        record: The build.
        path: Absolute, or the end of the path of a file: of one that a step wrote, else of one
            that the base has.
        store: Has the indexes of the layers.

    Raises:
        UsageError: There is no such file and never was, a directory is there, or more than one
            path ends so.
        ProjectError: The store has lost what the build was made of.
    """
    _check_there(record, store)
    base = _base_layers(record, store)
    steps = [step for step in record.steps if step.output.layer is not None]
    own = [OwnLayer(step.output.layer, store) for step in steps if step.output.layer is not None]
    view = MergedView([*base, *own])
    wanted = _absolute(path, record, [layer.index for layer in own], base)
    try:
        real = view.resolve(wanted)
        entry = view.stat(real)
        below = MergedView(base).stat(real)
    except _Unread:
        return _partial(wanted, steps, own)
    except IntegrityError as error:
        raise UsageError(f"no file {path!r} in the image: {error.message}") from error
    touches = tuple(_touches(steps, own, real))
    if entry is not None and entry.is_directory:
        raise UsageError(f"/{real} is a directory", hint=f"it has: {_some(view.children(real))}")
    if entry is None and not touches and below is None:
        directory, _, name = real.rpartition("/")
        raise UsageError(
            f"no file {path!r} in the image, and neither base nor steps ever had it",
            hint=did_you_mean(nearest(name, view.children(directory))),
        )
    return Trail(
        path=real,
        touches=touches,
        link=None if entry is None else entry.target,
        base=None if below is None else _base_file(below, base),
    )


class _Unread(LookupError):
    """The index of a base layer that this machine never read."""


class _BaseIndex:
    """A layer of the base, as far as the store knows it."""

    def __init__(self, digest: Digest, store: Store) -> None:
        self.digest = digest
        self._store = store

    @cached_property
    def index(self) -> FileIndex:
        note = known(self.digest, self._store)
        if note is None:
            raise _Unread(str(self.digest))
        try:
            return FileIndex(self._store.read(note["index"], limit=1 << 30))
        except KeyError as error:
            raise _Unread(str(self.digest)) from error

    def read(self, entry: Entry) -> bytes:
        raise RuntimeError(f"{entry.path!r}: only the index of a base layer is looked at")

    def read_many(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
        return ((entry, self.read(entry)) for entry in entries)

    def prefetch(self, paths: Iterable[str]) -> None:
        """Nothing is read."""


def _check_there(record: Record, store: Store) -> None:
    """``store verify --repair`` may have dropped what the build was made of."""
    made = [blob for step in record.steps for blob in step.output.blobs]
    for blob in made if record.base is None else [record.base.manifest, *made]:
        if not store.has(blob):
            raise ProjectError(
                f"image {record.digest}: blob {blob}, which it was made of, is not in the store",
                hint=f"builder build {record.variant} gets or makes it again",
            )


def _base_layers(record: Record, store: Store) -> list[_BaseIndex]:
    if record.base is None:
        return []
    digest = record.base.manifest
    manifest = Manifest.parse(store.read(digest), at=f"manifest {digest}")
    return [_BaseIndex(layer.digest, store) for layer in manifest.layers]


def _absolute(path: str, record: Record, own: list[FileIndex], base: list[_BaseIndex]) -> str:
    """The path from the root, for one that may be an end."""
    try:
        end = normal(path.strip("/"), at="PATH")
    except IntegrityError as error:
        raise UsageError(error.message) from error
    if path.startswith("/"):
        return end
    changed = {file.path for step in record.steps for file in step.output.files}
    found = {item for item in changed if item == end or item.endswith(f"/{end}")}
    found = found or {item for index in own for item in index.ending(end)}
    found = found or set(_ending_in_base(end, base))
    if len(found) > 1:
        raise UsageError(
            f"{path!r} is the end of {len(found)} paths: {_some(sorted(found))}",
            hint="write more of the path",
        )
    return found.pop() if found else end


def _ending_in_base(end: str, base: list[_BaseIndex]) -> Iterator[str]:
    for layer in base:
        try:
            yield from layer.index.ending(end)
        except _Unread:
            continue


def _partial(path: str, steps: list[RecordedStep], own: list[OwnLayer]) -> Trail:
    """The trail without the base. The steps' own paths lead through no links."""
    return Trail(path=path, touches=tuple(_touches(steps, own, path)), base_read=False)


def _touches(steps: list[RecordedStep], own: list[OwnLayer], path: str) -> Iterator[Touch]:
    for step, layer in zip(steps, own, strict=True):
        outcome = next((file for file in step.output.files if file.path == path), None)
        outcome = outcome or _installed(layer.index, path)
        if outcome is not None:
            yield Touch(
                step=step.name,
                kind=step.kind,
                pins=step.pins,
                verdict=str(outcome.verdict),
                pre=outcome.pre,
                post=outcome.post,
                offsets=outcome.offsets,
                patches=tuple(patch.name for patch in step.output.patches if path in patch.files),
            )


def _installed(index: FileIndex, path: str) -> FileOutcome | None:
    """What the layer says of a file that its step has too many of to list."""
    node = index.node(path)
    if node.entry is not None and not node.entry.is_directory:
        return FileOutcome(path=path, verdict=Verdict.APPLIED, post=node.entry.digest)
    return FileOutcome(path=path, verdict=Verdict.APPLIED) if node.whiteout else None


def _base_file(entry: Entry, base: list[_BaseIndex]) -> BaseFile:
    layer = next(layer for layer in reversed(base) if layer.index.lookup(entry.path) is not None)
    return BaseFile(layer=layer.digest, content=entry.digest)


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _LISTED
    return ", ".join(listed[:_LISTED]) + (f" and {more} more" if more > 0 else "")
