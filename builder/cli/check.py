"""``builder check``."""

from collections.abc import Sequence
from typing import Any, NoReturn

import click

from builder.adapters.store import FileStore
from builder.check import Finding, Severity, check
from builder.cli import show
from builder.cli.site import Site, project_command, variant_names
from builder.cli.world import DEFAULT_PLATFORM, open_store
from builder.errors import OfflineError, ProjectError
from builder.lock.model import Lock
from builder.materials import PinnedMaterials
from builder.patch_facts import facts_of
from builder.project import Project


@project_command(
    "check",
    click.argument("variants", nargs=-1, metavar="[VARIANT...]", shell_complete=variant_names),
)
@click.pass_context
def command(context: click.Context, site: Site, variants: tuple[str, ...]) -> None:
    """Say everything that can be said without building.

    Nothing is fetched or written. The exit status is that of the worst finding; warnings alone
    are 0.
    """
    try:
        platform, store = site.platform, site.store
    except ProjectError:  # builder.yaml cannot be read, which is one of the findings
        platform, store = site.asked or DEFAULT_PLATFORM, open_store(site.settings)
    findings = check(
        site.project,
        variants,
        platform=platform,
        materials=lambda lock: _at_hand(site.project, lock, store),
        facts=lambda pin, materials: facts_of(pin, materials, store=store, keep=False),
        today=site.today,
    )
    show.result(site.settings, document(findings), text(findings))
    context.exit(max((item.exit_status for item in findings), default=0))


def _at_hand(project: Project, lock: Lock, store: FileStore) -> PinnedMaterials:
    """What the store and the project have."""
    from builder.adapters.wheelhouse import Wheelhouse

    def nowhere() -> NoReturn:
        raise OfflineError("check fetches nothing")

    return PinnedMaterials(
        lock=lock,
        store=store,
        git=nowhere,
        wheels=lambda: Wheelhouse(project.root, cache=store.paths.root / "wheels", offline=True),
        make_sandbox=nowhere,
        open_copy=lambda _: nowhere(),
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
        rows.append((str(item.severity), item.where, item.message))
        if item.hint is not None:
            rows.append(("", "", f"hint: {item.hint}"))
    counts = (
        _count(sum(item.severity is severity for item in findings), str(severity))
        for severity in Severity
    )
    return f"{show.table(('', 'WHERE', 'WHAT'), rows)}\n{', '.join(counts)}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
