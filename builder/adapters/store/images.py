"""The images of a layout: by name, by digest, and which there are.

An image need not have a name: ``skopeo copy ... oci:DIR`` and ``crane pull --format=oci`` write
entries without one. What has a digest is found where index.json leads to it, also as a member of
an index, and nowhere else: a blob that nothing lists is lost with the next clean-up.
"""

from collections import deque
from collections.abc import Iterable
from itertools import chain

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
from builder.sigstore.carriers import ATTACHED

_CONFIGS = frozenset({OCI_CONFIG, DOCKER_CONFIG})


class LayoutImages:
    """What index.json leads to, read anew with each question."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self._place = LayoutPlace(store)

    def choices(self) -> tuple[tuple[str, Digest], ...]:
        """Each image and index of index.json, with its name, or by its digest alone: where no name
        stands for it, or one that stands for another, too. What lies beside images (what refers
        to another manifest, or has no config of an image) is none. What cannot be read may be one.

        Raises:
            IntegrityError: An entry is malformed. FloodError: There is no end of them.
        """
        budget = _Budget(self._place.at("index.json"))
        stands: dict[str, dict[Digest, None]] = {}
        others: dict[Digest, None] = {}
        for name, entry in self._entries():
            if name:
                if not name.startswith(ATTACHED):
                    stands.setdefault(name, {})[entry.digest] = None
            elif self._is_image(entry, budget):
                others[entry.digest] = None
        found = [(name, next(iter(it))) for name, it in stands.items() if len(it) == 1]
        doubled = (digests for digests in stands.values() if len(digests) > 1)
        unnamed = dict.fromkeys(chain(*doubled, others))
        known = {digest for _, digest in found}
        return (*found, *(("", digest) for digest in unnamed if digest not in known))

    def find(self, name: str, digest: Digest | None) -> Manifest | Index | None:
        """What a name stands for; or the image with a digest, in all of the layout or below a name.
        ``None`` where there is no such name, or nothing leads to the digest.

        Args:
            name: Empty where there is none.

        Raises:
            IntegrityError: The name stands for several images, or for another one which does not
                list this one; or what is found, or what may list it, is not what it must be.
            GoneError: It is listed, and its blob is not there.
        """
        if digest is None and not name:
            raise ValueError("neither a name nor a digest")
        entries = [entry for _, entry in self._entries(name or None)]
        if name and not entries:
            return None
        stands = dict.fromkeys(str(entry.digest) for entry in entries)
        if digest is None:
            if len(stands) > 1:
                raise IntegrityError(
                    f"{self._place.at(name)}: the name stands for {' and '.join(stands)}",
                    hint="the digest, oci:DIR@sha256:HEX, names the image that you mean",
                )
            return self._place.document(entries[0])
        found = self._listed(digest, entries)
        if found is None and name:
            raise IntegrityError(
                f"{self._place.at(name)}: expected {digest}, the name stands for"
                f" {' and '.join(stands)}",
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

    def _entries(self, only: str | None = None) -> list[tuple[str | None, Descriptor]]:
        document, at = self._store.named.document(), self._store.named.at
        if (count := len(document["manifests"])) > LISTED_LIMIT:
            raise FloodError(f"{at}: {count} manifests, the limit is {LISTED_LIMIT}")
        return list(index.entries(document, at=at, only=only))


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
