"""An image as an OCI layout of its own: complete, base layers and all, with the exact manifest
bytes, so that its digest survives the journey."""

from collections.abc import Iterator

from builder.base import Base
from builder.image import Image
from builder.oci import Descriptor
from builder.ports import Progress, Store
from builder.streams import counted, stored


def export(
    image: Image,
    base: Base | None,
    *,
    name: str,
    target: Store,
    store: Store,
    progress: Progress,
) -> None:
    """Copy what ``target`` lacks, then point ``name`` at the manifest there.

    Raises:
        IntegrityError: A blob is not what its descriptor says; nothing is referenced.
        GoneError, NetworkError: A base layer is not at hand and cannot be had.
    """
    for descriptor in dict.fromkeys(image.manifest.layers):
        if target.has(descriptor.digest, size=descriptor.size):
            continue
        with (
            progress.task(f"copy {descriptor.digest.short}", total=descriptor.size) as task,
            target.writer() as writer,
        ):
            for chunk in counted(layer_blob(descriptor, base, store), task):
                writer.write(chunk)
            writer.commit(descriptor.digest, size=descriptor.size)
    target.put(image.config)
    target.put(image.manifest.raw)
    target.set_reference(name, image.manifest.descriptor)


def layer_blob(descriptor: Descriptor, base: Base | None, store: Store) -> Iterator[bytes]:
    """A layer of an image: from the store, where ours are, else from the base's origin."""
    if base is None or store.has(descriptor.digest, size=descriptor.size):
        return stored(descriptor.digest, store)
    return base.origin.blob(descriptor)
