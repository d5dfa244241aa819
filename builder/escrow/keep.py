"""Each pin to the place, blobs first; then the place into the lock."""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from builder.errors import GoneError
from builder.escrow import parcel as parcels
from builder.escrow.parcel import Parcel
from builder.escrow.pins import OutsidePin, pins_of
from builder.escrow.place import Place
from builder.lock.edit import file_of
from builder.lock.kinds import word_of
from builder.lock.model import Escrow, GenesisPin, ImagePin, PullPin, SourcePin, WheelPin
from builder.oci import Platform
from builder.origin import place_of
from builder.pipeline import materials, obtain
from builder.project import Project
from builder.value import value
from builder.variant import Variant
from builder.world import World

_log = logging.getLogger(__name__)
_AT_ONCE = 6


@value
class Kept:
    """A pin that is kept now: where, and how its blobs came there. ``recorded`` is whether the lock
    said so already; ``lost`` is what was said of a pin that nobody has any more."""

    pin: OutsidePin
    entry: Escrow | None = None
    present: int = 0
    mounted: int = 0
    copied: int = 0
    copied_bytes: int = 0
    lost: GoneError | None = None

    @property
    def kind(self) -> str:
        return word_of(self.pin)

    @property
    def recorded(self) -> bool:
        return self.entry in self.pin.escrow


def keep(
    project: Project,
    variants: Sequence[str],
    place: Place,
    *,
    world: World,
    platform: Platform,
    all_platforms: bool = False,
) -> Iterator[Kept]:
    """Keep what the variants need from outside, one pin after the other, each once.

    A pin that is gone everywhere does not hold up the others: it is yielded as ``lost``. Nothing is
    written to the lock.

    Raises:
        BuilderError: The place, or an origin, does not play along; what was yielded is kept.
    """
    seen: set[tuple[type, str]] = set()
    for name in variants:
        variant = project.variant(name)
        for pin in pins_of(project, variant):
            if (type(pin), pin.name) in seen:
                continue
            seen.add((type(pin), pin.name))
            try:
                parcel = _parcel(
                    project,
                    variant,
                    pin,
                    world=world,
                    platform=platform,
                    all_platforms=all_platforms,
                )
                yield _keep(pin, parcel, place)
            except GoneError as error:
                yield Kept(pin=pin, lost=error)


def _parcel(
    project: Project,
    variant: Variant,
    pin: OutsidePin,
    *,
    world: World,
    platform: Platform,
    all_platforms: bool,
) -> Parcel:
    if isinstance(pin, ImagePin):
        base = obtain(project, variant, world=world, platform=platform)
        assert base is not None
        return parcels.of_base(pin, base, platform, store=world.store, all_platforms=all_platforms)
    bytes_of = materials(project, variant, world)
    match pin:
        case PullPin():
            return parcels.of_pull(pin, bytes_of)
        case SourcePin():
            return parcels.of_source(pin, bytes_of)
        case GenesisPin():
            return parcels.of_patch_set(pin, bytes_of)
        case WheelPin():
            return parcels.of_wheel(pin, bytes_of)


def _keep(pin: OutsidePin, parcel: Parcel, place: Place) -> Kept:
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        ways = list(pool.map(place.take_blob, parcel.blobs))
    place.take_documents(parcel)
    copied = [
        blob.descriptor.size
        for blob, way in zip(parcel.blobs, ways, strict=True)
        if way == "uploaded"
    ]
    entry = place.entry(parcel.top.digest)
    _log.info("%s is kept at %s", pin.at, place_of(entry))
    return Kept(
        pin=pin,
        entry=entry,
        present=ways.count("present"),
        mounted=ways.count("mounted"),
        copied=len(copied),
        copied_bytes=sum(copied),
    )


def record(project: Project, kept: Sequence[Kept]) -> None:
    """Write into the lock where each pin is kept, behind the places that it has already.

    Raises:
        ProjectError: A lockfile was changed meanwhile. What was kept stays, and is not sent again.
    """
    new = [
        replace(item.pin, escrow=(*item.pin.escrow, item.entry))
        for item in kept
        if item.entry is not None and not item.recorded
    ]
    seen = {file: project.lockfile(file) for file in map(file_of, new)}
    project.put_pins(new, seen=seen)
