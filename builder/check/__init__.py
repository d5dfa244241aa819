"""Everything that can be said of a project without building it.

Every file is looked at by itself, so that a broken one hides nothing of the others.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from builder.check.at_hand import AtHand
from builder.check.composes import composes
from builder.check.escrow import unescrowed
from builder.check.files import documents, orphans, readable, strays
from builder.check.finding import Finding, Severity, exit_status
from builder.check.genesis import needless_waivers, patch_set, plugins, waivers
from builder.check.hub import hub_models
from builder.check.pins import known_failures, local_wheels, models, unused
from builder.check.recipe import recipe
from builder.check.stale import planned
from builder.check.upstream import Upstream, upstream
from builder.errors import BuilderError, ProjectError
from builder.lock.model import ImagePin, Lock, ModelPin
from builder.oci import Platform
from builder.project import Project
from builder.settings.model import ProjectSettings
from builder.trust.names import FILE as TRUST_FILE
from builder.uses import uses
from builder.variant import Variant

__all__ = ["AtHand", "Finding", "Severity", "Upstream", "check", "exit_status"]


def check(
    project: Project,
    names: Iterable[str],
    *,
    platform: Platform,
    at_hand: AtHand,
    today: date,
    asked: Upstream | None = None,
) -> tuple[Finding, ...]:
    """Look at the whole project, and at these variants closely; at all of them for no names.
    Errors come first.

    Args:
        at_hand: What needs no network.
        today: In UTC.
        asked: Upstream, where it is to be asked.

    Raises:
        ProjectError: There is no variant of one of these names.
    """
    wanted, variants = tuple(names), list[Variant]()
    findings = [*documents(project), *strays(project)]
    lock, settings = readable(project), _settings(project)
    for name in wanted or project.recipes:
        try:
            variants.append(project.variant(name))
        except BuilderError:
            if name not in project.recipes:
                raise
            continue  # said by documents
        findings += _closely(
            project, variants[-1], lock, platform=platform, at_hand=at_hand, today=today
        )
    findings += local_wheels(lock, at_hand.materials(lock))
    findings += models(lock)
    findings += known_failures(lock)
    findings += plugins(lock)
    findings += waivers(lock, today)
    findings += _trust(project, lock, today)
    findings += unescrowed(lock, variants, settings.git_mirrors)
    if asked is not None:
        findings += upstream(_bases(lock, variants), asked, settings.expiry)
        findings += hub_models(_models(lock, variants if wanted else None), asked.make_hub)
    findings += composes(project, wanted, platform=platform)
    if not wanted:
        findings += needless_waivers(lock)
        findings += orphans(project)
        if len(variants) == len(project.recipes):  # one that cannot be read may use anything
            findings += unused(project, lock, variants)
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda item: item.severity is not Severity.ERROR))


def _closely(
    project: Project,
    variant: Variant,
    lock: Lock,
    *,
    platform: Platform,
    at_hand: AtHand,
    today: date,
) -> Iterator[Finding]:
    """One variant that can be read."""
    materials = at_hand.materials(lock)
    yield from recipe(project, variant, lock, platform=platform, materials=materials)
    yield from planned(project, variant, platform=platform, at_hand=at_hand)
    yield from patch_set(
        project, variant, lock, facts=lambda pin: at_hand.facts(pin, materials), today=today
    )


def _trust(project: Project, lock: Lock, today: date) -> Iterator[Finding]:
    if TRUST_FILE in project.documents():
        from builder.check import trust  # noqa: PLC0415 - few projects have a policy

        yield from trust.policy(project, today=today)
        yield from trust.unvouched(project, lock.waivers, today=today)


def _bases(lock: Lock, variants: Sequence[Variant]) -> Iterator[ImagePin]:
    """The bases in registries that the variants build on, each once."""
    used = {name for item in variants for kind, name in uses(item, {}) if kind is ImagePin}
    return (pin for name, pin in lock.images.items() if name in used)


def _models(lock: Lock, variants: Sequence[Variant] | None) -> Iterator[ModelPin]:
    """The models that the variants serve, each once; all that are pinned for ``None``."""
    used = {name for item in variants or () for name in item.models}
    return (pin for name, pin in lock.models.items() if variants is None or name in used)


def _settings(project: Project) -> ProjectSettings:
    try:
        return project.settings
    except ProjectError:  # said of the file itself
        return ProjectSettings()
