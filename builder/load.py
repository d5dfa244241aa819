"""Load an image into the local Docker Engine, moving only the layers that it lacks.

The engine takes a layer whose chain of diff_ids it has from its own store and does not look at the
archive for it (moby, ``image/tarexport/load.go``). So the base is pulled by digest, once, and the
archive holds our layers alone.
"""

import logging
from typing import BinaryIO, cast

from builder.base import Base, config_of, layer_blob
from builder.digest import Digest
from builder.docker_archive import archive
from builder.errors import BuilderError, EnvironmentFault, GoneError, IntegrityError
from builder.image import Image
from builder.oci import Descriptor
from builder.ports import Engine, Progress, Store
from builder.streams import ChunkReader, counted
from builder.value import value

_log = logging.getLogger(__name__)


@value
class Loaded:
    """An image in the engine; ``moved`` layers were sent to it."""

    name: str
    moved: int


def load(
    image: Image,
    base: Base | None,
    name: str,
    *,
    store: Store,
    engine: Engine,
    progress: Progress,
) -> Loaded:
    """Have ``image`` in the engine under ``name``.

    Raises:
        EnvironmentFault: No engine, or it refuses.
        IntegrityError: The engine holds another image than we sent.
    """
    image_id = image.manifest.config.digest
    if engine.has_image(image_id):
        engine.tag(image_id, name)
        return Loaded(name=name, moved=0)
    lent = (
        len(image.base_layers)
        if base is not None and engine.keeps_layers() and _have_base(base, engine)
        else 0
    )
    try:
        moved = _send(image, base, lent, name, store=store, engine=engine, progress=progress)
    except EnvironmentFault as error:
        if not lent:
            raise
        _log.warning("the engine does not lend its base layers (%s); sending all", error.message)
        moved = _send(image, base, 0, name, store=store, engine=engine, progress=progress)
    engine.tag(image_id, name)
    return Loaded(name=name, moved=moved)


def _have_base(base: Base, engine: Engine) -> bool:
    """Whether the engine has the base, after pulling it where that is possible."""
    base_id = base.manifest.config.digest
    if engine.has_image(base_id):
        return True
    if not base.sources:
        return False
    try:
        pull(base, engine)
    except BuilderError as error:
        _log.warning("the engine cannot pull the base itself (%s); sending it", error.message)
        return False
    return engine.has_image(base_id)


def pull(base: Base, engine: Engine) -> None:
    """Have the engine pull a base by digest: from where the lock follows it, and where that says
    that it is gone, from a registry of ours that keeps it.

    Raises:
        GoneError, AuthError, RateLimitError, NetworkError: What the engine says of the last one
            that was asked.
    """
    *sources, last = (source.at(base.manifest.digest) for source in base.sources)
    for reference in sources:
        try:
            return engine.pull(reference)
        except GoneError as error:
            _log.warning("%s; asking the next that keeps it", error.message)
    return engine.pull(last)


@value(kw_only=False)
class _Layer:
    """A layer of an image as the archive takes it: compressed as it is."""

    descriptor: Descriptor
    base: Base | None
    store: Store

    @property
    def size(self) -> int:
        return self.descriptor.size

    def open(self) -> BinaryIO:
        return cast("BinaryIO", ChunkReader(layer_blob(self.descriptor, self.base, self.store)))


def _send(
    image: Image,
    base: Base | None,
    lent: int,
    name: str,
    *,
    store: Store,
    engine: Engine,
    progress: Progress,
) -> int:
    """Send all layers but the lowest ``lent``; returns how many those were."""
    diff_ids = [
        Digest.parse(item, at="our config: diff_ids", refusal=IntegrityError)
        for item in config_of(image.config, at="our config")["rootfs"]["diff_ids"]
    ]
    layers = [
        (diff_id, None if number < lent else _Layer(descriptor, base, store))
        for number, (descriptor, diff_id) in enumerate(
            zip(image.manifest.layers, diff_ids, strict=True)
        )
    ]
    with progress.task(f"load {name}") as task:
        stream = counted(archive(image.config, layers), task)
        engine.load(stream, expected=image.manifest.config.digest)
    return len(layers) - lent
