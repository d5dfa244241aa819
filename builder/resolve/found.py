"""What resolving a pin gives."""

from typing import Generic, TypeVar

from builder.lock.model import GenesisPin, ImagePin, ModelPin, PullPin, SourcePin, WheelPin
from builder.upstream import Distance
from builder.value import value

PinT = TypeVar("PinT", ImagePin, PullPin, SourcePin, WheelPin, GenesisPin, ModelPin)


@value
class Resolved(Generic[PinT]):
    """A pin, complete, and what there is to tell.

    ``remarks`` are sentences for people, without a full stop (``the pull request was force-pushed:
    dc3e03ccbd31 is not in the history of its new head``). ``distance`` is what lies between the
    commits of the old pin and the new one, where both are known. ``merged`` is the commit that
    brought a pull request into its branch.
    """

    pin: PinT
    remarks: tuple[str, ...] = ()
    distance: Distance | None = None
    merged: str | None = None
