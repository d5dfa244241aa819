"""``builder plan``."""

from collections.abc import Sequence
from typing import Any

import click

from builder.cli import show
from builder.cli.site import VARIANT, Site, project_command
from builder.pipeline import planned
from builder.plan import Plan
from builder.traces import recall

STRICT = click.option("--strict", is_flag=True, help="Forbid hunks to move.")


@project_command("plan", VARIANT, STRICT)
def command(site: Site, variant: str, strict: bool) -> None:
    """Show the steps of a variant and what is cached."""
    with site.at_work(variant) as world:
        chain = planned(site.project, variant, world=world, platform=site.platform, strict=strict)
        cached = [recall(step.derivation, world.store) is not None for step in chain.steps]
    show.result(site.settings, _document(chain, cached), _text(chain, cached))


def _document(chain: Plan, cached: Sequence[bool]) -> dict[str, Any]:
    return {
        "variant": chain.variant.name,
        "platform": str(chain.platform),
        "base": None if chain.base is None else str(chain.base),
        "steps": [
            {
                "name": step.name,
                "kind": step.kind,
                "pins": list(step.request.pins),
                "derivation": str(step.derivation.id),
                "inputs": step.inputs,
                "cached": known,
            }
            for step, known in zip(chain.steps, cached, strict=True)
        ],
    }


def _text(chain: Plan, cached: Sequence[bool]) -> str:
    rows = [
        (
            step.name,
            step.kind,
            step.derivation.id.short,
            "cached" if known else "to build",
            ", ".join(step.request.pins),
        )
        for step, known in zip(chain.steps, cached, strict=True)
    ]
    head = f"{chain.variant.name} ({chain.platform}) on {chain.base or 'scratch'}"
    return f"{head}\n{show.table(('STEP', 'KIND', 'DERIVATION', '', 'INPUTS'), rows)}"
