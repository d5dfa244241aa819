"""Publish an image: all blobs, then the manifest with its tag. The visible act is the last.

A base's layer that the target has is not touched; one that its registry has in another repository
is mounted; only what is left is copied, as a stream.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import BinaryIO, cast

from builder.base import Base, layer_blob
from builder.image import Image
from builder.oci import Descriptor
from builder.ports import Progress, Registry, Store
from builder.reference import Reference
from builder.streams import ChunkReader, counted
from builder.value import value

_log = logging.getLogger(__name__)
_AT_ONCE = 6
"""Requests under way at a time: what browsers and Docker allow themselves against one host."""


@contextmanager
def several() -> Iterator[ThreadPoolExecutor]:
    """Threads for what is sent. Once something fails, what has not begun is left; when the user
    interrupts, what is under way is not waited for either: it ends with the process."""
    pool = ThreadPoolExecutor(max_workers=_AT_ONCE)
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()


@value
class Published:
    """Where an image is now, and how its blobs got there."""

    reference: Reference
    present: int
    mounted: int
    uploaded: int
    uploaded_bytes: int


def publish(
    image: Image,
    base: Base | None,
    target: Reference,
    *,
    store: Store,
    registry: Registry,
    progress: Progress,
) -> Published:
    """Push ``image`` to ``target`` (a repository, with a tag or without).

    Raises:
        GoneError, NetworkError: A registry does not play along. Blobs that were pushed stay;
            no tag was moved.
    """

    def send(descriptor: Descriptor) -> str:
        if base is not None and descriptor in image.base_layers:
            return send_blob(
                descriptor,
                target,
                sources=base.sources,
                chunks=lambda: layer_blob(descriptor, base, store),
                registry=registry,
                progress=progress,
            )
        with store.open(descriptor.digest) as content:
            return "uploaded" if registry.push_blob(target, descriptor, content) else "present"

    blobs = (*dict.fromkeys(image.manifest.layers), image.manifest.config)
    with several() as pool:
        ways = list(pool.map(send, blobs))
    registry.push_manifest(target, image.manifest)
    uploaded = [blob for blob, way in zip(blobs, ways, strict=True) if way == "uploaded"]
    return Published(
        reference=Reference(
            registry=target.registry,
            repository=target.repository,
            tag=target.tag,
            digest=image.digest,
        ),
        present=ways.count("present"),
        mounted=ways.count("mounted"),
        uploaded=len(uploaded),
        uploaded_bytes=sum(blob.size for blob in uploaded),
    )


def send_blob(
    descriptor: Descriptor,
    target: Reference,
    *,
    sources: Iterable[Reference],
    chunks: Callable[[], Iterator[bytes]],
    registry: Registry,
    progress: Progress,
) -> str:
    """Have a blob in the repository of ``target``: ``present`` there already, ``mounted`` from one
    of ``sources``, or ``uploaded`` from ``chunks``, which are asked for only then."""
    if registry.has_blob(target, descriptor):
        return "present"
    if any(registry.mount(target, descriptor, source=source) for source in sources):
        return "mounted"
    _log.info("copying blob %s (%d bytes)", descriptor.digest, descriptor.size)
    with (
        progress.task(f"copy {descriptor.digest.short}", total=descriptor.size) as task,
        ChunkReader(counted(chunks(), task)) as stream,
    ):
        sent = registry.push_blob(target, descriptor, cast("BinaryIO", stream))
    return "uploaded" if sent else "present"
