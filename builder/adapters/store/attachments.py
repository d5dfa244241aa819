"""An OCI layout as the place of signatures: offline, and for images that travel as files.

Signatures lie as in a registry that keeps no lists of referrers: manifests with the names
``sha256-HEX.sig`` and ``sha256-HEX.att``, and under ``sha256-HEX`` an index of bundles. What other
tools enter into index.json as a manifest with a subject is found as well.
"""

from collections.abc import Iterator, Sequence

from builder.adapters.store import index
from builder.adapters.store.layout import FileStore
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.oci import (
    MANIFEST_LIMIT,
    MANIFEST_TYPES,
    OCI_EMPTY,
    Descriptor,
    Index,
    Manifest,
    parse_document,
)
from builder.signatures.place import TOTAL_LIMIT, Addition, FloodError, Listed
from builder.sigstore import carriers, listing
from builder.sigstore.listing import Form

LISTED_LIMIT = 10_000
"""How many entries of index.json are looked at for manifests with a subject."""
_LOCK = "signatures"


class LayoutPlace:
    """:class:`builder.signatures.place.Place` over a layout. To read it takes no right to write."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    def at(self, name: object) -> str:
        """See the Protocol."""
        return f"layout {str(self._store.paths.root)!r}: {name}"

    def tagged(self, tag: str) -> Manifest | Index | None:
        """See the Protocol."""
        entry = self._store.named.one(tag)
        return None if entry is None else self.document(entry)

    def document(self, entry: Descriptor) -> Manifest | Index:
        """The verified document that an entry of a list names, held to what the entry says of it.

        Raises:
            GoneError: It is not there. IntegrityError: It is not what it must be.
        """
        found = self._document(entry.digest, entry.media_type)
        self._check_size(entry, found.raw)
        return found

    def manifest(self, digest: Digest) -> Manifest | Index:
        """See the Protocol."""
        return self._document(digest, None)

    def blob(self, descriptor: Descriptor) -> bytes:
        """See the Protocol."""
        data = self._read(descriptor.digest, limit=descriptor.size)
        self._check_size(descriptor, data)
        return data

    def referrers(self, subject: Digest, artifact_type: str) -> tuple[Descriptor, ...]:
        """See the Protocol."""
        tag = carriers.referrers_tag(subject)
        listed = listing.entries(self.tagged(tag), Form.MEMBERS, at=self.at(tag))
        wanted = (artifact_type, OCI_EMPTY, None)
        found = [entry for entry in listed if entry.artifact_type in wanted]
        known = {entry.digest for entry in found}
        for manifest in self._naming(subject):
            entry = carriers.referrer(manifest)
            refers = manifest.subject is not None and manifest.subject.digest == subject
            if refers and entry.artifact_type == artifact_type and entry.digest not in known:
                found.append(entry)
        return tuple(found)

    def add(self, additions: Sequence[Addition]) -> None:
        """See the Protocol. Who else writes here waits."""
        if not additions:
            return
        with self._store.lease(), self._store.lock(_LOCK):
            for addition in additions:
                for blob in addition.blobs:
                    self._store.put(blob)
                if isinstance(addition, Listed):
                    self._extend(addition)
                else:
                    self._store.put(addition.manifest.raw)
                    self._extend(addition.listed)

    def _extend(self, item: Listed) -> None:
        at = self.at(item.tag)
        document = self.tagged(item.tag)
        missing = listing.lacking(document, item.entries, item.form, at=at)
        if missing:
            more = listing.extended(document, missing, item.form, at=at)
            self._store.put(more.raw)
            self._store.set_reference(item.tag, more.descriptor)

    def _naming(self, subject: Digest) -> Iterator[Manifest]:
        """The manifests of index.json in which the digest occurs. Each is read once, however often
        it is listed, and all of them within a limit."""
        document, at = self._store.named.document(), self._store.named.at
        count = len(document["manifests"])
        if count > LISTED_LIMIT:
            raise FloodError(f"{at}: {count} manifests, the limit is {LISTED_LIMIT}")
        left = TOTAL_LIMIT
        listed = ((entry.digest, entry.media_type) for _, entry in index.entries(document, at=at))
        for digest, media_type in dict.fromkeys(listed):
            if media_type in MANIFEST_TYPES and self._store.has(digest):
                raw = self._read(digest, limit=MANIFEST_LIMIT)
                if (left := left - len(raw)) < 0:
                    raise FloodError(f"{at}: over {TOTAL_LIMIT} bytes of manifests to look through")
                if subject.hex.encode() in raw:
                    yield Manifest.parse(raw, media_type=media_type, at=self.at(digest))

    def _check_size(self, descriptor: Descriptor, data: bytes) -> None:
        if len(data) != descriptor.size:
            raise IntegrityError(
                f"{self.at(descriptor.digest)}: expected {descriptor.size} bytes, got {len(data)}"
            )

    def _document(self, digest: Digest, media_type: str | None) -> Manifest | Index:
        raw = self._read(digest, limit=MANIFEST_LIMIT)
        return parse_document(raw, media_type=media_type, at=self.at(digest))

    def _read(self, digest: Digest, *, limit: int) -> bytes:
        try:
            return self._store.read(digest, limit=limit)
        except KeyError:
            raise GoneError(
                f"{self.at(digest)}: no such blob", hint="copy it, and what refers to it, again"
            ) from None
