"""A pin that is new: its name, and what is said once it is written."""

import json
import re
from collections.abc import Callable, Iterator

from builder import bump as bumps
from builder.cli.bump import conclude
from builder.cli.site import Site
from builder.errors import ProjectError, UsageError
from builder.lock.kinds import pins_of
from builder.lock.model import GenesisPin, ImagePin, Pin, SourcePin
from builder.moves import AnyResolved, Move
from builder.node import is_name
from builder.world import World

_USES = {
    "vllm": "base: {{pin: {}}}",
    "genesis": "steps: [{{genesis: {}, ...}}]",
    "pull": "steps: [{{pull: {}}}]",
    "source": "steps: [{{source: {}, files: [{{from: {}, to: WHERE, replaces: nothing}}]}}]",
    "wheel": "steps: [{{wheels: [{}]}}]",
    "model": "models: [{}]",
}
"""How a variant names a pin of each kind; of a source, one of its files."""


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
    first = _first_file(move.pin)
    then = f"next: in a variant, {_USES[kind].format(name, first)}"
    conclude(site, bump, dry_run=dry_run, then="\n".join((*_left_alone(move.pin), then)))


def _first_file(pin: Pin) -> str:
    """A file of a source as YAML has it in a list; nothing of other pins."""
    path = pin.files[0].path if isinstance(pin, SourcePin) else ""
    return path if re.fullmatch(r"[\w./-]*", path) else json.dumps(path, ensure_ascii=False)


def _left_alone(pin: Pin) -> Iterator[str]:
    """That no night looks for something newer, where that is so and could be otherwise."""
    match pin:
        case ImagePin(tags=None):
            yield (
                f"{pin.name} follows one tag: builder bump moves it once that names another image,"
                " and builder nightly leaves it alone; tags under follows (--tags) are what it"
                " looks among"
            )
        case GenesisPin(follows=None) | SourcePin(follows=None):
            yield (
                f"{pin.name} follows nothing: builder bump needs a target, and builder nightly"
                " leaves it alone; ref under follows (--ref) says what it follows"
            )
        case _:
            return


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
