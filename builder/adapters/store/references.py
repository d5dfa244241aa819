"""The named manifests of a store: ``index.json`` on disk."""

from collections.abc import Callable

from builder import durable
from builder.adapters.store import disk, index
from builder.adapters.store.guards import Guards
from builder.adapters.store.paths import Paths
from builder.errors import IntegrityError
from builder.oci import Descriptor

_LOCK = ".index"  # a name that callers cannot take
INDEX_REMEDY = "put index.json back from a copy, or choose another store with --store DIR"


class References:
    """Reads and replaces index.json; it is never taken for empty because it cannot be read."""

    def __init__(self, paths: Paths, guards: Guards, *, remedy: str) -> None:
        self._remedy = remedy
        self._paths = paths
        self._guards = guards
        self.at = f"{paths.at}: index.json"

    def document(self) -> index.Document:
        """What index.json says now; an empty one where there is no store yet.

        Raises:
            IntegrityError: It is missing or malformed.
        """
        with disk.faults(self._paths.at):
            raw = disk.read_file(self._paths.index, limit=index.LIMIT)
        if raw is None and self._paths.exists:
            raise IntegrityError(f"{self.at}: missing", hint=self._remedy)
        try:
            return index.parse(index.EMPTY if raw is None else raw, at=self.at)
        except IntegrityError as error:
            raise IntegrityError(error.message, hint=self._remedy) from error

    def named(self) -> dict[str, Descriptor]:
        """The entries that have names.

        Raises:
            IntegrityError: As for ``document``; or a name stands for two manifests.
        """
        return index.references(self.document(), at=self.at)

    def one(self, name: str) -> Descriptor | None:
        """What a name stands for, whatever is wrong with others.

        Raises:
            IntegrityError: As for ``document``; or the name stands for two manifests.
        """
        return index.references(self.document(), at=self.at, only=name).get(name)

    def set(self, name: str, descriptor: Descriptor) -> None:
        """Let ``name`` stand for ``descriptor``."""
        self._edit(lambda old: index.with_reference(old, name=name, descriptor=descriptor))

    def drop(self, name: str) -> None:
        """Let ``name`` stand for nothing.

        Raises:
            KeyError: It does so already.
        """
        document = self.document()
        if index.without_reference(document, name=name) == document:
            raise KeyError(name)
        self._edit(lambda old: index.without_reference(old, name=name))

    def _edit(self, edit: Callable[[index.Document], index.Document]) -> None:
        document = self.document()
        if edit(document) == document:
            return
        with self._guards.lock(_LOCK):
            raw = index.encode(edit(self.document()), at=self.at)
            with disk.faults(self._paths.at):
                # What a name stands for is durable before the name is.
                durable.sync_directory(self._paths.blobs)
                disk.write_file(self._paths.index, raw, scratch=self._paths.tmp)
