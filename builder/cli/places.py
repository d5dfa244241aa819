"""From what a person writes to the place where an image and its signatures are."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.digest import Digest
from builder.errors import GoneError, ProjectError, UsageError
from builder.oci import Index, Manifest
from builder.reference import Reference
from builder.signatures.place import Place
from builder.signatures.registry import RegistryPlace
from builder.streams import stored
from builder.world import World

_LAYOUT = "oci:"
_ANEW = "the layout is damaged: get it again, or write it anew with builder build V --out DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """An image in a place. ``reference`` is what it is called there, ``repository`` that without
    its tag: what policies go by; ``name`` what signatures call it, without the path of a layout:
    that is another one on each machine. ``open`` opens the place, anew each time."""

    reference: str
    repository: str
    name: str
    open: Callable[[], Place]
    top: Callable[[], Manifest | Index | None]
    """What the reference names now."""
    layers: FileStore | None = None
    """The layout that the image is in."""
    names: tuple[str, ...] = ()
    """What else is in that layout, and has a name."""

    def at_hand(self, digest: Digest, store: FileStore) -> Iterator[bytes] | None:
        """A blob of the layout, or of the store of this machine."""
        for place in filter(None, (self.layers, store)):
            if place.has(digest):
                return stored(digest, place)
        return None


def spot_of(text: str, *, world: World, at: str) -> Spot:
    """``REGISTRY/REPOSITORY:TAG``, ``...@DIGEST``, ``oci:DIR`` or ``oci:DIR:NAME``. What begins as
    no reference does (``./DIR``, ``/DIR``) needs no ``oci:``.

    Raises:
        UsageError: It is none of them, or a layout of several images and none is named.
        ProjectError: There is no layout in the directory.
    """
    if text.startswith((_LAYOUT, "/", ".")):
        return _in_layout(text.removeprefix(_LAYOUT), at=at)
    reference = Reference.parse(text, at=at)
    if reference.tag is None and reference.digest is None:
        raise UsageError(f"{at}: {text!r} names neither a tag nor a digest", hint="add :TAG")

    def top() -> Manifest | Index | None:
        registry = world.make_registry()
        if reference.digest is None:
            return registry.tagged(reference)
        try:
            return registry.manifest(reference)
        except GoneError:
            return None

    return Spot(
        reference=str(reference),
        repository=reference.name,
        name=str(reference),
        open=lambda: RegistryPlace(
            registry=world.make_registry(),
            repository=reference,
            sleep=time.sleep,
            clock=time.monotonic,
        ),
        top=top,
    )


def _in_layout(text: str, *, at: str) -> Spot:
    directory, _, name = text.partition(":")
    path = Path(directory)
    if not os.path.isfile(path / "oci-layout"):  # noqa: PTH113 - also where that cannot be asked
        raise ProjectError(
            f"{at}: {directory!r} is not an OCI image layout: it has no file 'oci-layout'",
            hint="builder build V --out DIR makes one",
        )
    store = FileStore(path, remedy=_ANEW)
    named = [key for key in store.references() if not key.startswith("sha256-")]
    if not name and len(named) != 1:
        raise UsageError(
            f"{at}: which image of {directory!r}?",
            hint=f"oci:{directory}:NAME, it has: {', '.join(named) or 'none'}",
        )
    name = name or named[0]
    others = tuple(other for other in named if other != name)

    def top() -> Manifest | Index | None:
        return LayoutPlace(store).tagged(name)

    return Spot(
        reference=f"oci:{directory}:{name}",
        repository=name,
        name=name,
        open=lambda: LayoutPlace(FileStore(path, remedy=_ANEW)),
        top=top,
        layers=store,
        names=others,
    )
