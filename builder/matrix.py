"""The variants as jobs of a CI that bakes each in one of its own."""

from collections.abc import Iterable, Iterator
from typing import Any

from builder.digest import Digest
from builder.errors import BuilderError
from builder.oci import Platform
from builder.pipeline import obtain, reference_name
from builder.project import Project
from builder.value import value
from builder.variant import GenesisStep, LayoutBase, PinnedBase, ScriptStep, Variant
from builder.world import World

LIMIT = 256
"""GitHub Actions, "Usage limits": jobs that one matrix makes."""


@value
class Job:
    """One variant on one platform. ``base`` is the pin that it stands on, ``tag`` and ``reference``
    where it is to be published (``reference`` where the project says), ``sandbox`` whether it runs
    programs."""

    variant: str
    platform: Platform
    base: str
    accepted: Digest | None
    sandbox: bool
    tag: str
    reference: str | None


def jobs(project: Project, *, asked: Platform | None, usual: Platform) -> Iterator[Job]:
    """The jobs of a project, by variant: for the platform that was asked for; without one, for the
    usual one and each that something was accepted for.

    Raises:
        ProjectError: A recipe or lock cannot be read.
    """
    for name in project.variants():
        variant = project.variant(name)
        accepted = {item.platform: item.digest for item in project.results(name)}
        platforms = {asked} if asked is not None else {usual, *accepted}
        for platform in sorted(platforms, key=lambda item: (item != usual, str(item))):
            yield _job(project, variant, platform, accepted.get(platform))


def _job(project: Project, variant: Variant, platform: Platform, accepted: Digest | None) -> Job:
    tag = reference_name(variant.name, platform)
    publish = project.settings.publish
    return Job(
        variant=variant.name,
        platform=platform,
        base=_base(variant),
        accepted=accepted,
        sandbox=any(isinstance(step, GenesisStep | ScriptStep) for step in variant.steps),
        tag=tag,
        reference=None if publish is None else f"{publish}:{tag}",
    )


def _base(variant: Variant) -> str:
    match variant.base:
        case PinnedBase(pin=pin):
            return pin
        case LayoutBase(layout=layout):
            return f"oci:{layout}"
        case _:
            return "scratch"


def refused(project: Project, job: Job, *, world: World) -> BuilderError | None:
    """Why the base of a job cannot be had now; ``None`` where it can. Of a base only its documents
    are asked for."""
    try:
        obtain(project, project.variant(job.variant), world=world, platform=job.platform)
    except BuilderError as error:
        return error
    return None


def document(found: Iterable[Job]) -> dict[str, Any]:
    """A matrix as GitHub Actions takes it, from ``fromJSON``."""
    return {
        "include": [
            {
                "variant": job.variant,
                "platform": str(job.platform),
                "base": job.base,
                "accepted": None if job.accepted is None else str(job.accepted),
                "sandbox": job.sandbox,
                "tag": job.tag,
                "reference": job.reference,
            }
            for job in found
        ]
    }
