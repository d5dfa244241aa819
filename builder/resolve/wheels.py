"""Wheels: from a project's name to one file of an index."""

from builder.lock.model import WheelPin
from builder.ports import Wheels
from builder.resolve.found import Resolved


def resolve_wheel(
    project: str,
    version: str | None,
    *,
    name: str,
    wheels: Wheels,
    now: str,
    before: WheelPin | None = None,
) -> Resolved[WheelPin]:
    """Pin ``project`` at ``version``, or at the newest release. The wheel is for the Python and
    platform of ``before``'s, where there is one.

    Raises:
        ProjectError: ``before`` is of a wheel of the project's own (``path``).
    """
    raise NotImplementedError
