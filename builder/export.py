"""An image as an OCI layout of its own: complete, base layers and all, with the exact manifest
bytes, so that its digest survives the journey."""

from builder.base import Base, layer_blob
from builder.image import Image
from builder.ports import Progress, Store
from builder.streams import counted


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
