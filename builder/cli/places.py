"""From what a person writes to the place where an image and its signatures are."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.adapters.store.images import LayoutImages
from builder.cli.layout_reference import PREFIX, LayoutReference
from builder.digest import Digest
from builder.errors import GoneError, ProjectError, UsageError
from builder.oci import Index, Manifest
from builder.reference import Reference
from builder.signatures.place import Place
from builder.signatures.registry import RegistryPlace
from builder.streams import stored
from builder.world import World

_PUSH = "builder push publishes one; see to the name and the tag"
_TOLD = 10
"""How many images of a layout are listed in a message."""
_EMPTY = "builder build V --out DIR puts one there"
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
    instead: Callable[[], str] = lambda: _PUSH
    """What to do where there is no such image."""

    def image(self) -> Manifest | Index:
        """What the reference names now.

        Raises:
            GoneError: Nothing.
        """
        found = self.top()
        if found is None:
            raise GoneError(f"{self.reference}: there is no such image", hint=self.instead())
        return found

    def at_hand(self, digest: Digest, store: FileStore) -> Iterator[bytes] | None:
        """A blob of the layout, or of the store of this machine."""
        for place in filter(None, (self.layers, store)):
            if place.has(digest):
                return stored(digest, place)
        return None


def spot_of(text: str, *, world: World, at: str) -> Spot:
    """``REGISTRY/REPOSITORY:TAG``, ``...@DIGEST``, or an image in a layout
    (:mod:`builder.cli.layout_reference`). What begins as no reference does (``./DIR``, ``/DIR``)
    needs no ``oci:``.

    Raises:
        UsageError: It is none of them, or a layout of several images and none is named.
        ProjectError: There is no layout in the directory.
    """
    if text.startswith((PREFIX, "/", ".")):
        return layout_spot(LayoutReference.parse(text, is_layout=_is_layout, at=at), at=at)
    reference = _in_registry(text, at=at)

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


def _in_registry(text: str, *, at: str) -> Reference:
    try:
        reference = Reference.parse(text, at=at)
        if reference.tag is None and reference.digest is None:
            raise UsageError(f"{at}: {text!r} names neither a tag nor a digest", hint="add :TAG")
    except UsageError as error:
        if _would_be_layout(text):
            hint = f"for the layout in that directory write {PREFIX}{text}"
            raise UsageError(error.message, hint=hint) from error
        raise
    return reference


def _would_be_layout(text: str) -> bool:
    try:
        LayoutReference.parse(text, is_layout=_is_layout, at="")
    except (UsageError, ProjectError):
        return False
    return True


def _is_layout(directory: str) -> bool:
    # Also where that cannot be asked: ``Path`` raises there.
    return os.path.isfile(os.path.join(directory, "oci-layout"))  # noqa: PTH113, PTH118


def layout_spot(wanted: LayoutReference, *, at: str) -> Spot:
    """An image of a layout that is there.

    Raises:
        UsageError: Neither name nor digest was written, and there are several images, or none.
    """
    path = Path(wanted.directory)
    store = FileStore(path, remedy=_ANEW)
    images = LayoutImages(store)
    if not wanted.name and wanted.digest is None:
        wanted = _only(wanted, images, at=at)
    called = wanted.name or str(wanted.digest)
    return Spot(
        reference=str(wanted),
        repository=called,
        name=called,
        open=lambda: LayoutPlace(FileStore(path, remedy=_ANEW)),
        top=lambda: images.find(wanted.name, wanted.digest),
        instead=lambda: _instead(wanted, images, store),
        layers=store,
    )


def _only(wanted: LayoutReference, images: LayoutImages, *, at: str) -> LayoutReference:
    found = [*_written(wanted.directory, images)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"{at}: there is no image in {wanted.directory!r}",
            hint=_EMPTY,
        )
    raise UsageError(
        f"{at}: which image of {wanted.directory!r}? It has {len(found)}",
        hint=f"write one of {_several(found)}",
    )


def _written(directory: str, images: LayoutImages) -> Iterator[LayoutReference]:
    """What to write for each image of a layout. A name that would be read as something else is
    not told: whoever writes it gets another image, or none."""
    for name, digest in images.choices():
        named = LayoutReference(directory=directory, name=name)
        if name and named.is_plain:
            yield named
        else:
            yield LayoutReference(directory=directory, digest=digest)


def _several(found: Sequence[LayoutReference]) -> str:
    more = len(found) - _TOLD
    return ", ".join(map(str, found[:_TOLD])) + (f" and {more} more" if more > 0 else "")


def _instead(wanted: LayoutReference, images: LayoutImages, store: FileStore) -> str:
    if wanted.digest is not None and not wanted.name and store.has(wanted.digest):
        return "there is such a blob, but index.json leads to no manifest of that digest"
    found = [item for item in _written(wanted.directory, images) if item != wanted]
    return f"the layout has: {_several(found)}" if found else _EMPTY
