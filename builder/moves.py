"""Which pins are to move, and to what: from the words of a command to resolved pins."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from builder.errors import BuilderError, GoneError, NetworkError, ProjectError, UsageError
from builder.lock.kinds import pins_of
from builder.lock.model import (
    GenesisPin,
    ImagePin,
    ModelPin,
    Pin,
    PullPin,
    SourcePin,
    WheelPin,
)
from builder.node import did_you_mean, nearest
from builder.oci import Platform
from builder.project import Project
from builder.reference import Reference
from builder.resolve.found import Resolved
from builder.resolve.images import newest_tag, resolve_image
from builder.resolve.models import resolve_model
from builder.resolve.patch_sets import resolve_genesis
from builder.resolve.published import resolve_published
from builder.resolve.pulls import resolve_pull
from builder.resolve.sources import resolve_source
from builder.resolve.wheels import resolve_wheel
from builder.upstream import Distance
from builder.value import value
from builder.world import World

AnyResolved: TypeAlias = (
    Resolved[ImagePin]
    | Resolved[PullPin]
    | Resolved[SourcePin]
    | Resolved[WheelPin]
    | Resolved[GenesisPin]
    | Resolved[ModelPin]
)


@value
class Move:
    """A pin, and what it becomes. ``before`` is ``None`` for one that is new."""

    kind: str
    before: Pin | None
    resolved: AnyResolved

    @property
    def pin(self) -> Pin:
        return self.resolved.pin

    @property
    def changes(self) -> bool:
        """Whether the lock will say something else."""
        return self.before != self.pin


def moves(
    project: Project,
    kind: str,
    words: Sequence[str],
    *,
    latest: bool = False,
    world: World,
    platform: Platform,
) -> tuple[Move, ...]:
    """The moves that ``[NAME] [TARGET]`` asks for.

    Without a name, the target is for the only pin of the kind, or for all where they agree: where
    they are the same thing under several names. Of pins in different repositories those are meant
    whose repository has the target.

    Args:
        latest: For ``vllm``: to the newest of the tags that the pin follows.

    Raises:
        UsageError: Nobody can tell which pin is meant.
        ProjectError: There is no pin of the kind.
        BuilderError: As the module of ``builder.resolve`` for the kind.
    """
    pins = pins_of(project, kind)
    if not pins:
        raise ProjectError(f"no pin of the kind {kind!r}", hint=f"builder add {kind} makes one")
    chosen, target = _chosen(pins, kind, words)

    def moved(pin: Pin) -> Move:
        return Move(
            kind=kind,
            before=pin,
            resolved=resolved(pin, target, latest=latest, world=world, platform=platform),
        )

    if len({_followed(pin) for pin in chosen}) == 1:
        found = tuple(map(moved, chosen))
    else:
        found = _where_it_is(chosen, moved, kind, target)
    return (*found, *_with_them(found, project, world))


def _with_them(found: Sequence[Move], project: Project, world: World) -> Iterator[Move]:
    """The pull requests that are published by sources which move."""
    sources = {move.pin.name: move.pin for move in found if isinstance(move.pin, SourcePin)}
    for pull in project.pulls.values() if sources else ():
        if pull.published is None or pull.published.source not in sources:
            continue
        published = resolve_published(
            pull.repository,
            pull.pull,
            pull.published,
            sources[pull.published.source],
            name=pull.name,
            git=world.git,
            now=world.now,
            before=pull,
        )
        yield Move(kind="pull", before=pull, resolved=published)


def _chosen(
    pins: Mapping[str, Pin], kind: str, words: Sequence[str]
) -> tuple[tuple[Pin, ...], str | None]:
    """The pins that are meant, or may be, and the target."""
    first, *rest = words or ("",)
    if first in pins:
        return (pins[first],), rest[0] if rest else None
    if kind == "pull" and first.isascii() and first.isdigit() and not rest:
        numbered = (pin for pin in pins.values() if isinstance(pin, PullPin))
        if not (found := tuple(pin for pin in numbered if str(pin.pull) == first)):
            raise UsageError(f"no pin of pull request {first}", hint=f"builder add pull {first}")
        return found, None
    if len(pins) > 1 and not first:
        raise UsageError(f"which {kind} pin?", hint=f"name one of: {', '.join(pins)}")
    if rest or (len(pins) > 1 and kind not in ("vllm", "genesis")):
        raise UsageError(
            f"no {kind} pin {first!r}",
            hint=did_you_mean(nearest(first, pins)) or f"there are: {', '.join(pins)}",
        )
    return tuple(pins.values()), first or None


def _followed(pin: Pin) -> tuple[str, ...]:
    """What makes two pins the same thing: where it is from, and what it is now."""
    match pin:
        case ImagePin():
            return pin.follows.name, str(pin.index or pin.platforms)
        case GenesisPin() | SourcePin() | ModelPin():
            return pin.repository, str(pin.commit)
        case PullPin():
            return pin.repository, str(pin.pull)
        case WheelPin():
            return pin.project, pin.version


def _where_it_is(
    pins: Sequence[Pin], moved: Callable[[Pin], Move], kind: str, target: str | None
) -> tuple[Move, ...]:
    """Of pins that differ, those whose place has the target; they must agree."""
    found: list[Move] = []
    missed: list[BuilderError] = []
    for pin in pins:
        try:
            found.append(moved(pin))
        except (GoneError, ProjectError) as error:
            missed.append(error)
    if not found:
        raise missed[0]
    befores = {_followed(move.before) for move in found if move.before is not None}
    if len(befores) > 1:
        several = ", ".join(move.pin.name for move in found)
        raise UsageError(
            f"{target!r} may be meant for several {kind} pins: {several}",
            hint=f"name the pin: builder bump {kind} NAME {target}",
        )
    return tuple(found)


def resolved(
    pin: Pin, target: str | None, *, latest: bool = False, world: World, platform: Platform
) -> AnyResolved:
    """What a pin becomes at ``target``, or at what it follows. Raises as :func:`moves`."""
    if latest and not isinstance(pin, ImagePin):
        raise UsageError("--latest is for vllm pins", hint="others follow a ref or a release")
    match pin:
        case ImagePin():
            return _image(pin, target, latest=latest, world=world, platform=platform)
        case WheelPin():
            return resolve_wheel(
                pin.project, target, name=pin.name, wheels=world.wheels, now=world.now, before=pin
            )
        case ModelPin():
            return resolve_model(
                pin.repository, target, name=pin.name, hub=world.hub, now=world.now, before=pin
            )
        case PullPin():
            return _pull(pin, target, world=world)
        case SourcePin():
            return _source(pin, target, world=world)
        case GenesisPin():
            return _genesis(pin, target, world=world)


def _genesis(pin: GenesisPin, target: str | None, *, world: World) -> Resolved[GenesisPin]:
    return resolve_genesis(
        pin.repository,
        target,
        name=pin.name,
        follows=pin.follows,
        git=world.git,
        history=world.history,
        now=world.now,
        before=pin,
    )


def _source(pin: SourcePin, target: str | None, *, world: World) -> Resolved[SourcePin]:
    return resolve_source(
        pin.repository,
        target,
        tuple(file.path for file in pin.files),
        name=pin.name,
        follows=pin.follows,
        git=world.git,
        history=world.history,
        now=world.now,
        before=pin,
    )


def _pull(pin: PullPin, target: str | None, *, world: World) -> Resolved[PullPin]:
    if target is not None:
        raise UsageError(f"a pull request moves to what it is now, not to {target!r}")
    return resolve_pull(
        pin.repository,
        pin.pull,
        name=pin.name,
        git=world.git,
        history=world.history,
        forge=world.forge,
        store=world.store,
        now=world.now,
        before=pin,
    )


def _image(
    pin: ImagePin, target: str | None, *, latest: bool, world: World, platform: Platform
) -> Resolved[ImagePin]:
    if latest == (target is not None):
        raise UsageError(
            f"{pin.name}: give a tag, or --latest", hint=f"builder bump vllm {pin.name} TAG"
        )
    if latest:
        follows = newest_tag(
            pin,
            platform=platform,
            registry=world.registry,
            store=world.store,
            history=world.history,
        )
    else:
        follows = Reference.parse(f"{pin.follows.name}:{target}", at=f"bump vllm {pin.name}")
    found = resolve_image(
        replace(pin, follows=follows),
        platforms=tuple(key for key, _ in pin.platforms) or (platform,),
        registry=world.registry,
        store=world.store,
        progress=world.progress,
        now=world.now,
        before=pin,
    )
    distance, said = _commits(pin, found.pin, world)
    return replace(found, distance=distance, remarks=(*found.remarks, *said))


def _commits(
    before: ImagePin, after: ImagePin, world: World
) -> tuple[Distance | None, tuple[str, ...]]:
    """What lies between the commits of vLLM in two images, where the pin says whose they are; else
    ``None``, and a remark where they could not be looked up."""
    old, new = (None if pin.vllm is None else pin.vllm.commit for pin in (before, after))
    if after.commits is None or old is None or new is None or old == new:
        return None, ()
    try:
        return world.history.distance(after.commits, str(old), str(new)), ()
    except (GoneError, NetworkError) as error:
        lies = f"what lies between vLLM {old.short} and {new.short} is not known"
        return None, (f"{lies}: {error.message}",)
