"""A night: every pin that follows something, each by itself.

follow     the pins for which there may be something newer, and why the others are left alone
resolve    what each one follows, as it is now          builder.moves
attempt    every variant that uses it, under the lock as it would be      builder.bump
bake       the image of each of them, where all pass

One pin's failure stops no other one. Nothing is written into the project.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from builder.bump import UNTRIED, Bump, tried
from builder.digest import Digest
from builder.errors import BuilderError
from builder.lock import edit
from builder.lock.codec import results_file
from builder.lock.kinds import KINDS, pins_of
from builder.lock.model import ImagePin, Pin, PullPin, Result, WheelPin
from builder.moves import Move, moves
from builder.oci import Platform
from builder.pipeline import build
from builder.project import Project
from builder.results import result_of
from builder.value import field, value
from builder.world import World

_log = logging.getLogger(__name__)


class State(StrEnum):
    """What a night came to for one pin."""

    LEFT = "left alone"
    """It follows nothing that could be newer."""
    CURRENT = "current"
    PASSES = "passes"
    """It moved, and every variant that uses it was built."""
    FAILS = "fails"
    """It moved, and something that uses it does not build."""
    UNKNOWN = "unknown"
    """What it follows, or whether it still builds, could not be found out."""


@value
class Baked:
    """The image of a variant under the lock as it would be; ``accepted`` is what the project
    expects so far."""

    variant: str
    image: Digest
    accepted: Digest | None = None


@value
class Outcome:
    """What a night came to for one pin."""

    kind: str
    name: str
    bump: Bump | None = None
    baked: tuple[Baked, ...] = ()
    results: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The files of accepted results as they would be: to merge them is to accept."""
    remarks: tuple[str, ...] = ()
    error: BuilderError | None = None
    """What went wrong beside the trials."""

    @property
    def state(self) -> State:
        if self.bump is None:
            return State.LEFT if self.error is None else State.UNKNOWN
        if self.errors:
            untried = all(isinstance(error, UNTRIED) for error in self.errors)
            return State.UNKNOWN if untried else State.FAILS
        return State.PASSES if self.bump.changes else State.CURRENT

    @property
    def errors(self) -> tuple[BuilderError, ...]:
        """Everything that is wrong."""
        found = () if self.bump is None else self.bump.errors
        return found if self.error is None else (*found, self.error)


@dataclass(frozen=True, kw_only=True)
class Means:
    """How the parts of a night are done."""

    move: Callable[[str, Pin], tuple[Move, ...]]
    """A pin, of one of :data:`builder.lock.kinds.KINDS`, and whatever moves with it."""
    attempt: Callable[[tuple[Move, ...]], Bump]
    put: Callable[[bytes | None, Pin], bytes] = edit.put
    put_result: Callable[[bytes | None, Result], bytes] = edit.put_result


def means_of(project: Project, *, world: World, platform: Platform) -> Means:
    """The usual ones."""

    def move(kind: str, pin: Pin) -> tuple[Move, ...]:
        latest = isinstance(pin, ImagePin)
        return moves(project, kind, (pin.name,), latest=latest, world=world, platform=platform)

    def attempt(moved: tuple[Move, ...]) -> Bump:
        return tried(project, moved, world=world, platform=platform)

    return Means(move=move, attempt=attempt)


def night(
    project: Project, *, world: World, platform: Platform, means: Means | None = None
) -> Iterator[Outcome]:
    """One outcome for each pin of the project, by kind and name, as they come.

    Raises:
        ProjectError: A lockfile cannot be read.
    """
    done = means or means_of(project, world=world, platform=platform)
    pins = [(kind, pin) for kind in KINDS for pin in pins_of(project, kind).values()]
    for kind, pin in pins:
        reason = left_alone(pin)
        if reason is not None:
            yield Outcome(kind=kind, name=pin.name, remarks=(reason,))
            continue
        _log.info("looking at %s %s", kind, pin.name)
        try:
            yield _outcome(project, kind, pin, world=world, platform=platform, means=done)
        except BuilderError as error:
            yield Outcome(kind=kind, name=pin.name, error=error)


def left_alone(pin: Pin) -> str | None:
    """Why nobody looks for something newer than a pin; ``None`` where somebody does."""
    match pin:
        case WheelPin():
            return f"a wheel stays at its version, {pin.version}"
        case ImagePin(tags=None):
            return f"it follows no other tag than {pin.follows.tag!r}"
        case PullPin(published=published) if published is not None:
            return f"it moves with the source {published.source!r}, which has its diff"
        case ImagePin() | PullPin():
            return None
        case _:
            return "it follows nothing" if pin.follows is None else None


def _outcome(
    project: Project, kind: str, pin: Pin, *, world: World, platform: Platform, means: Means
) -> Outcome:
    moved = means.move(kind, pin)
    if not any(move.changes for move in moved):
        return Outcome(kind=kind, name=pin.name, bump=Bump(moves=moved))
    outcome = Outcome(kind=kind, name=pin.name, bump=(bump := means.attempt(moved)))
    if bump.failing:
        return outcome
    try:
        return _baked(project, outcome, bump, world=world, platform=platform, means=means)
    except BuilderError as error:
        return replace(outcome, error=error)


def _baked(
    project: Project,
    outcome: Outcome,
    bump: Bump,
    *,
    world: World,
    platform: Platform,
    means: Means,
) -> Outcome:
    """Build every variant of a bump that passes, and renew what is accepted. The names in the store
    stay with the images that the project's own locks make."""
    after = Project(project.root, replaced=bump.files, acceptance=project.acceptance)
    baked: list[Baked] = []
    results: dict[str, bytes] = {}
    remarks: list[str] = []
    for trial in bump.trials:
        name = trial.variant
        made = build(after, name, world=world, platform=platform, held=False, named=False)
        baked.append(Baked(variant=name, image=made.image.digest, accepted=trial.accepted))
        accepted = [item.platform for item in after.results(name)]
        if platform in accepted:
            file = results_file(name)
            data = after.lockfile(file)
            if (renewed := means.put_result(data, result_of(made))) != data:
                results[file] = renewed
        others = ", ".join(str(item) for item in accepted if item != platform)
        if others:
            remarks.append(f"{name}: what is accepted for {others} was not tried, and stays")
    return replace(outcome, baked=tuple(baked), results=results, remarks=tuple(remarks))
