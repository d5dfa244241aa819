"""What takes how much."""

from collections import Counter
from dataclasses import dataclass

from builder.adapters.store.layout import FileStore
from builder.adapters.store.walk import Role, blobs, entries, leftovers, notes, walk
from builder.digest import Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The bytes on disk behind one entry of index.json. ``unique`` is what dropping it would
    set free; the entry is named by its digest where it has no name."""

    name: str
    digest: Digest
    total: int
    unique: int

    @property
    def shared(self) -> int:
        return self.total - self.unique


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Bytes by class. ``other`` are blobs that no manifest of index.json explains: file indexes,
    layers of results that nobody named, and what ``gc`` would take."""

    manifests: int
    configs: int
    layers: int
    other: int
    notes: int
    tmp: int
    references: tuple[Share, ...]

    @property
    def total(self) -> int:
        return self.manifests + self.configs + self.layers + self.other + self.notes + self.tmp


def du(store: FileStore) -> Usage:
    """Count the bytes of the files (not of the blocks that they take).

    Raises:
        IntegrityError: index.json or a manifest is malformed or corrupt.
    """
    sizes = {file.digest: file.size for file in blobs(store) if file.digest and file.regular}
    other = sum(file.size for file in blobs(store) if not (file.digest and file.regular))
    roles: dict[Digest, Role] = {}
    named: dict[tuple[str, Digest], set[Digest]] = {}
    for name, descriptor in entries(store):
        at = f"{store.named.at}: {name or descriptor.digest}"
        nodes = list(walk(store, descriptor, at=at))
        for node in nodes:
            roles.setdefault(node.descriptor.digest, node.role)
        reached = {node.descriptor.digest for node in nodes}
        named[name or str(descriptor.digest), descriptor.digest] = reached & sizes.keys()
    classes = Counter[Role]()
    for digest, size in sizes.items():
        classes[roles.get(digest, Role.OTHER)] += size
    users = Counter(digest for reached in named.values() for digest in reached)
    return Usage(
        manifests=classes[Role.MANIFEST],
        configs=classes[Role.CONFIG],
        layers=classes[Role.LAYER],
        other=classes[Role.OTHER] + other,
        notes=sum(len(note.data) for note in notes(store)),
        tmp=_size(store, leftovers(store)),
        references=tuple(
            Share(
                name=name,
                digest=digest,
                total=sum(sizes[item] for item in reached),
                unique=sum(sizes[item] for item in reached if users[item] == 1),
            )
            for (name, digest), reached in sorted(named.items())
        ),
    )


def _size(store: FileStore, paths: tuple[str, ...]) -> int:
    total = 0
    for path in paths:
        try:
            total += (store.paths.root / path).lstat().st_size
        except FileNotFoundError:
            continue  # published since
    return total
