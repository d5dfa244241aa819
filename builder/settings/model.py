"""The values of ``builder.yaml``, with the defaults of a project that has none."""

from enum import StrEnum

from builder.oci import Platform
from builder.reference import Reference
from builder.value import field, value

SANDBOXES = ("linux-namespaces", "docker-engine")

FILE = "builder.yaml"
"""The name of the file, in the root of a project."""


@value
class GitMirror:
    """Repositories that start with ``prefix`` are fetched from ``target`` plus the rest."""

    prefix: str
    target: str


@value
class RegistrySettings:
    """How one registry, as references name it, is reached."""

    host: str
    location: str | None = None
    """``host[:port][/prefix]`` in place of ``host``."""
    mirrors: tuple[str, ...] = ()
    """``host[:port][/prefix]``, asked first and in this order, for what is named by digest."""
    plain_http: bool = False
    ca: str | None = None
    """A file of certificates to trust; a relative path is one in the project."""
    tags: bool = False
    """Whether mirrors may also say what a tag names: they may be behind."""


class Level(StrEnum):
    """What becomes of a complaint: it stops a build, is told, or is not made."""

    ERROR = "error"
    WARNING = "warning"
    OFF = "off"


@value
class GenesisPolicy:
    """``policy.genesis``: the level of each rule about a patch set. A field is the rule of that
    word, with dashes.

    That the patch set lists the base (``allowlist``) can be a warning, and never off: exceptions
    are made one by one, with an end (``lockfiles/waivers.yaml``).
    """

    allowlist: Level = Level.ERROR
    pending: Level = Level.ERROR
    """The base is listed, but only among those that are to be promoted."""
    no_list: Level = Level.WARNING
    """The patch set is of an era that lists nothing."""
    unknown_flag: Level = Level.ERROR
    odd_value: Level = Level.ERROR
    no_effect: Level = Level.WARNING
    conflict: Level = Level.ERROR
    unmet_requirement: Level = Level.ERROR
    retired: Level = Level.WARNING
    superseded: Level = Level.WARNING
    version_range: Level = Level.WARNING

    def level(self, rule: str) -> Level:
        """The level of the rule of this word: ``unknown-flag``."""
        level: Level = getattr(self, rule.replace("-", "_"))
        return level


@value
class SandboxSettings:
    """``sandbox``: where programs of steps run. It does not change what is built."""

    use: str | None = None
    """``linux-namespaces`` or ``docker-engine``; ``None``: the first of them that works."""
    image: Reference | None = None
    """For ``docker-engine``, by digest, with Python in it; ``None``: the base of the variant."""


@value
class ExpiryPolicy:
    """``policy.expiry``: when ``check`` warns that upstream is about to drop what a pin follows and
    nobody keeps a copy of."""

    newest: int = 14
    """Upstream keeps so many tags of the pattern: warned from half of them on."""
    days: int | None = None
    """Upstream keeps a tag for so many days; ``None`` for no such rule."""


@value
class ForgeSettings:
    """Where the API of a git host is: ``https://api.github.com`` for ``github.com``."""

    host: str
    api: str


@value
class ComposeService:
    """What a service of a compose file runs: a variant or a pinned base, by name."""

    file: str
    service: str
    runs: str


@value
class ProjectSettings:
    """All of ``builder.yaml``."""

    platform: Platform | None = None
    git_mirrors: tuple[GitMirror, ...] = ()
    registries: tuple[RegistrySettings, ...] = ()
    store: str | None = None
    """Where the store is; a relative path is one in the project."""
    genesis: GenesisPolicy = GenesisPolicy()
    expiry: ExpiryPolicy = ExpiryPolicy()
    sandbox: SandboxSettings = SandboxSettings()
    forges: tuple[ForgeSettings, ...] = ()
    publish: Reference | None = None
    """The repository that variants are published to, each under the tag of its name."""
    escrow: str | None = None
    """Where ``escrow`` keeps copies: ``REGISTRY/REPOSITORY`` or ``oci:DIR``."""
    composes: tuple[ComposeService, ...] = ()
    at: str = field(default="", compare=False)
