"""The flow on one page: from a project to an image in the store. Every function takes the value
that the one before returned. Where an image goes from there: :mod:`builder.deliver`."""

import logging
from functools import cache
from typing import TYPE_CHECKING

from builder import base as bases
from builder import canonical, notes
from builder.base import Base
from builder.build_record import Build, describe
from builder.digest import Digest
from builder.errors import ProjectError
from builder.image import assemble
from builder.materials import PinnedMaterials
from builder.oci import Platform
from builder.origin import OpenCopy, opener
from builder.pinned_base import obtain_pinned
from builder.plan import Plan, pinned, plan
from builder.ports import Store
from builder.project import Project
from builder.realise import layers_of, realise
from builder.results import compare, hold_to
from builder.steps.request import Materials
from builder.variant import GenesisStep, LayoutBase, PinnedBase, ScratchBase, Variant
from builder.world import World

if TYPE_CHECKING:
    from builder.policy import Ruling

_log = logging.getLogger(__name__)


def build(
    project: Project,
    name: str,
    *,
    world: World,
    platform: Platform,
    strict: bool = False,
    check: bool = False,
    locked: bool = False,
    held: bool = True,
    named: bool = True,
) -> Build:
    """Take variant ``name`` to an image in the store, referenced under its name.

    Args:
        strict: Forbid hunks to move.
        check: Run every step again and compare.
        locked: Refuse another result than the accepted one.
        held: Refuse another outcome of a patch set than the accepted one.
        named: Point the variant's name in the store at the image.

    Raises:
        BuilderError: Of the kind of what is wrong; nothing is referenced that was not before.
    """
    variant = project.variant(name)
    base = obtain(project, variant, world=world, platform=platform)
    chain = chained(project, variant, platform=platform, base=base, strict=strict)
    bytes_of = materials(project, variant, world, base)
    rulings = admitted(project, chain, base, world=world, materials=bytes_of)
    steps = realise(
        chain,
        base,
        store=world.store,
        materials=bytes_of,
        progress=world.progress,
        check=check,
    )
    image = assemble(base, layers_of(steps), settings=variant.image, platform=platform)
    made = Build(plan=chain, base=base, steps=steps, image=image, rulings=rulings)
    keep(made, store=world.store)
    _tell_lost(made, world.store)
    _hold(made, project, locked=locked, held=held)
    if named:
        name_it(made, store=world.store)
    return made


def _tell_lost(made: Build, store: Store) -> None:
    """A flag that is set and does nothing looks like one that works."""
    if not any(item.output.patches and not item.cached for item in made.steps):
        return  # nothing that was not told before
    from builder.patched import lost_by  # noqa: PLC0415 - most variants have no patch set

    for item in lost_by(made, store):
        _log.warning(
            "step %s: %s is switched on by %s, and nothing came of it: %s",
            item.step,
            item.outcome.name,
            item.by,
            item.outcome.reason,
        )


def _hold(made: Build, project: Project, *, locked: bool, held: bool) -> None:
    results = project.results(made.variant.name)
    if locked:  # all of the other one, and more
        compare(made, results)
    elif held:
        hold_to(made, results)


def admitted(
    project: Project,
    chain: Plan,
    base: Base | None,
    *,
    world: World,
    materials: Materials,
    enforced: bool = True,
) -> "tuple[Ruling, ...]":
    """What the project says to the patch sets of a plan; a plan without one costs nothing.

    Args:
        enforced: Whether a patch set that may not be baked is refused, and what is only told goes
            to the log.
    """
    if not any(isinstance(step, GenesisStep) for step in chain.variant.steps):
        return ()
    from builder.admit import admit, judged  # noqa: PLC0415 - most variants have no patch set
    from builder.patch_facts import facts_of  # noqa: PLC0415 - as above

    return tuple(
        (admit if enforced else judged)(
            chain,
            base,
            lock=project.lock_for(chain.variant),
            policy=project.settings.genesis,
            facts=lambda pin: facts_of(pin, materials, store=world.store),
            today=world.today,
            store=world.store,
            progress=world.progress,
        )
    )


def obtain(project: Project, variant: Variant, *, world: World, platform: Platform) -> Base | None:
    """The base of a variant; ``None`` for ``scratch``."""
    match variant.base:
        case ScratchBase():
            return None
        case PinnedBase(pin=name):
            pin = pinned(project.images, name, file="vllm.yaml", at=f"{variant.at}: base")
            return obtain_pinned(
                pin,
                platform,
                store=world.store,
                registry=lambda: world.registry,
                open_copy=copies_of(project, world),
            )
        case LayoutBase(layout=layout, digest=digest):
            return bases.obtain(
                digest,
                platform,
                origin=world.open_layout(project.root / layout),
                store=world.store,
                at=f"{variant.at}: base",
            )


def copies_of(project: Project, world: World) -> OpenCopy:
    """Opens the places of ours that the project's locks name."""
    return opener(project.root, registry=lambda: world.registry, open_layout=world.open_layout)


def chained(
    project: Project, variant: Variant, *, platform: Platform, base: Base | None, strict: bool
) -> Plan:
    """The plan of a variant above a base."""
    return plan(
        variant,
        project.lock_for(variant),
        overlay=project.overlay,
        platform=platform,
        base=None if base is None else base.manifest.digest,
        environment=None if base is None else bases.environment(base.config),
        strict=strict,
    )


def planned(
    project: Project, name: str, *, world: World, platform: Platform, strict: bool = False
) -> Plan:
    """The plan of variant ``name``: of its base only the documents are looked at."""
    variant = project.variant(name)
    base = obtain(project, variant, world=world, platform=platform)
    return chained(project, variant, platform=platform, base=base, strict=strict)


def materials(
    project: Project, variant: Variant, world: World, base: Base | None = None
) -> PinnedMaterials:
    """The pinned bytes that a variant works with. Programs may run in its ``base``."""
    return PinnedMaterials(
        lock=project.lock_for(variant),
        store=world.store,
        git=lambda: world.git,
        wheels=lambda: world.wheels,
        make_sandbox=cache(lambda: world.make_sandbox(base)),
        open_copy=copies_of(project, world),
    )


def reference_name(variant: str, platform: Platform) -> str:
    """The name of an image in the store's index: the variant's, with the platform where it is not
    the usual one."""
    usual = Platform("linux", "amd64")
    return variant if platform == usual else f"{variant}-{str(platform).replace('/', '-')}"


def keep(build: Build, *, store: Store) -> None:
    """Put config, manifest and record into the store: what ``explain`` needs, also of a build that
    is not what was accepted."""
    image = build.image
    store.put(image.config)
    store.put(image.manifest.raw)
    raw = canonical.encode(describe(build))
    if store.note(notes.IMAGE, image.digest.hex) != raw:
        store.take_note(notes.IMAGE, image.digest.hex, raw)


def name_it(build: Build, *, store: Store) -> None:
    """Point the variant's name at its image: the last, visible act."""
    image = build.image
    reference = reference_name(build.variant.name, image.platform)
    if store.references().get(reference) != image.manifest.descriptor:
        store.set_reference(reference, image.manifest.descriptor)


def kept(project: Project, name: str, *, store: Store, platform: Platform) -> Digest:
    """The digest under which the last build of a variant stands in the store.

    Raises:
        ProjectError: It was not built on this machine.
    """
    project.variant(name)
    descriptor = store.references().get(reference_name(name, platform))
    if descriptor is None:
        raise ProjectError(
            f"variant {name!r} was not built for {platform} yet", hint=f"builder build {name}"
        )
    return descriptor.digest
