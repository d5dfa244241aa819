"""``builder check``."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

import click

from builder import base as bases
from builder.adapters.store import FileStore
from builder.base import Base
from builder.check import AtHand, Finding, Severity, Upstream, check, exit_status
from builder.cli import show
from builder.cli.site import Site, project_command, variant_names
from builder.cli.world import DEFAULT_PLATFORM, open_store, open_world
from builder.errors import OfflineError, ProjectError, UsageError
from builder.lock.model import ImagePin, Lock
from builder.materials import PinnedMaterials
from builder.oci import Platform
from builder.patch_facts import facts_of
from builder.pinned_base import obtain_pinned
from builder.pipeline import copies_of, obtain
from builder.ports import Registry
from builder.project import Project
from builder.settings.model import FILE as SETTINGS_FILE
from builder.settings.model import ProjectSettings
from builder.variant import LayoutBase, Variant
from builder.world import World

_HOST_LIMIT = 900.0
"""Seconds that ``--upstream`` has for one host: thousands of tags, each asked for, take minutes."""


@project_command(
    "check",
    click.argument("variants", nargs=-1, metavar="[VARIANT...]", shell_complete=variant_names),
)
@click.option(
    "--upstream",
    is_flag=True,
    help="Ask registries what became of the bases, and the hub what became of models.",
)
@click.pass_context
def command(context: click.Context, site: Site, variants: tuple[str, ...], upstream: bool) -> None:
    """Say everything that can be said without building.

    Nothing is fetched or written, unless upstream is to be asked. The exit status is that of the
    worst finding; warnings alone are 0.
    """
    if upstream and site.settings.offline:
        raise UsageError("--upstream asks the network, and --offline forbids it")
    try:
        ours, platform, store = site.ours, site.platform, site.store
    except ProjectError:  # builder.yaml cannot be read, which is one of the findings
        ours = ProjectSettings(at=SETTINGS_FILE)
        platform, store = site.asked or DEFAULT_PLATFORM, open_store(site.settings)
    at_hand = AtHand(
        store=store,
        materials=lambda lock: _materials(site.project, lock, store),
        facts=lambda pin, materials: facts_of(pin, materials, store=store, keep=False),
        base=lambda variant: _base(
            site.project, variant, open_world(site.settings, ours, store), platform
        ),
    )
    with ExitStack() as closing:
        findings = check(
            site.project,
            variants,
            platform=platform,
            at_hand=at_hand,
            today=site.today,
            asked=_upstream(
                site, closing.enter_context(site.at_work(host_limit=_HOST_LIMIT)), platform
            )
            if upstream
            else None,
        )
    show.result(site.settings, document(findings), text(findings))
    context.exit(exit_status(findings))


def _nowhere() -> NoReturn:
    raise OfflineError("check fetches nothing")


def _materials(project: Project, lock: Lock, store: FileStore) -> PinnedMaterials:
    """What the store and the project have."""
    from builder.adapters.wheelhouse import Wheelhouse

    return PinnedMaterials(
        lock=lock,
        store=store,
        git=_nowhere,
        wheels=lambda: Wheelhouse(project.root, cache=store.paths.root / "wheels", offline=True),
        make_sandbox=_nowhere,
        open_copy=lambda _: _nowhere(),
    )


def _base(project: Project, variant: Variant, world: World, platform: Platform) -> Base | None:
    """Of a layout nothing is copied into the store."""
    if isinstance(variant.base, LayoutBase):
        layout = project.root / variant.base.layout
        origin = world.open_layout(layout)
        kept, at = FileStore(layout), f"{variant.at}: base"
        return bases.obtain(variant.base.digest, platform, origin=origin, store=kept, at=at)
    offline = replace(world, make_registry=_nowhere)
    return obtain(project, variant, world=offline, platform=platform)


def _upstream(site: Site, world: World, platform: Platform) -> Upstream:
    from builder.resolve.newest import creation, ordered_tags

    def order(pin: ImagePin, registry: Registry) -> tuple[str, ...]:
        return ordered_tags(
            pin, platform=platform, registry=registry, store=world.store, history=world.history
        )

    def created(pin: ImagePin, registry: Registry) -> datetime | None:
        base = obtain_pinned(
            pin,
            platform,
            store=world.store,
            registry=lambda: registry,
            open_copy=copies_of(site.project, world),
        )
        return creation(base.config, at=pin.at)

    now = datetime.fromisoformat(world.now)
    return Upstream(
        registry=world.registry,
        make_hub=lambda: world.hub,
        order=order,
        created=created,
        now=now,
    )


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    """Findings for ``--json``."""
    return {
        "findings": [
            {
                "severity": str(item.severity),
                "where": item.where,
                "message": item.message,
                "hint": item.hint,
                "exit_status": item.exit_status,
            }
            for item in findings
        ]
    }


def text(findings: Sequence[Finding]) -> str:
    """Findings as a table, for people."""
    if not findings:
        return "nothing to report"
    rows = []
    for item in findings:
        first, *more = item.message.split("\n")
        rows.append((str(item.severity), item.where, first))
        rows += [("", "", line) for line in more]
        if item.hint is not None:
            rows.append(("", "", f"hint: {item.hint}"))
    counts = (
        _count(sum(item.severity is severity for item in findings), str(severity))
        for severity in Severity
    )
    return f"{show.table(('', 'WHERE', 'WHAT'), rows)}\n{', '.join(counts)}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
