"""The images of a layout: by name, by digest, and which there are.

An image need not have a name: ``skopeo copy ... oci:DIR`` and ``crane pull --format=oci`` write
entries without one. What has a digest is found where index.json leads to it, also as a member of
an index, and nowhere else: a blob that nothing lists is lost with the next clean-up.
"""

from collections import deque
from collections.abc import Iterable

from builder.adapters.store import index
from builder.adapters.store.attachments import LISTED_LIMIT, LayoutPlace
from builder.adapters.store.layout import FileStore
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.oci import (
    DOCKER_CONFIG,
    INDEX_TYPES,
    MANIFEST_TYPES,
    OCI_CONFIG,
    Descriptor,
    Index,
    Manifest,
)
from builder.signatures.place import TOTAL_LIMIT, FloodError

_ATTACHED = "sha256-"
"""How the names of what lies beside an image begin."""
_CONFIGS = frozenset({OCI_CONFIG, DOCKER_CONFIG})


class LayoutImages:
    """What index.json leads to, read anew with each question."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._place = LayoutPlace(store)

    def names(self) -> tuple[str, ...]:
        """The names of images, in the order of index.json."""
        return tuple(name for name in self._store.references() if not name.startswith(_ATTACHED))

    def unnamed(self) -> tuple[Digest, ...]:
        """The images and indexes of index.json that no name stands for, each once. What refers to
        another manifest (a signature) and what has no config of an image are none. One that cannot
        be read may be one.

        Raises:
            IntegrityError: An entry is malformed. FloodError: There is no end of them.
        """
        named = {entry.digest for entry in self._store.references().values()}
        budget = _Budget(self._place.at("index.json"))
        found = {
            entry.digest: None
            for name, entry in self._entries()
            if name is None and entry.digest not in named and self._is_image(entry, budget)
        }
        return tuple(found)

    def find(self, name: str, digest: Digest | None) -> Manifest | Index | None:
        """What a name stands for; or the image with a digest, in all of the layout or below a name.
        ``None`` where there is no such name, or nothing leads to the digest.

        Args:
            name: Empty where there is none.

        Raises:
            IntegrityError: The name stands for another image, which does not list this one; or what
                is found, or what may list it, is not what it must be.
            GoneError: It is listed, and its blob is not there.
        """
        top = self._place.tagged(name) if name else None
        if digest is None or (name and top is None):
            return top
        if top is None:
            return self._listed(digest, [entry for _, entry in self._entries()])
        if top.digest == digest:
            return top
        members = top.manifests if isinstance(top, Index) else ()
        if (found := self._listed(digest, members)) is None:
            raise IntegrityError(
                f"{self._place.at(name)}: expected {digest}, the name stands for {top.digest}",
                hint="the name was given to another image since: look at who writes there; the"
                " digest alone, without the name, names the image that you mean",
            )
        return found

    def _listed(self, digest: Digest, entries: Iterable[Descriptor]) -> Manifest | Index | None:
        """The document with a digest, of entries and of what the indexes among them list."""
        budget = _Budget(self._place.at(digest))
        waiting, seen = deque([tuple(entries)]), set[Digest]()
        doubt: IntegrityError | GoneError | None = None
        while waiting:
            listed = waiting.popleft()
            for entry in listed:
                if entry.digest == digest:
                    return self._place.document(entry)
            for entry in listed:
                if entry.media_type not in INDEX_TYPES or entry.digest in seen:
                    continue
                seen.add(entry.digest)
                try:
                    waiting.append(self._members(entry, budget))
                except FloodError:
                    raise
                except (IntegrityError, GoneError) as error:
                    doubt = doubt or error  # it may have listed what is looked for
        if doubt is not None:
            raise doubt
        return None

    def _members(self, entry: Descriptor, budget: "_Budget") -> tuple[Descriptor, ...]:
        document = budget.take(self._place.document(entry))
        return document.manifests if isinstance(document, Index) else ()

    def _is_image(self, entry: Descriptor, budget: "_Budget") -> bool:
        if entry.media_type not in MANIFEST_TYPES:
            return entry.media_type in INDEX_TYPES
        try:
            document = budget.take(self._place.document(entry))
        except FloodError:
            raise
        except (IntegrityError, GoneError):
            return True
        if isinstance(document, Index):
            return True
        return document.subject is None and document.config.media_type in _CONFIGS

    def _entries(self) -> list[tuple[str | None, Descriptor]]:
        document, at = self._store.named.document(), self._store.named.at
        if (count := len(document["manifests"])) > LISTED_LIMIT:
            raise FloodError(f"{at}: {count} manifests, the limit is {LISTED_LIMIT}")
        return list(index.entries(document, at=at))


class _Budget:
    """How many bytes of documents are read for one question."""

    def __init__(self, at: str) -> None:
        self._at = at
        self._left = TOTAL_LIMIT

    def take(self, document: Manifest | Index) -> Manifest | Index:
        self._left -= len(document.raw)
        if self._left < 0:
            raise FloodError(f"{self._at}: over {TOTAL_LIMIT} bytes of manifests to look through")
        return document
