"""Wheels: from a project's name to one file of an index."""

from packaging.version import InvalidVersion, Version

from builder.errors import ProjectError
from builder.lock.model import WheelPin
from builder.ports import Wheels
from builder.resolve.found import Resolved
from builder.upstream import FoundWheel


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

    Where that is the same file as ``before``'s, its size, escrow, ``failing`` and ``locked`` stay.
    An older version, and another file of the same version, are remarks.

    Raises:
        ProjectError: ``before`` is of a wheel of the project's own (``path``).
        GoneError, AuthError, RateLimitError, NetworkError, OfflineError, EnvironmentFault: See
            ``Wheels.find``.
    """
    if before is not None and before.path is not None:
        raise ProjectError(
            f"{before.at or name}: a wheel of the project's own, unpacked in {before.path!r}",
            hint="change its files, and write the digest that a build finds",
        )
    like = None if before is None else before.filename
    found = wheels.find(project=project, version=version, like=like)
    same = before is not None and (before.filename, before.digest) == (found.filename, found.digest)
    kept = before if same else None
    pin = WheelPin(
        name=name,
        project=project,
        version=found.version,
        filename=found.filename,
        digest=found.digest,
        size=found.size if found.size is not None or kept is None else kept.size,
        escrow=() if kept is None else kept.escrow,
        failing=() if kept is None else kept.failing,
        locked=(None if kept is None else kept.locked) or now,
        at="" if before is None else before.at,
    )
    remarks = () if before is None or same else _remarks(before, found)
    return Resolved(pin=pin, remarks=remarks)


def _remarks(before: WheelPin, found: FoundWheel) -> tuple[str, ...]:
    try:
        old, new = Version(before.version), Version(found.version)
    except InvalidVersion:  # the lock's, written by hand
        return ()
    if new < old:
        return (f"{found.version} is older than {before.version}, which was pinned",)
    if new > old:
        return ()
    if found.filename == before.filename:
        what = f"the index has other bytes now for {found.filename}: {found.digest}"
        return (f"{what}, pinned was {before.digest}",)
    return (f"{found.version} is another file now: {found.filename}, was {before.filename}",)
