"""What is in a store, and what hangs on what: read by ``verify``, ``gc`` and ``du``."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from builder.adapters.store import disk, index
from builder.adapters.store.layout import FileStore
from builder.adapters.store.notes import is_plain
from builder.digest import Digest
from builder.errors import ProjectError
from builder.oci import INDEX_TYPES, MANIFEST_LIMIT, MANIFEST_TYPES, Descriptor, Manifest
from builder.oci import parse_document as parse

Roots: TypeAlias = Callable[[], Iterable[Digest]]
"""Blobs that a caller wants kept beside what index.json names; each by itself, not followed."""


class Role(StrEnum):
    """What a blob is to the document that names it."""

    MANIFEST = "manifest"
    CONFIG = "config"
    LAYER = "layer"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One blob that a reference names, directly or not. ``root`` is what index.json names."""

    role: Role
    descriptor: Descriptor
    present: bool
    root: bool = False
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobFile:
    """One entry of ``blobs/sha256``. ``digest`` is ``None`` where the name is no digest."""

    path: str
    """Below the store."""
    digest: Digest | None
    size: int
    written: float
    regular: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFile:
    """One memo, with its bytes."""

    kind: str
    key: str
    data: bytes


def walk(store: FileStore, descriptor: Descriptor, *, at: str) -> Iterator[Node]:
    """A manifest or index and all that it names, each once, outermost first.

    Manifests of an index and layers of a base may be absent: they are only named here.

    Raises:
        IntegrityError: A manifest is there and is corrupt or malformed.
    """
    seen: set[Digest] = set()
    waiting = [(_role(descriptor), descriptor, at)]
    while waiting:
        role, found, where = waiting.pop(0)
        if found.digest in seen:
            continue
        seen.add(found.digest)
        present = store.has(found.digest)
        yield Node(role=role, descriptor=found, present=present, root=found is descriptor, at=where)
        if role is Role.MANIFEST and present:
            waiting.extend(_named_by(store, found, at=where))


def _named_by(
    store: FileStore, descriptor: Descriptor, *, at: str
) -> Iterator[tuple[Role, Descriptor, str]]:
    raw = store.read(descriptor.digest, limit=MANIFEST_LIMIT)
    document = parse(raw, media_type=descriptor.media_type, at=at)
    if isinstance(document, Manifest):
        yield Role.CONFIG, document.config, f"{at}: config"
        for number, layer in enumerate(document.layers):
            yield Role.LAYER, layer, f"{at}: layers[{number}]"
    else:
        for number, child in enumerate(document.manifests):
            yield _role(child), child, f"{at}: manifests[{number}]"


def _role(descriptor: Descriptor) -> Role:
    known = descriptor.media_type in INDEX_TYPES | MANIFEST_TYPES
    return Role.MANIFEST if known else Role.OTHER


def entries(store: FileStore) -> Iterator[tuple[str | None, Descriptor]]:
    """All that index.json names, with the entries of other tools.

    Raises:
        IntegrityError: At what cannot be read.
    """
    return index.entries(store.named.document(), at=store.named.at)


def blobs(store: FileStore) -> Iterator[BlobFile]:
    """All that is in ``blobs/sha256``, by name."""
    for name in _names(store, store.paths.blobs):
        try:
            found = os.lstat(f"{store.paths.blobs}/{name}")
        except FileNotFoundError:
            continue  # collected since
        try:
            digest = Digest.parse(f"sha256:{name}")
        except ProjectError:
            digest = None
        yield BlobFile(
            path=f"blobs/sha256/{name}",
            digest=digest,
            size=found.st_size,
            written=found.st_mtime,
            regular=stat.S_ISREG(found.st_mode),
        )


def notes(store: FileStore) -> Iterator[NoteFile]:
    """All memos, by kind and key."""
    for kind in filter(is_plain, _names(store, store.paths.notes)):
        if not os.path.isdir(f"{store.paths.notes}/{kind}"):
            continue
        for key in store.notes(kind):
            with disk.faults(store.paths.at):
                try:
                    data = disk.read_file(store.paths.note(kind, key))
                except OSError as error:
                    if error.errno not in disk.IRREGULAR:
                        raise
                    data = None  # a directory or a link that somebody put there
            if data is not None:
                yield NoteFile(kind=kind, key=key, data=data)


def leftovers(store: FileStore) -> tuple[str, ...]:
    """What is in ``tmp/``: files under way while somebody writes, otherwise nobody's."""
    return tuple(f"tmp/{name}" for name in _names(store, store.paths.tmp))


def _names(store: FileStore, directory: str) -> list[str]:
    with disk.faults(store.paths.at):
        try:
            return sorted(os.listdir(directory))
        except FileNotFoundError:
            return []
