"""``builder.yaml``: what a project says about places and machines, and what it lets pass. It never
changes what is built.

Everything in it is optional, and so is the file.
"""

from enum import StrEnum

from builder.errors import ProjectError, UsageError
from builder.node import (
    Cursor,
    boolean,
    each,
    mapping_of,
    platform,
    reference,
    sequence_of,
    text,
    unique,
    version_1,
    word,
)
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
class ProjectSettings:
    """All of ``builder.yaml``."""

    platform: Platform | None = None
    git_mirrors: tuple[GitMirror, ...] = ()
    registries: tuple[RegistrySettings, ...] = ()
    store: str | None = None
    """Where the store is; a relative path is one in the project."""
    genesis: GenesisPolicy = GenesisPolicy()
    sandbox: SandboxSettings = SandboxSettings()
    at: str = field(default="", compare=False)


def read_settings(data: bytes, *, file: str = FILE) -> ProjectSettings:
    """The settings in ``data``.

    Raises:
        ProjectError: The file is not what it must be.
    """
    root = Cursor.open(data, file=file)
    root.take("version", version_1)
    settings = ProjectSettings(
        platform=root.optional("platform", platform),
        git_mirrors=root.default("mirrors", _mirrors, ()),
        registries=root.default("registries", each(_host, _registry), ()),
        store=root.optional("store", text),
        genesis=root.default("policy", _policy, GenesisPolicy()),
        sandbox=root.default("sandbox", _sandbox, SandboxSettings()),
        at=root.at,
    )
    root.done()
    return settings


def _sandbox(node: Cursor) -> SandboxSettings:
    sandbox = SandboxSettings(
        use=node.optional("use", word(*SANDBOXES)), image=node.optional("image", _by_digest)
    )
    node.done()
    return sandbox


def _by_digest(node: Cursor) -> Reference:
    image = reference(node)
    if image.digest is None:
        raise node.error(
            f"{str(image)!r} is not named by digest", hint="write it as NAME@sha256:..."
        )
    return image


def _mirrors(node: Cursor) -> tuple[GitMirror, ...]:
    pairs = node.optional("git", mapping_of(text, text))
    node.done()
    return tuple(GitMirror(prefix=prefix, target=target) for prefix, target in pairs or ())


def _policy(node: Cursor) -> GenesisPolicy:
    policy = node.default("genesis", _genesis_policy, GenesisPolicy())
    node.done()
    return policy


def _genesis_policy(node: Cursor) -> GenesisPolicy:
    usual = GenesisPolicy()

    def level(rule: str, *levels: Level) -> Level:
        read = word(*map(str, levels or Level))
        return node.default(rule, lambda child: Level(read(child)), usual.level(rule))

    policy = GenesisPolicy(
        allowlist=level("allowlist", Level.ERROR, Level.WARNING),
        pending=level("pending"),
        no_list=level("no-list"),
        unknown_flag=level("unknown-flag"),
        odd_value=level("odd-value"),
        no_effect=level("no-effect"),
        conflict=level("conflict"),
        unmet_requirement=level("unmet-requirement"),
        retired=level("retired"),
        superseded=level("superseded"),
        version_range=level("version-range"),
    )
    node.done()
    return policy


def _registry(host: str, node: Cursor) -> RegistrySettings:
    registry = RegistrySettings(
        host=host,
        location=node.optional("location", _location),
        mirrors=node.default("mirrors", unique(sequence_of(_location)), ()),
        plain_http=node.optional("plain_http", boolean) or False,
        ca=node.optional("ca", text),
        tags=node.optional("tags", boolean) or False,
    )
    node.done()
    return registry


def _host(node: Cursor) -> str:
    """A registry as references spell it after parsing (``docker.io``, never an alias of it)."""
    value = text(node)
    registry = _parsed(node, value).registry
    if "/" in value or registry != value:
        raise node.error(f"{value!r} is not the host of a registry", hint="for example docker.io")
    return value


def _location(node: Cursor) -> str:
    value = text(node)
    if _parsed(node, value).name != f"{value}/image":
        raise node.error(
            f"{value!r} is not a place in a registry", hint="host[:port][/prefix], without scheme"
        )
    return value


def _parsed(node: Cursor, value: str) -> Reference:
    try:
        return Reference.parse(f"{value}/image", at=node.at)
    except UsageError as error:
        raise ProjectError(error.message, hint=error.hint) from error
