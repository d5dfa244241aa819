"""Pins that are locked, and lack something: completed without being moved."""

from collections.abc import Iterator, Sequence

from builder.errors import GoneError, IntegrityError, NetworkError, ProjectError, UsageError
from builder.lock.kinds import KINDS, pins_of
from builder.lock.model import GenesisPin, ImagePin, ModelPin, Pin, WheelPin
from builder.models.published import Published
from builder.moves import AnyResolved, Move, resolved
from builder.node import did_you_mean, nearest
from builder.oci import Platform
from builder.pipeline import copies_of
from builder.project import Project
from builder.resolve.found import Resolved
from builder.resolve.images import complete_image
from builder.resolve.model_sums import resolve_with_sums
from builder.world import World


def completed(
    project: Project,
    names: Sequence[str],
    *,
    world: World,
    platform: Platform,
    published: Published | None = None,
) -> tuple[Move, ...]:
    """Every pin of these names (of all, for none), with what it lacked.

    Args:
        published: Digests of the files of the one model that ``names`` must have then. A model that
            lacks nothing is compared with them, too; they are all there is where the hub has the
            commit no more, or may not be asked.

    Raises:
        UsageError: There is no pin of one of these names, or ``published`` is of no model.
        IntegrityError: Upstream has something else under what is locked.
        ProjectError: A model has files in the lock that it would not have.
        GoneError, NetworkError: Upstream could not be asked, or has it no more; nothing is
            completed then.
    """
    found = [(kind, pin) for kind in KINDS for pin in pins_of(project, kind).values()]
    known = {pin.name for _, pin in found}
    for name in names:
        if name not in known:
            raise UsageError(
                f"no pin {name!r}",
                hint=did_you_mean(nearest(name, known)) or f"there are: {', '.join(sorted(known))}",
            )
    if published is not None:
        if len(names) != 1 or names[0] not in project.models:
            raise UsageError(
                "checksums are of one model, and of nothing else",
                hint=f"name one of: {', '.join(project.models) or '(no model is pinned)'}",
            )
        pin = project.models[names[0]]
        whole = _with_sums(pin, published, world=world)
        return (Move(kind="model", before=pin, resolved=whole),)
    wanted = [(kind, pin) for kind, pin in found if not names or pin.name in names]
    return tuple(
        Move(kind=kind, before=pin, resolved=whole)
        for kind, pin in wanted
        for whole in _told(_completed(pin, project, world, platform), pin, alone=len(wanted) == 1)
    )


def _told(whole: Iterator[AnyResolved], pin: Pin, *, alone: bool) -> Iterator[AnyResolved]:
    """The same, where a failure to ask says about which pin, and how others are completed."""
    try:
        yield from whole
    except (GoneError, NetworkError) as error:
        said = error.message if error.message.startswith(pin.at) else f"{pin.at}: {error.message}"
        others = () if alone else ("builder lock NAME completes another pin",)
        raise type(error)(said, hint="; ".join((*filter(None, [error.hint]), *others))) from error


def _completed(
    pin: Pin, project: Project, world: World, platform: Platform
) -> Iterator[AnyResolved]:
    """The pin with what it lacked; nothing for one that is whole."""
    match pin:
        case ImagePin():
            yield complete_image(
                pin,
                platforms=tuple(key for key, _ in pin.platforms) or (platform,),
                registry=world.registry,
                store=world.store,
                progress=world.progress,
                now=world.now,
                open_copy=copies_of(project, world),
            )
        case GenesisPin(payload=None):
            yield _the_same(pin, str(pin.commit), world, platform)
        case WheelPin(size=None, path=None):
            yield _the_same(pin, pin.version, world, platform)
        case ModelPin() if _lacks(pin):
            yield _the_same(pin, str(pin.commit), world, platform)
        case _:
            return


def _lacks(pin: ModelPin) -> bool:
    return not pin.files or any(None in (file.digest, file.size) for file in pin.files)


def _with_sums(pin: ModelPin, published: Published, *, world: World) -> Resolved[ModelPin]:
    """A model held to checksums, and completed where it lacks something."""
    if not _lacks(pin):
        return Resolved(pin=pin, remarks=(published.agree(pin),))
    found = resolve_with_sums(
        pin.repository,
        str(pin.commit),
        published,
        name=pin.name,
        hub=world.hub,
        now=world.now,
        before=pin,
    )
    _check_files(pin, found.pin)
    return found


def _the_same(pin: Pin, target: str, world: World, platform: Platform) -> AnyResolved:
    """The pin, resolved anew to what it is, which must still be that."""
    found = resolved(pin, target, world=world, platform=platform)
    match pin, found.pin:
        case (GenesisPin(tree=old), GenesisPin(tree=new)) if old != new:
            raise IntegrityError(f"{pin.at}: the commit has tree {new}, the lock pins {old}")
        case (WheelPin(digest=before), WheelPin(digest=now)) if before != now:
            raise IntegrityError(
                f"{pin.at}: the index has {now}, the lock pins {before}",
                hint="upstream has another file under this version; the pinned one stays as it is",
            )
        case (ModelPin() as locked, ModelPin() as whole):
            _check_files(locked, whole)
        case _:
            pass
    return found


def _check_files(pin: ModelPin, whole: ModelPin) -> None:
    """Hold a model to the files that were locked of it."""
    there = {file.path: file for file in whole.files}
    for file in pin.files:
        if (found := there.get(file.path)) is None:
            raise ProjectError(
                f"{pin.at}: the lock pins {file.path!r}, which the commit does not have or"
                " 'include' does not select",
                hint="write it under include, or take it off files",
            )
        for what, locked, said in (
            ("digest", file.digest, found.digest),
            ("size", file.size, found.size),
        ):
            if locked not in (None, said):
                raise IntegrityError(
                    f"{pin.at}: {file.path!r}: the hub has {what} {said}, the lock pins {locked}",
                    hint="the pinned one stays as it is",
                )
