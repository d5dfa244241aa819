"""A store in memory: ``builder.ports.Store`` without a disk, under the same contract tests."""

import io
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import BinaryIO

from builder.adapters.store.index import REF_NAME
from builder.adapters.store.notes import check_plain, check_reference_name
from builder.adapters.store.writer import BlobWriter
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Descriptor


class _CheckedStream(io.BytesIO):
    """Raises where a read in one go from the start reaches the end of other bytes than named."""

    def __init__(self, data: bytes, digest: Digest) -> None:
        super().__init__(data)
        self._digest = digest
        self._unbroken = True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = super().seek(offset, whence)
        self._unbroken = position == 0
        return position

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        if self._unbroken and self.tell() == len(self.getvalue()):
            self._digest.check(self.getvalue(), at=f"blob {self._digest}")
        return data


class MemoryStore:
    """Keeps everything in dictionaries that a test may look into, and spoil."""

    def __init__(self) -> None:
        self.blobs: dict[Digest, bytes] = {}
        self.memos: dict[tuple[str, str], bytes] = {}
        self.named: dict[str, Descriptor] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._holders: dict[str, int] = {}

    def has(self, digest: Digest, *, size: int | None = None) -> bool:
        data = self.blobs.get(digest)
        return data is not None and size in {None, len(data)}

    def read(self, digest: Digest, *, limit: int = 256 << 20) -> bytes:
        data = self._blob(digest)
        if len(data) > limit:
            raise IntegrityError(f"blob {digest}: {len(data)} bytes, the limit is {limit}")
        return digest.check(data, at=f"blob {digest}")

    def open(self, digest: Digest) -> BinaryIO:
        return _CheckedStream(self._blob(digest), digest)

    def put(self, data: bytes) -> Digest:
        digest = Digest.of(data)
        if not self.has(digest, size=len(data)):
            self.blobs[digest] = bytes(data)
        return digest

    @contextmanager
    def writer(self) -> Iterator[BlobWriter]:
        written = bytearray()

        def publish(digest: Digest, size: int) -> None:
            self.put(bytes(written))

        yield BlobWriter(at="new blob", write=written.extend, publish=publish)

    def note(self, kind: str, key: str) -> bytes | None:
        check_plain(kind, at="kind of note")
        check_plain(key, at="key of note")
        return self.memos.get((kind, key))

    def notes(self, kind: str) -> Iterator[str]:
        check_plain(kind, at="kind of note")
        return iter(sorted(key for other, key in self.memos if other == kind))

    def take_note(self, kind: str, key: str, data: bytes) -> None:
        if not data:
            raise ValueError("an empty note says nothing")
        self.note(kind, key)
        self.memos[kind, key] = bytes(data)

    def references(self) -> Mapping[str, Descriptor]:
        return dict(self.named)

    def set_reference(self, name: str, descriptor: Descriptor) -> None:
        check_reference_name(name)
        size = len(self._blob(descriptor.digest))
        if size != descriptor.size:
            raise IntegrityError(
                f"blob {descriptor.digest}: expected {descriptor.size} bytes, got {size}"
            )
        annotations = {**dict(descriptor.annotations), REF_NAME: name}
        self.named[name] = replace(descriptor, annotations=tuple(sorted(annotations.items())))

    def drop_reference(self, name: str) -> None:
        del self.named[name]

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        check_plain(name, at="name of lock")
        if self._holders.get(name) == threading.get_ident():
            raise RuntimeError(f"this thread holds the lock {name!r} already")
        with self._locks[name]:
            self._holders[name] = threading.get_ident()
            try:
                yield
            finally:
                del self._holders[name]

    def lease(self) -> nullcontext[None]:
        return nullcontext()

    def _blob(self, digest: Digest) -> bytes:
        try:
            return self.blobs[digest]
        except KeyError:
            raise KeyError(str(digest)) from None
