"""A place in memory, which a test may look into, and spoil."""

from collections.abc import Sequence

from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.oci import OCI_EMPTY, Descriptor, Index, Manifest
from builder.signatures.place import Addition, Referring
from builder.sigstore import carriers, listing
from builder.sigstore.listing import Form


class MemoryPlace:
    """:class:`builder.signatures.place.Place` in dictionaries."""

    def __init__(self) -> None:
        self.tags: dict[str, Manifest | Index] = {}
        self.manifests: dict[Digest, Manifest | Index] = {}
        self.blobs: dict[Digest, bytes] = {}
        self.added: list[Addition] = []
        """Everything that it was asked to have, in order."""

    def at(self, name: object) -> str:
        return f"memory: {name}"

    def tagged(self, tag: str) -> Manifest | Index | None:
        return self.tags.get(tag)

    def manifest(self, digest: Digest) -> Manifest | Index:
        if digest not in self.manifests:
            raise GoneError(f"no manifest {digest}")
        return self.manifests[digest]

    def blob(self, descriptor: Descriptor) -> bytes:
        if descriptor.digest not in self.blobs:
            raise GoneError(f"no blob {descriptor.digest}")
        data = self.blobs[descriptor.digest]
        if len(data) != descriptor.size:
            raise IntegrityError(f"{descriptor.digest}: not {descriptor.size} bytes")
        return descriptor.digest.check(data, at="memory")

    def referrers(self, subject: Digest, artifact_type: str) -> tuple[Descriptor, ...]:
        listed = listing.entries(self.tagged(carriers.referrers_tag(subject)), Form.MEMBERS, at="x")
        wanted = (artifact_type, OCI_EMPTY, None)
        return tuple(entry for entry in listed if entry.artifact_type in wanted)

    def add(self, additions: Sequence[Addition]) -> None:
        self.added += additions
        for item in additions:
            self.blobs |= {Digest.of(blob): blob for blob in item.blobs}
            if isinstance(item, Referring):
                self.manifests[item.manifest.digest] = item.manifest
            listed = item.listed if isinstance(item, Referring) else item
            document = self.tagged(listed.tag)
            missing = listing.lacking(document, listed.entries, listed.form, at="x")
            if missing:
                more = listing.extended(document, missing, listed.form, at="x")
                self.tags[listed.tag] = more
