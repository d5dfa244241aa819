"""A pin that is new: its name, and what is said once it is written."""

import re
from collections.abc import Callable

from builder import bump as bumps
from builder.cli.bump import conclude
from builder.cli.site import Site
from builder.errors import ProjectError, UsageError
from builder.lock.model import GenesisPin, SourcePin
from builder.moves import AnyResolved, Move, pins_of
from builder.node import is_name
from builder.world import World

_USES = {
    "vllm": "base: {{pin: {}}}",
    "genesis": "steps: [{{genesis: {}, ...}}]",
    "pull": "steps: [{{pull: {}}}]",
    "source": "steps: [{{source: {}, files: ...}}]",
    "wheel": "steps: [{{wheels: [{}]}}]",
    "model": "models: [{}]",
}
"""How a variant names a pin of each kind."""


def add(
    site: Site,
    kind: str,
    given: str | None,
    usual: str,
    resolved: Callable[[str, World], AnyResolved],
    *,
    dry_run: bool,
) -> None:
    """Make a pin, write it, and say how a variant names it.

    Args:
        given: The name that a person wants.
        usual: What the name is made of without one.
        resolved: What upstream has, as a pin of the name.

    Raises:
        UsageError: The name is none.
        ProjectError: The name is taken.
        BuilderError: As ``resolved``.
    """
    name = _name(given, usual)
    if name in pins_of(site.project, kind):
        raise ProjectError(
            f"there is a {kind} pin {name!r} already",
            hint=f"give another with --name, or move it: builder bump {kind} {name}",
        )
    with site.at_work() as world:
        move = Move(kind=kind, before=None, resolved=resolved(name, world))
        bump = bumps.untried(site.project, [move])
    then = f"next: in a variant, {_USES[kind].format(name)}"
    if isinstance(move.pin, GenesisPin | SourcePin) and move.pin.follows is None:
        then = (
            f"{name} follows nothing: bumps of it need a target, and nights leave it alone;"
            f" --ref, or ref under follows, says what it follows\n{then}"
        )
    conclude(site, bump, dry_run=dry_run, then=then)


def _name(given: str | None, usual: str) -> str:
    """The name that was given, as it is, or one made of what the pin is."""
    made = re.sub(r"[^a-z0-9]+", lambda found: _joined(found[0]), (given or usual).lower())
    made = made.strip("-._")
    if not is_name(made) or (given is not None and given != made):
        raise UsageError(
            f"{given or usual!r} is not the name of a pin",
            hint=f"did you mean {made!r}?" if given and is_name(made) else "give one with --name",
        )
    return made


def _joined(found: str) -> str:
    """What joins the parts of a name: what stood there, if names may have it."""
    return found if found in (".", "_", "-") else "-"
