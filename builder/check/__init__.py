"""Everything that can be said of a project without building it.

Every file is looked at by itself, so that a broken one hides nothing of the others.
"""

from collections.abc import Callable, Iterable
from datetime import date

from builder.check.composes import composes
from builder.check.files import documents, orphans, readable, strays
from builder.check.finding import Finding, Severity
from builder.check.genesis import needless_waivers, patch_set, plugins, waivers
from builder.check.pins import local_wheels, models, unused
from builder.check.recipe import recipe
from builder.errors import BuilderError
from builder.genesis.facts import Facts
from builder.lock.model import GenesisPin, Lock
from builder.oci import Platform
from builder.project import Project
from builder.steps.request import Materials

__all__ = ["Finding", "Severity", "check"]


def check(
    project: Project,
    names: Iterable[str],
    *,
    platform: Platform,
    materials: Callable[[Lock], Materials],
    facts: Callable[[GenesisPin, Materials], Facts],
    today: date,
) -> tuple[Finding, ...]:
    """Look at the whole project, and at these variants closely; at all of them for no names.
    Errors come first.

    Args:
        materials: Gives, over the pins that can be read, their bytes as far as they are at hand.
            Those that are not raise OfflineError, and nothing is said of them.
        facts: What a patch set says of itself, in the same way.
        today: In UTC.

    Raises:
        ProjectError: There is no variant of one of these names.
    """
    wanted = tuple(names)
    findings = [*documents(project), *strays(project)]
    lock = readable(project)
    at_hand = materials(lock)
    variants = []
    for name in wanted or project.recipes:
        try:
            variants.append(project.variant(name))
        except BuilderError:
            if name not in project.recipes:
                raise
            continue  # said by documents
        findings += recipe(project, variants[-1], lock, platform=platform, materials=at_hand)
        findings += patch_set(
            project, variants[-1], lock, facts=lambda pin: facts(pin, at_hand), today=today
        )
    findings += local_wheels(lock, at_hand)
    findings += models(lock)
    findings += plugins(lock)
    findings += waivers(lock, today)
    findings += composes(project, wanted, platform=platform)
    if not wanted:
        findings += needless_waivers(lock)
        findings += orphans(project)
        if len(variants) == len(project.recipes):  # one that cannot be read may use anything
            findings += unused(project, lock, variants)
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda item: item.severity is not Severity.ERROR))
