"""The store as a build uses it."""

import io
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

from builder.adapters.store import disk
from builder.adapters.store.guards import Guards
from builder.adapters.store.notes import check_plain, check_reference_name, is_plain
from builder.adapters.store.paths import Paths
from builder.adapters.store.references import INDEX_REMEDY, References
from builder.adapters.store.stream import VerifyingFile
from builder.adapters.store.writer import BlobWriter
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Descriptor

READ_LIMIT = 256 << 20
"""The most bytes that ``read`` takes into memory unless told otherwise."""
_BUFFER = 1 << 17
_REPAIR = "run `builder store verify --repair` to drop it, then build again"


class FileStore:
    """``builder.ports.Store`` on disk (see the package for what is where).

    Nothing is made before the first write, and reading needs no permission to write. Every write
    and every lock holds the lease of the store while it lasts; a build holds ``lease`` from its
    first question to its last write.

    Args:
        root: Its directory.
        remedy: What helps where bytes are not what they must be: a layout that came from somewhere
            is not repaired as the store of this machine is.

    Raises:
        EnvironmentFault: ``root`` is something else than a layout that we can use. Any method, for
            what the disk refuses (no space, no permission).
    """

    def __init__(self, root: Path, *, remedy: str | None = None) -> None:
        self._remedy = remedy or _REPAIR
        self.paths = Paths(root)
        self.paths.check()
        self.guards = Guards(self.paths)
        self.named = References(self.paths, self.guards, remedy=remedy or INDEX_REMEDY)

    # --- blobs ---------------------------------------------------------------------------------

    def has(self, digest: Digest, *, size: int | None = None) -> bool:
        """See ``builder.ports.Store``. What is not a regular file is not there."""
        with disk.faults(self.paths.at):
            try:
                found = os.lstat(self.paths.blob(digest))
            except (FileNotFoundError, NotADirectoryError):
                return False
        return stat.S_ISREG(found.st_mode) and size in {None, found.st_size}

    def path(self, digest: Digest) -> Path:
        """Where the blob is, for readers that map it into memory. The bytes are not checked.

        Raises:
            KeyError: No such blob.
        """
        if not self.has(digest):
            raise KeyError(str(digest))
        return Path(self.paths.blob(digest))

    def read(self, digest: Digest, *, limit: int = READ_LIMIT) -> bytes:
        """See ``builder.ports.Store``."""
        fd = self._open_blob(digest)
        try:
            with disk.faults(self.paths.at):
                size = os.fstat(fd).st_size
                data = disk.read_to_end(fd, limit=limit) if size <= limit else b""
        finally:
            os.close(fd)
        if max(size, len(data)) > limit:
            raise IntegrityError(
                f"{self.paths.at}: blob {digest}: {size} bytes, the limit is {limit}"
            )
        if (got := Digest.of(data)) != digest:
            self._corrupt(digest, got)
        return data

    def open(self, digest: Digest) -> BinaryIO:
        """See ``builder.ports.Store``. A seek back to the start begins the check anew."""
        file = VerifyingFile(
            self._open_blob(digest),
            at=self.paths.at,
            digest=digest,
            corrupt=lambda got: self._corrupt(digest, got),
        )
        return io.BufferedReader(file, buffer_size=_BUFFER)

    def put(self, data: bytes) -> Digest:
        """See ``builder.ports.Store``. A blob that is there with another size is replaced."""
        digest = Digest.of(data)
        if not self.has(digest, size=len(data)):
            with self._pending() as pending:
                self._write(pending, data)
                self._publish(pending, digest=digest, size=len(data))
        return digest

    @contextmanager
    def writer(self) -> Iterator[BlobWriter]:
        """See ``builder.ports.Store``."""
        with self._pending() as pending:
            yield BlobWriter(
                at=f"{self.paths.at}: new blob",
                write=lambda data: self._write(pending, data),
                publish=lambda digest, size: self._publish(pending, digest=digest, size=size),
            )

    # --- notes ---------------------------------------------------------------------------------

    def note(self, kind: str, key: str) -> bytes | None:
        """See ``builder.ports.Store``. An empty file is no memo: we never leave one."""
        check_plain(kind, at="kind of note")
        check_plain(key, at="key of note")
        with disk.faults(self.paths.at):
            return disk.read_file(self.paths.note(kind, key)) or None

    def notes(self, kind: str) -> Iterator[str]:
        """See ``builder.ports.Store``."""
        check_plain(kind, at="kind of note")
        with disk.faults(self.paths.at):
            try:
                names = os.listdir(f"{self.paths.notes}/{kind}")
            except FileNotFoundError:
                names = []
        return iter(sorted(filter(is_plain, names)))

    def take_note(self, kind: str, key: str, data: bytes) -> None:
        """See ``builder.ports.Store``. A memo that names blobs does it as
        ``builder.notes.blobs_of`` says, so that ``gc`` drops it together with them."""
        if not data:
            raise ValueError("an empty note says nothing")
        if self.note(kind, key) == data:
            return
        with self._pending() as pending, disk.faults(self.paths.at):
            disk.make_directory(f"{self.paths.notes}/{kind}")
            pending.write(data)
            pending.publish(self.paths.note(kind, key))

    # --- references ----------------------------------------------------------------------------

    def references(self) -> Mapping[str, Descriptor]:
        """See ``builder.ports.Store``.

        Raises:
            IntegrityError: index.json is missing or malformed: that is not "no references".
        """
        return self.named.named()

    def set_reference(self, name: str, descriptor: Descriptor) -> None:
        """See ``builder.ports.Store``. Entries of other tools stay as they are.

        Raises:
            KeyError: The blob is not there.
            IntegrityError: It is there with another size, or index.json is malformed.
            UsageError: Other tools could not be given this name.
        """
        check_reference_name(name)
        if not self.has(descriptor.digest):
            raise KeyError(str(descriptor.digest))
        if not self.has(descriptor.digest, size=descriptor.size):
            raise IntegrityError(
                f"{self.paths.at}: blob {descriptor.digest}: expected {descriptor.size} bytes,"
                f" got {os.lstat(self.paths.blob(descriptor.digest)).st_size}",
                hint=self._remedy,
            )
        self.named.set(name, descriptor)

    def drop_reference(self, name: str) -> None:
        """Forget a name. What it stood for stays until ``gc``.

        Raises:
            KeyError: No such name.
            IntegrityError: index.json is malformed.
        """
        self.named.drop(name)

    # --- exclusion -----------------------------------------------------------------------------

    def lock(self, name: str) -> AbstractContextManager[None]:
        """See ``builder.ports.Store``. Who waits for long is told which process holds the lock.

        Raises:
            RuntimeError: This thread has the lock already, and would wait for itself.
        """
        return self.guards.lock(check_plain(name, at="name of lock"))

    def lease(self) -> AbstractContextManager[None]:
        """Keep ``gc`` away: what ``has`` and ``note`` say stays true until the block ends."""
        return self.guards.lease()

    # --- how ------------------------------------------------------------------------------------

    @contextmanager
    def _pending(self) -> Iterator[disk.Pending]:
        with self.lease():
            with disk.faults(self.paths.at):
                pending = disk.Pending(self.paths.tmp)
            try:
                yield pending
            finally:
                pending.drop()

    def _write(self, pending: disk.Pending, data: bytes | bytearray) -> None:
        with disk.faults(self.paths.at):
            pending.write(data)

    def _publish(self, pending: disk.Pending, *, digest: Digest, size: int) -> None:
        if self.has(digest, size=size):
            return  # Somebody was faster, with the same bytes.
        path = self.paths.blob(digest)
        with disk.faults(self.paths.at):
            try:
                pending.publish(path)
            except IsADirectoryError as error:
                raise self._irregular(digest) from error

    def _open_blob(self, digest: Digest) -> int:
        with disk.faults(self.paths.at):
            try:
                return disk.open_regular(self.paths.blob(digest))
            except (FileNotFoundError, NotADirectoryError):
                raise KeyError(str(digest)) from None
            except OSError as error:
                if error.errno in disk.IRREGULAR:
                    raise self._irregular(digest) from error
                raise

    def _irregular(self, digest: Digest) -> IntegrityError:
        return IntegrityError(
            f"{self.paths.at}: blob {digest}: expected a regular file, got something else",
            hint=f"find out who put it there, and remove {self.paths.blob(digest)!r}",
        )

    def _corrupt(self, digest: Digest, got: Digest) -> NoReturn:
        raise IntegrityError(
            f"{self.paths.at}: blob {digest}: the bytes are {got}", hint=self._remedy
        )
