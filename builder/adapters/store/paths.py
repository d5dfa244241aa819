"""Where things are in a store, and how a store comes to be."""

import os
from contextlib import suppress
from pathlib import Path

from builder import canonical, durable
from builder.adapters.store import disk, index, locks
from builder.digest import Digest
from builder.errors import EnvironmentFault, IntegrityError

_MARK_LIMIT = 1 << 16
_MARK = b'{"imageLayoutVersion":"1.0.0"}'
_VERSION = "1.0.0"
_DIRECTORIES = ("tmp", "locks", "leases", "notes", "blobs", "blobs/sha256")
_SKELETON = frozenset({"tmp", "locks", "leases", "notes", "blobs", "index.json"})


class Paths:
    """The places of one store, as strings: this is on the way of every question.

    ``root`` keeps the user's spelling for messages; everything is reached through the real
    directory, so that neither a change of directory nor of a link moves a store under way.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.real = os.path.realpath(root)
        self.mark = f"{self.real}/oci-layout"
        self.index = f"{self.real}/index.json"
        self.blobs = f"{self.real}/blobs/sha256"
        self.notes = f"{self.real}/notes"
        self.tmp = f"{self.real}/tmp"
        self.locks = f"{self.real}/locks"
        self.lease = f"{self.real}/leases/store"

    @property
    def at(self) -> str:
        """The store, for the beginning of a message."""
        return f"store {str(self.root)!r}"

    @property
    def exists(self) -> bool:
        """Whether the mark is there; ``check`` says whether it is a good one."""
        return os.path.lexists(self.mark)

    def blob(self, digest: Digest) -> str:
        return f"{self.blobs}/{digest.hex}"

    def note(self, kind: str, key: str) -> str:
        return f"{self.notes}/{kind}/{key}"

    def check(self) -> bool:
        """Whether a layout that we can use is there. Changes nothing.

        Raises:
            EnvironmentFault: The directory is something else, or of another layout version.
        """
        with disk.faults(self.at):
            mark = self._read_mark()
            if mark is None and (stranger := self._stranger()) is not None:
                mark = self._read_mark()  # whoever made a store meanwhile made the mark before that
                if mark is None:
                    raise EnvironmentFault(
                        f"{self.at}: not an OCI image layout: it has {stranger!r} and no"
                        " 'oci-layout'",
                        hint="choose an empty or a new directory with --store DIR",
                    )
            if mark is not None:
                self._check_version(mark)
        return mark is not None

    def make(self) -> None:
        """Make what is missing of the store. Whoever comes first does it, the others find it.

        The mark comes last: a kill before it leaves a skeleton that ``check`` knows.
        """
        with disk.faults(self.at):
            os.makedirs(self.real, exist_ok=True)
            for name in _DIRECTORIES:
                disk.make_directory(f"{self.real}/{name}")
            if self.exists:
                return
            fd = locks.acquire(
                f"{self.locks}/.create", alone=True, waiting=lambda: f"waiting to create {self.at}"
            )
            try:
                if not self.exists:
                    disk.write_file(self.index, index.EMPTY, scratch=self.tmp)
                    disk.write_file(self.mark, _MARK, scratch=self.tmp)
                    with suppress(PermissionError):  # a parent that we may pass and not list
                        durable.sync_directory(os.path.dirname(self.real))
            finally:
                locks.release(fd)

    def _read_mark(self) -> bytes | None:
        try:
            return disk.read_file(self.mark, limit=_MARK_LIMIT)
        except NotADirectoryError:
            raise EnvironmentFault(
                f"{self.at}: not a directory", hint="choose another with --store DIR"
            ) from None

    def _check_version(self, mark: bytes) -> None:
        if mark == _MARK:
            return
        at = f"{self.at}: oci-layout"
        try:
            document = canonical.decode(mark, at=at, limit=_MARK_LIMIT)
        except IntegrityError as error:
            raise EnvironmentFault(
                error.message, hint="choose an image layout, or a new directory, with --store DIR"
            ) from error
        version = document.get("imageLayoutVersion") if isinstance(document, dict) else None
        if version != _VERSION:
            raise EnvironmentFault(
                f"{at}: layout version {version!r} is not supported, wanted {_VERSION!r}",
                hint="choose another store with --store DIR, or upgrade builder",
            )

    def _stranger(self) -> str | None:
        """What is there that a store under way does not have."""
        try:
            found = sorted(set(os.listdir(self.real)) - _SKELETON)
            return found[0] if found else "blobs" if os.listdir(self.blobs) else None
        except FileNotFoundError:
            return None
