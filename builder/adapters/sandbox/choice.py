"""Which sandbox this machine has."""

import logging
from collections.abc import Callable

from builder.adapters.sandbox.namespaces import NamespaceSandbox
from builder.errors import EnvironmentFault
from builder.sandbox import Job, Limits, Sandbox

_log = logging.getLogger(__name__)

_NOTHING = Job(command=("sh", "-c", ":"), roots=("probe",), files=(), limits=Limits(seconds=10))


def choose(*, engine: Callable[[], Sandbox] | None = None) -> Sandbox:
    """Namespaces where they work, which is tried; otherwise what ``engine`` makes.

    Args:
        engine: Called only where it is needed: it may have to pull an image. ``None`` where there
            is no engine to ask.

    Raises:
        EnvironmentFault: Neither works; the message has both reasons.
    """
    namespaces = NamespaceSandbox()
    try:
        namespaces.run(_NOTHING)
    except EnvironmentFault as error:
        if engine is None:
            raise
        return _fall_back(engine, error)
    return namespaces


def _fall_back(engine: Callable[[], Sandbox], reason: EnvironmentFault) -> Sandbox:
    _log.info("no namespaces here, a container instead: %s", reason)
    try:
        sandbox = engine()
        sandbox.run(_NOTHING)
    except EnvironmentFault as error:
        raise EnvironmentFault(f"{reason}; and {error}", hint=reason.hint) from error
    return sandbox
