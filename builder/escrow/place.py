"""Where copies are kept: a repository of a registry, or an OCI layout in the project.

Both give each document a name, ``escrow-sha256-HEX``: registries delete manifests without a tag,
and tools that clean layouts what ``index.json`` does not lead to. The tag ``sha256-HEX`` alone is
not ours to take: where a registry has no referrers API it is the list of what refers to the image
(distribution-spec, "Referrers Tag Schema").
"""

import posixpath
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from builder.digest import Digest
from builder.errors import EnvironmentFault, GoneError, UsageError
from builder.escrow.parcel import Blob, Parcel
from builder.lock.model import Escrow
from builder.ports import Progress, Registry, Store
from builder.publish import send_blob
from builder.reference import DOCKER_HUB, Reference
from builder.streams import counted
from builder.value import value

_LAYOUT = "oci:"


class Place(Protocol):
    """A place that keeps parcels. Both methods are idempotent, and send only what is not there."""

    def take_blob(self, blob: Blob) -> str:
        """Keep a blob: ``present``, ``mounted``, or ``uploaded`` (copied, that is)."""

    def take_documents(self, parcel: Parcel) -> None:
        """Keep the documents of a parcel whose blobs are there, the last one under its name."""

    def entry(self, digest: Digest) -> Escrow:
        """How the lock names what is kept here."""


def parse(text: str, *, root: Path, at: str) -> Escrow:
    """A place as people write it, ``REGISTRY/REPOSITORY`` or ``oci:DIR``; the digest of the value
    stands for nothing yet.

    Raises:
        UsageError: It is neither; or a directory that is not in the project.
    """
    nothing = Digest.of(b"")
    if text.startswith(_LAYOUT):
        return Escrow(layout=_inside(text.removeprefix(_LAYOUT), root, at=at), digest=nothing)
    reference = Reference.parse(text, at=at)
    if reference.tag is not None or reference.digest is not None:
        raise UsageError(
            f"{at}: {text!r}: a repository is wanted, without tag or digest",
            hint="what is kept is found by its digest",
        )
    if reference.registry == DOCKER_HUB and not text.startswith(f"{DOCKER_HUB}/"):
        raise UsageError(
            f"{at}: {text!r} names no registry",
            hint=f"write oci:{text} for a directory, or {reference.name} for that repository",
        )
    return Escrow(registry=reference, digest=nothing)


def _inside(directory: str, root: Path, *, at: str) -> str:
    """A directory as the lock names it. A link in the project may lead anywhere."""
    top = root.absolute().as_posix()
    found = posixpath.relpath(posixpath.join(top, directory), top)
    if not directory or found.partition("/")[0] in (".", ".."):
        raise UsageError(
            f"{at}: {_LAYOUT}{directory}: not a directory below the project",
            hint="the lock would name a place that other machines do not have: use a registry, or a"
            " directory in the project, which may be a link",
        )
    if "\\" in found or not found.isprintable():
        raise UsageError(f"{at}: {directory!r} is no name that a lock can hold")
    return found


def opened(
    kept: Escrow,
    *,
    root: Path,
    registry: Callable[[], Registry],
    make_layout: Callable[[Path], Store],
    progress: Progress,
) -> Place:
    """A place, to be written to."""
    if kept.registry is not None:
        return RegistryPlace(repository=kept.registry, registry=registry(), progress=progress)
    try:
        store = make_layout(root / str(kept.layout))
    except EnvironmentFault as error:
        hint = "choose an empty or a new directory, or a layout: --to oci:DIR"
        raise EnvironmentFault(error.message, hint=hint) from error
    return LayoutPlace(layout=str(kept.layout), store=store, progress=progress)


def name_of(digest: Digest) -> str:
    """The tag, or the name in ``index.json``, of a document that is kept."""
    return f"escrow-sha256-{digest.hex}"


@value
class RegistryPlace:
    """:class:`Place` over a repository."""

    repository: Reference
    registry: Registry
    progress: Progress

    def take_blob(self, blob: Blob) -> str:
        return send_blob(
            blob.descriptor,
            self.repository,
            sources=blob.sources,
            chunks=blob.chunks,
            registry=self.registry,
            progress=self.progress,
        )

    def take_documents(self, parcel: Parcel) -> None:
        *below, top = parcel.documents
        for document in below:
            self.registry.push_manifest(self.repository.at(document.digest), document)
        tagged = replace(self.repository, tag=name_of(top.digest))
        # A tag that cannot be changed is no obstacle where it says what it should.
        if not self._says(tagged, top.digest):
            self.registry.push_manifest(tagged, top)

    def entry(self, digest: Digest) -> Escrow:
        return Escrow(registry=self.repository, digest=digest)

    def _says(self, tagged: Reference, digest: Digest) -> bool:
        try:
            return self.registry.resolve(tagged).digest == digest
        except GoneError:
            return False


@value
class LayoutPlace:
    """:class:`Place` over a layout on disk, ``layout`` as the lock names it."""

    layout: str
    store: Store
    progress: Progress

    def take_blob(self, blob: Blob) -> str:
        wanted = blob.descriptor
        if self.store.has(wanted.digest, size=wanted.size):
            return "present"
        title = f"copy {wanted.digest.short}"
        with self.progress.task(title, total=wanted.size) as task, self.store.writer() as writer:
            for chunk in counted(blob.chunks(), task):
                writer.write(chunk)
            writer.commit(wanted.digest, size=wanted.size)
        return "uploaded"

    def take_documents(self, parcel: Parcel) -> None:
        for document in parcel.documents:
            self.store.put(document.raw)
        self.store.set_reference(name_of(parcel.top.digest), parcel.top.descriptor)

    def entry(self, digest: Digest) -> Escrow:
        return Escrow(layout=self.layout, digest=digest)
