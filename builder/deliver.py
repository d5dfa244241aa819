"""Where a build goes: to a registry, into the local engine, into a layout of its own."""

from pathlib import Path
from typing import TYPE_CHECKING

from builder.build_record import Build
from builder.publish import Published, publish
from builder.reference import Reference
from builder.world import World

if TYPE_CHECKING:
    from builder.load import Loaded


def publish_to(made: Build, target: Reference, *, world: World) -> Published:
    """Push a build."""
    return publish(
        made.image,
        made.base,
        target,
        store=world.store,
        registry=world.registry,
        progress=world.progress,
    )


def load_into_engine(made: Build, name: str, *, world: World) -> "Loaded":
    """Load a build into the local engine under ``name``."""
    from builder.load import load  # noqa: PLC0415 - a push does not pay for it

    return load(
        made.image, made.base, name, store=world.store, engine=world.engine, progress=world.progress
    )


def write_layout(made: Build, directory: Path, *, world: World) -> None:
    """Write a build, base layers and all, as an OCI layout of its own."""
    from builder.export import export  # noqa: PLC0415 - as above

    export(
        made.image,
        made.base,
        name=made.variant.name,
        target=world.make_layout(directory),
        store=world.store,
        progress=world.progress,
    )
