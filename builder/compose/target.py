"""What the name of a variant or of a pinned base stands for: a repository, a tag and a digest."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from builder.compose.interpolation import stated
from builder.compose.service import Service
from builder.digest import Digest
from builder.errors import ProjectError, UsageError
from builder.node import did_you_mean, nearest
from builder.oci import Platform
from builder.project import Project
from builder.reference import Reference
from builder.variant import PinnedBase


class Source(StrEnum):
    """Where a digest is from."""

    LOCKED = "locked"
    """A pinned base's, from lockfiles/vllm.yaml."""
    ACCEPTED = "accepted"
    """A variant's, from lockfiles/images/."""
    BUILT = "built"
    """A variant's last build on this machine, which nobody has accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a service that names ``name`` shall run. ``place`` is repository and tag; ``None`` for a
    variant of a project that does not say where it publishes. ``digest`` and ``source`` are
    ``None`` for a variant that has no result. ``foreign`` is a repository that cannot have it: that
    of a variant's base."""

    name: str
    kind: str
    """``variant`` or ``base``."""
    place: Reference | None
    digest: Digest | None
    source: Source | None
    foreign: Reference | None = None

    @property
    def shown(self) -> str:
        """The name with its kind."""
        return f"{self.kind} {self.name}"

    def image(self, standing: str) -> str:
        """What an image that stands as ``standing`` (``${...}`` and all) shall be. A repository
        that is the right one stays as it is spelt.

        Raises:
            ProjectError: Nobody made it yet, or nothing says in which repository it is.
        """
        if self.digest is None:
            raise ProjectError(
                f"{self.shown} has no accepted result, and was not built on this machine",
                hint=f"builder build {self.name}, then builder accept {self.name}",
            )
        return f"{self.tagged(standing)}@{self.digest}"

    def tagged(self, standing: str) -> str:
        """Repository and tag of :meth:`image`.

        Raises:
            ProjectError: Nothing says them.
        """
        said = stated(standing)
        spelt = None if said is None else _parsed(said)
        if self.place is None:
            return self._standing(standing, said, spelt)
        name = self.place.name
        if said is not None and spelt is not None and spelt.name == name:
            name = _without_tag(said, spelt)
        return f"{name}:{self.place.tag}" if self.place.tag else name

    def _standing(self, standing: str, said: str | None, spelt: Reference | None) -> str:
        hint = "say where variants are published, as 'publish: REGISTRY/REPOSITORY' in builder.yaml"
        if said is None or spelt is None:
            raise ProjectError(
                f"{self.shown}: {standing!r} does not state repository and tag without variables,"
                " and builder.yaml says nothing of publishing",
                hint=f"{hint}, or write REPOSITORY:TAG for the image",
            )
        if self.foreign is not None and self.foreign.name == spelt.name:
            raise ProjectError(
                f"{self.shown}: {said!r} is in the repository of its base, where it is not",
                hint=f"{hint}, or write its own REPOSITORY:TAG for the image",
            )
        return said.partition("@")[0]


def _parsed(text: str) -> Reference | None:
    try:
        return Reference.parse(text)
    except UsageError:
        return None


def _without_tag(text: str, reference: Reference) -> str:
    text = text.partition("@")[0]
    return text.removesuffix(f":{reference.tag}") if reference.tag else text


def target(
    project: Project,
    name: str,
    *,
    platform: Platform,
    built: Callable[[str], Digest | None] = lambda _: None,
) -> Target:
    """Look a name up. A variant goes before a pinned base of the same name.

    Args:
        built: The last build of a variant on this machine, for one that has no accepted result.

    Raises:
        ProjectError: There is neither, or a file of the project is not what it must be.
    """
    if name in project.recipes:
        return _variant(project, name, platform, built)
    if name in project.images:
        pin = project.images[name]
        known = pin.platform(platform)
        digest = pin.index or (None if known is None else known.manifest)
        if digest is None:
            raise ProjectError(
                f"{pin.at}: locked without a manifest for {platform}",
                hint="name another with --platform, or lock it",
            )
        return Target(
            name=name, kind="base", place=pin.follows, digest=digest, source=Source.LOCKED
        )
    near = nearest(name, (*project.recipes, *project.images))
    raise ProjectError(
        f"no variant and no pinned base {name!r}",
        hint=did_you_mean(near)
        or "builder variants lists the variants; lockfiles/vllm.yaml has the bases",
    )


def _variant(
    project: Project, name: str, platform: Platform, built: Callable[[str], Digest | None]
) -> Target:
    variant = project.variant(name)
    results = {result.platform: result.digest for result in project.results(name)}
    digest, source = results.get(platform), Source.ACCEPTED
    if digest is None:
        digest, source = built(name), Source.BUILT
    publish = project.settings.publish
    base = project.images.get(variant.base.pin) if isinstance(variant.base, PinnedBase) else None
    return Target(
        name=name,
        kind="variant",
        place=None if publish is None else Reference.parse(f"{publish}:{name}"),
        digest=digest,
        source=None if digest is None else source,
        foreign=None if base is None else base.follows,
    )


def targets(
    project: Project,
    platform: Platform,
    built: Callable[[str, Platform], Digest | None] = lambda _, __: None,
) -> Callable[[Service], Target]:
    """What looks up the name that a service gives, for the platform that it states, or else for
    ``platform``. ``built`` is as for :func:`target`, on a platform."""

    def look_up(service: Service) -> Target:
        stated = service.platform
        on = platform if stated is None or "$" in stated else Platform.parse(stated)
        return target(
            project, service.runs or "", platform=on, built=lambda variant: built(variant, on)
        )

    return look_up
