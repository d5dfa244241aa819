"""Base images: from a tag to index, manifest, config and layers, and to the vLLM inside."""

from collections.abc import Iterable
from dataclasses import replace

from builder import base as bases
from builder.base import Base
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError, NetworkError, ProjectError
from builder.lock.model import ImagePin, LayerPin, PlatformPin, VllmBuild
from builder.oci import Index, Manifest, Platform
from builder.origin import OpenCopy, Origin, RegistryOrigin
from builder.pinned_base import obtain_pinned
from builder.ports import Progress, Registry, Store
from builder.reference import Reference
from builder.resolve.found import Resolved
from builder.resolve.inside import build_of, look_inside
from builder.resolve.newest import newest_tag, ordered_tags
from builder.resolve.platforms import available, members
from builder.value import value

__all__ = ["complete_image", "newest_tag", "ordered_tags", "resolve_image"]


@value
class _Room:
    """What the functions here work with."""

    registry: Registry
    store: Store
    progress: Progress
    inside: bool


def resolve_image(
    pin: ImagePin,
    *,
    platforms: tuple[Platform, ...],
    registry: Registry,
    store: Store,
    progress: Progress,
    now: str,
    before: ImagePin | None = None,
    inside: bool = True,
) -> Resolved[ImagePin]:
    """Resolve ``pin.follows`` (a tag) to everything that a lock holds of an image. The pin's name,
    ``tags`` and ``commits`` are taken over. The tag is asked for with HEAD; documents come by
    digest and stay in the store.

    ``index`` is the digest that the tag names: that of an index, or, where the image is of one
    platform and has none, that of its manifest. A platform that the image lacks is a remark, as
    long as it has one of them.

    Args:
        platforms: Those of the project; those that ``before`` has are resolved, too.
        before: The pin as it is locked. Where what the tag names is the same, its escrow,
            ``failing`` and ``locked`` stay. That the same tag names something else is a remark.
        inside: Whether to read the layers, each once on this machine, for the vLLM in them and
            their file indexes. Without it, what ``before`` knows of the same image stays.

    Raises:
        ProjectError: The pin follows no tag; the image is for none of the platforms.
        GoneError: There is no such tag.
        IntegrityError: Tag, digest and documents contradict each other.
        AuthError, RateLimitError, NetworkError, OfflineError.
    """
    at = pin.at or str(pin.follows)
    if pin.follows.tag is None:
        raise ProjectError(f"{at}: no tag to follow", hint="name one: builder add vllm TAG")
    room = _Room(registry=registry, store=store, progress=progress, inside=inside)
    follows = replace(pin.follows, digest=None)
    origin = RegistryOrigin(lambda: registry, follows)
    document = _named(follows, registry, origin=origin, store=store, at=at)
    kept = before if before is not None and _is_of(before, document) else None
    wanted = _wanted(platforms, before)
    have, remarks = available(document, wanted, origin=origin, store=store, at=at)
    found = {
        platform: bases.obtain(document.digest, platform, origin=origin, store=store, at=at)
        for platform in have
    }
    fresh = ImagePin(
        name=pin.name,
        follows=follows,
        tags=pin.tags,
        commits=pin.commits,
        index=document.digest,
        vllm=None if kept is None else kept.vllm,
        escrow=() if kept is None else kept.escrow,
        failing=() if kept is None else kept.failing,
        locked=(None if kept is None else kept.locked) or now,
        at=pin.at,
    )
    made, more = _filled(fresh, found, _files_of(kept), room=room, at=at)
    return Resolved(pin=made, remarks=(*_moved(pin, before, kept), *remarks, *more))


def complete_image(
    pin: ImagePin,
    *,
    platforms: tuple[Platform, ...],
    registry: Registry,
    store: Store,
    progress: Progress,
    now: str,
    open_copy: OpenCopy,
    inside: bool = True,
) -> Resolved[ImagePin]:
    """Fill in what a locked pin lacks, without moving it: by its digests. What is there is checked
    against the documents (:func:`builder.pinned_base.obtain_pinned`) and the image.

    That its tag names something else by now, nothing, or cannot be asked, is a remark; so is a
    platform that the pinned index lacks. ``index`` is filled in where the tag still leads to the
    pinned manifests.

    Args:
        platforms: Those of the project; those of the pin are completed, too.
        open_copy: Opens the copies of ours that the pin names, for what upstream has no more.
        inside: As for :func:`resolve_image`. Layers are read where ``vllm`` or a layer's ``files``
            is missing.

    Raises:
        IntegrityError: The lock and the image contradict each other.
        GoneError: A document or a layer is not in the store and not to be had.
        AuthError, RateLimitError, NetworkError, OfflineError.
    """
    at = pin.at or str(pin.follows)
    origin = RegistryOrigin(lambda: registry, pin.follows)
    index, remarks = _index_of(pin, registry, origin=origin, store=store)
    pin = replace(pin, index=index)
    wanted, more = _addable(pin, platforms, origin=origin, store=store, at=at)
    found = {
        platform: obtain_pinned(
            pin, platform, store=store, registry=lambda: registry, open_copy=open_copy
        )
        for platform in wanted
    }
    told = _files_of(pin)
    whole = pin.vllm is not None and pin.vllm.package is not None and _all_told(found, told)
    room = _Room(registry=registry, store=store, progress=progress, inside=inside and not whole)
    made, last = _filled(pin, found, told, room=room, at=at)
    return Resolved(pin=replace(made, locked=pin.locked or now), remarks=(*remarks, *more, *last))


def _named(
    follows: Reference, registry: Registry, *, origin: Origin, store: Store, at: str
) -> Manifest | Index:
    """What a tag names. The registry's word on its digest is checked by what is behind it."""
    named = registry.resolve(follows)
    document = bases.read_document(named.digest, origin, store)
    if (document.media_type, len(document.raw)) != (named.media_type, named.size):
        raise IntegrityError(
            f"{at}: the registry says that the tag is of {named.size} bytes of"
            f" {named.media_type!r}, {named.digest} is {len(document.raw)} bytes of"
            f" {document.media_type!r}"
        )
    return document


def _filled(
    pin: ImagePin,
    found: dict[Platform, Base],
    files: dict[Digest, Digest],
    *,
    room: _Room,
    at: str,
) -> tuple[ImagePin, tuple[str, ...]]:
    """The pin with these platforms, and with what is in the image where that is to be read."""
    files, build = dict(files), pin.vllm
    remarks: list[str] = []
    for number, (platform, base) in enumerate(found.items() if room.inside else ()):
        seen = look_inside(base, store=room.store, progress=room.progress)
        remarks += seen.remarks
        layers = (layer.digest for layer in base.manifest.layers)
        files |= dict(zip(layers, seen.files, strict=True))
        if seen.vllm is None:
            continue
        told = pin.vllm if number == 0 else None
        made, more = build_of(seen.vllm, base, tag=pin.follows.tag, told=told, at=at)
        remarks += [item for item in more if item not in remarks]
        if number == 0:
            build = made
        elif made != build:
            remarks.append(_differs(platform, made, build))
    pinned = tuple((platform, _platform_pin(base, files)) for platform, base in found.items())
    in_order = tuple(sorted(pinned, key=lambda pair: str(pair[0])))
    return replace(pin, platforms=in_order, vllm=build), tuple(remarks)


def _differs(platform: Platform, made: VllmBuild, build: VllmBuild | None) -> str:
    other = "none" if build is None else f"{build.version} in {build.package}"
    return f"{platform} holds vLLM {made.version} in {made.package}, the lock says {other}"


def _platform_pin(base: Base, files: dict[Digest, Digest]) -> PlatformPin:
    layers = zip(base.manifest.layers, base.diff_ids, strict=True)
    return PlatformPin(
        manifest=base.manifest.digest,
        config=base.manifest.config.digest,
        layers=tuple(
            LayerPin(
                digest=layer.digest,
                size=layer.size,
                diff_id=diff_id,
                files=files.get(layer.digest),
            )
            for layer, diff_id in layers
        ),
    )


def _files_of(pin: ImagePin | None) -> dict[Digest, Digest]:
    """The file indexes that a lock pins, by layer."""
    platforms = () if pin is None else pin.platforms
    layers = (layer for _, item in platforms for layer in item.layers)
    return {layer.digest: layer.files for layer in layers if layer.files is not None}


def _all_told(found: dict[Platform, Base], told: dict[Digest, Digest]) -> bool:
    return all(layer.digest in told for base in found.values() for layer in base.manifest.layers)


def _wanted(platforms: Iterable[Platform], pin: ImagePin | None) -> tuple[Platform, ...]:
    pinned = () if pin is None else (platform for platform, _ in pin.platforms)
    return tuple(dict.fromkeys((*platforms, *pinned)))


def _is_of(pin: ImagePin, document: Manifest | Index) -> bool:
    """Whether a lock pins this very image."""
    if pin.index is not None:
        return pin.index == document.digest
    pinned = {item.manifest for _, item in pin.platforms}
    return bool(pinned) and pinned <= members(document)


def _moved(pin: ImagePin, before: ImagePin | None, kept: ImagePin | None) -> tuple[str, ...]:
    if before is None or kept is not None or before.follows.tag != pin.follows.tag:
        return ()
    return (f"the tag {pin.follows.tag} names another image now than when it was locked",)


def _addable(
    pin: ImagePin, platforms: tuple[Platform, ...], *, origin: Origin, store: Store, at: str
) -> tuple[tuple[Platform, ...], tuple[str, ...]]:
    """The platforms of a pin, those first, and those that its index can add."""
    pinned = tuple(platform for platform, _ in pin.platforms)
    new = tuple(item for item in platforms if item not in pinned)
    if not new:
        return pinned, ()
    try:
        if pin.index is None:
            raise GoneError(f"{at}: no index is pinned")
        document = bases.read_document(pin.index, origin, store)
        have, remarks = available(document, (*pinned, *new), origin=origin, store=store, at=at)
    except GoneError as error:
        if not pinned:
            raise
        listed = ", ".join(map(str, new))
        return pinned, (f"{listed} cannot be added: {error.message}",)
    return tuple(dict.fromkeys((*pinned, *have))), remarks


def _index_of(
    pin: ImagePin, registry: Registry, *, origin: Origin, store: Store
) -> tuple[Digest | None, tuple[str, ...]]:
    """The pin's index, or the one that its tag still leads to; and what became of the tag."""
    tag = pin.follows.tag
    if tag is None:
        return pin.index, ()
    try:
        named = registry.resolve(replace(pin.follows, digest=None)).digest
        if pin.index is None and _is_of(pin, bases.read_document(named, origin, store)):
            return named, ()
    except GoneError:
        return pin.index, (f"the tag {tag} is gone upstream, what it named is pinned",)
    except NetworkError as error:
        return pin.index, (f"what the tag {tag} names now is not known: {error.message}",)
    if named == pin.index:
        return pin.index, ()
    return pin.index, (f"the tag {tag} names another image now: {named}",)
