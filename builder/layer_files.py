"""The files of one layer, for the merged view: the base's layers and our own.

A base layer is streamed the first time a lookup reaches it, whole and verified, once per machine;
what stays in the store is its file index (named by digest, so that a lock can pin it), a pack with
the text files of its Python packages, and the table that says where in the pack each content is.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter

from builder import canonical, framing, notes
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.kept import KeptTable, python_text, unpack, unpack_quickly
from builder.oci import Descriptor
from builder.origin import Origin
from builder.outcome import LayerOutput
from builder.ports import Progress, Store
from builder.streams import counted, stored
from builder.tree import Entry

_log = logging.getLogger(__name__)
_INDEX_LIMIT = 1 << 30
_FILE_LIMIT = 1 << 30


class OwnLayer:
    """A layer of ours: index and table were made with it, and its blob is not compressed, so that
    each content can be read where it stands."""

    def __init__(self, layer: LayerOutput, store: Store) -> None:
        self._layer = layer
        self._store = store

    @cached_property
    def index(self) -> FileIndex:
        return FileIndex(self._store.read(self._layer.index))

    @cached_property
    def _table(self) -> KeptTable:
        return KeptTable(self._store.read(self._layer.table))

    def read(self, entry: Entry) -> bytes:
        """The verified content of a file of this layer."""
        ((_, data),) = self.read_many((entry,))
        return data

    def read_many(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """See :class:`builder.merged.LayerFiles`. In the order in which they stand."""
        placed = sorted(((self._place(entry), entry) for entry in entries), key=itemgetter(0))
        with self._store.open(self._layer.digest) as blob:
            ranges = framing.Ranges(blob)
            for (start, length), entry in placed:
                data = ranges.read(start, length)
                at = f"layer {self._layer.digest}: {entry.path!r}"
                yield entry, content_of(entry).check(data, at=at)

    def _place(self, entry: Entry) -> tuple[int, int]:
        digest = content_of(entry)
        place = self._table.find(digest)
        if place is None:
            raise IntegrityError(f"layer {self._layer.digest}: no content {digest} in its table")
        return place

    def prefetch(self, paths: Iterable[str]) -> None:
        """Nothing to do: all is at hand."""


class BaseLayer:
    """A layer of the base. See the module's docstring for what is read when.

    Args:
        descriptor: The blob.
        diff_id: What it inflates to.
        origin: Where the blob is had from.
        store: Where what is found stays.
        progress: Is told of the reading.
        expected: The digest of its file index, where a lock pins it.
    """

    def __init__(
        self,
        descriptor: Descriptor,
        diff_id: Digest,
        *,
        origin: Origin,
        store: Store,
        progress: Progress,
        expected: Digest | None = None,
    ) -> None:
        self._descriptor = descriptor
        self._expected = expected
        self._diff_id = diff_id
        self._origin = origin
        self._store = store
        self._progress = progress
        self._wanted: set[str] = set()

    def prefetch(self, paths: Iterable[str]) -> None:
        """Keep these files, too, when the layer is streamed."""
        self._wanted.update(paths)

    @property
    def index_digest(self) -> Digest:
        """The digest of its file index."""
        return self._note["index"]

    @cached_property
    def index(self) -> FileIndex:
        return FileIndex(self._store.read(self.index_digest, limit=_INDEX_LIMIT))

    @cached_property
    def _table(self) -> KeptTable:
        return KeptTable(self._store.read(self._note["table"], limit=_INDEX_LIMIT))

    def read(self, entry: Entry) -> bytes:
        """The verified content of a file of this layer: from the pack, or, for a file that nobody
        thought of when the layer was streamed, from the layer once more."""
        digest = content_of(entry)
        if (data := self._packed(digest)) is not None:
            return data
        if not self._store.has(digest):
            self._stream_again(entry)
        return self._store.read(digest, limit=_FILE_LIMIT)

    def read_many(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """As :meth:`read`, with the pack opened once."""
        rest: list[Entry] = []
        with self._store.open(self._note["pack"]) as pack:
            for entry in entries:
                digest = content_of(entry)
                place = self._table.find(digest)
                if place is None:
                    rest.append(entry)
                    continue
                pack.seek(place[0])
                yield entry, unpack_quickly(pack.read(place[1]), digest)
        yield from ((entry, self.read(entry)) for entry in rest)

    def _packed(self, digest: Digest) -> bytes | None:
        place = self._table.find(digest)
        if place is None:
            return None
        start, length = place
        with self._store.open(self._note["pack"]) as pack:
            pack.seek(start)
            return unpack(pack.read(length), digest)

    @cached_property
    def _note(self) -> dict[str, Digest]:
        """Digests of index, pack and table; made by streaming the layer where there are none."""
        key = self._descriptor.digest.hex
        if (note := self._recall()) is not None:
            return note
        with self._store.lock(f"layer-{key}"):
            # Another process may have been quicker while we waited.
            return self._recall() or self._stream()

    def _recall(self) -> dict[str, Digest] | None:
        note = known(self._descriptor.digest, self._store)
        if note is None:
            return None
        diff_id = note.pop("diff_id")
        if not all(self._store.has(digest) for digest in note.values()):
            return None
        if diff_id != self._diff_id:
            raise IntegrityError(
                f"layer {self._descriptor.digest}: inflates to {diff_id}, the image's config says"
                f" {self._diff_id}"
            )
        return note if self._expected in (None, note["index"]) else None

    def _stream(self) -> dict[str, Digest]:
        from builder.scan import scan  # noqa: PLC0415 - a layer is read once per machine

        descriptor = self._descriptor
        wanted = frozenset(self._wanted)
        before = known(descriptor.digest, self._store)
        if before is not None and self._expected not in (None, before["index"]):
            _log.warning(
                "layer %s: the file index at hand is %s, the lock pins %s; reading the layer again",
                *(descriptor.digest, before["index"], self._expected),
            )
        _log.info("reading base layer %s (%d bytes)", descriptor.digest, descriptor.size)
        with (
            self._progress.task(
                f"read layer {descriptor.digest.short}", total=descriptor.size
            ) as task,
            self._store.writer() as pack,
        ):
            result = scan(
                counted(self._chunks(), task),
                keep=lambda entry: python_text(entry) or entry.path in wanted,
                kept=pack,
                expected_diff_id=self._diff_id,
                media_type=descriptor.media_type,
                at=f"layer {descriptor.digest}",
            )
            note = {
                "pack": pack.commit(),
                "index": self._store.put(bytes(result.index.raw)),
                "table": self._store.put(result.kept.table),
            }
        if self._expected not in (None, note["index"]):
            raise IntegrityError(
                f"layer {descriptor.digest}: the lock pins file index {self._expected}, its bytes"
                f" give {note['index']}",
                hint="take 'files' out of the layer's entry, and let builder lock write it anew",
            )
        self._remember(note, ())
        return note

    def _chunks(self) -> Iterator[bytes]:
        """The blob: from the store where it was made here, else from where the base is."""
        if self._store.has(self._descriptor.digest, size=self._descriptor.size):
            return stored(self._descriptor.digest, self._store)
        return self._origin.blob(self._descriptor)

    def _remember(self, note: Mapping[str, Digest], kept: Iterable[Digest]) -> None:
        """Note what is known of the layer; ``kept`` are contents that are blobs of their own."""
        record: dict[str, object] = {name: str(digest) for name, digest in note.items()}
        record["diff_id"] = str(self._diff_id)
        record["blobs"] = sorted({str(digest) for digest in (*note.values(), *kept)})
        self._store.take_note(notes.LAYER, self._descriptor.digest.hex, canonical.encode(record))

    def _stream_again(self, entry: Entry) -> None:
        digest = content_of(entry)
        _log.warning(
            "reading base layer %s again for %r, which is no text file of a Python package",
            self._descriptor.digest,
            entry.path,
        )
        from builder.scan import scan  # noqa: PLC0415 - as above

        with self._store.writer() as pack:
            result = scan(
                self._chunks(),
                keep=lambda other: other.path == entry.path,
                kept=pack,
                expected_diff_id=self._diff_id,
                media_type=self._descriptor.media_type,
                at=f"layer {self._descriptor.digest}",
            )
            place = KeptTable(result.kept.table).find(digest)
            packed = pack.commit()
        if place is None:
            raise IntegrityError(f"layer {self._descriptor.digest}: no {entry.path!r} in it")
        start, length = place
        with self._store.open(packed) as stream:
            stream.seek(start)
            self._store.put(unpack(stream.read(length), digest))
        with self._store.lock(f"layer-{self._descriptor.digest.hex}"):
            raw = self._store.note(notes.LAYER, self._descriptor.digest.hex)
            before = () if raw is None else notes.blobs_of(raw)
            self._remember(self._note, (*before, digest))


def known(layer: Digest, store: Store) -> dict[str, Digest] | None:
    """What the store's memo says of a base layer: its diff_id, and where index, pack and table are.
    ``None`` where there is no memo; half a memo is none."""
    raw = store.note(notes.LAYER, layer.hex)
    if raw is None:
        return None
    try:
        value = canonical.decode(raw, at=f"note layer/{layer.hex}")
        return {
            name: Digest.parse(str(value[name]), refusal=IntegrityError)
            for name in ("diff_id", "index", "pack", "table")
        }
    except (IntegrityError, KeyError, TypeError):
        return None


def content_of(entry: Entry) -> Digest:
    """The digest of a regular file's content."""
    if entry.digest is None:
        raise KeyError(f"{entry.path!r} is a {entry.kind}, not a regular file")
    return entry.digest
