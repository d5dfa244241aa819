"""Nights on a small project, whose upstream is what the test says."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from builder.bump import Bump, tried
from builder.digest import ObjectId
from builder.errors import BuilderError
from builder.lock import codec
from builder.lock.model import GenesisPin, ImagePin, Pin
from builder.moves import Move
from builder.nightly import Means, Outcome, night
from builder.project import Project
from builder.resolve.found import Resolved
from tests.flow.images import MadeImage
from tests.flow.worlds import AMD64, REGISTRY, Tiny

OLD, NEW = ObjectId("a" * 40), ObjectId("b" * 40)
NOW = "2026-05-11T00:00:00Z"
Upstream = Callable[[Pin], "Pin | BuilderError"]


def patch_set(tiny: Tiny, name: str) -> None:
    """Pin a patch set that no variant uses."""
    follows = {"repository": "https://git.test/patches", "ref": "refs/heads/main"}
    tiny.lock("genesis", name, {"follows": follows, "commit": str(OLD), "tree": str(OLD)})


def moved(pin: Pin, *, locked: str = NOW) -> GenesisPin:
    """A patch set at the new commit."""
    assert isinstance(pin, GenesisPin)
    return replace(pin, commit=NEW, tree=NEW, locked=locked)


def following(tiny: Tiny, made: MadeImage, *, name: str = "base") -> None:
    """Pin a base that follows tags."""
    tiny.pin(made, name=name, follows={"image": f"{REGISTRY}/base", "tag": "t", "tags": "t*"})


def as_image(pin: Pin, made: MadeImage) -> ImagePin:
    """The pin when upstream's newest tag is this image."""
    value = {
        "follows": {"image": f"{REGISTRY}/base", "tag": "t2", "tags": "t*"},
        "platforms": {"linux/amd64": made.pin()},
        "locked": NOW,
    }
    raw = json.dumps({"version": 1, "vllm": {pin.name: value}}).encode()
    return codec.read_images(raw)[pin.name]


def means(project: Project, world: Any, upstream: Upstream) -> Means:
    """``upstream`` says what a pin becomes, or why nobody can tell; the rest is real."""

    def move(kind: str, pin: Pin) -> tuple[Move, ...]:
        new = upstream(pin)
        if isinstance(new, BuilderError):
            raise new
        resolved: Any = Resolved(pin=new)
        return (Move(kind=kind, before=pin, resolved=resolved),)

    def attempt(moves: tuple[Move, ...]) -> Bump:
        return tried(project, moves, world=world, platform=AMD64)

    return Means(move=move, attempt=attempt)


def nights(tiny: Tiny, upstream: Upstream) -> list[Outcome]:
    """One night."""
    project, world = tiny.world()
    done = means(project, world, upstream)
    return list(night(project, world=world, platform=AMD64, means=done))


def states(outcomes: list[Outcome]) -> dict[str, str]:
    return {outcome.name: str(outcome.state) for outcome in outcomes}
