"""``builder.yaml``: bytes to values."""

from builder.errors import ProjectError, UsageError
from builder.node import (
    Cursor,
    boolean,
    each,
    file_path,
    mapping_of,
    name,
    platform,
    positive,
    reference,
    sequence_of,
    text,
    unique,
    version_1,
    word,
)
from builder.reference import Reference
from builder.settings.model import (
    FILE,
    SANDBOXES,
    ComposeService,
    ExpiryPolicy,
    ForgeSettings,
    GenesisPolicy,
    GitMirror,
    Level,
    ProjectSettings,
    RegistrySettings,
    SandboxSettings,
)


def read_settings(data: bytes, *, file: str = FILE) -> ProjectSettings:
    """The settings in ``data``.

    Raises:
        ProjectError: The file is not what it must be.
    """
    root = Cursor.open(data, file=file)
    root.take("version", version_1)
    genesis, expiry = root.default("policy", _policy, (GenesisPolicy(), ExpiryPolicy()))
    settings = ProjectSettings(
        platform=root.optional("platform", platform),
        git_mirrors=root.default("mirrors", _mirrors, ()),
        registries=root.default("registries", each(_host, _registry), ()),
        store=root.optional("store", text),
        genesis=genesis,
        expiry=expiry,
        sandbox=root.default("sandbox", _sandbox, SandboxSettings()),
        forges=root.default("forges", each(_host, _forge), ()),
        publish=root.optional("publish", _repository),
        escrow=root.optional("escrow", text),
        composes=root.default("composes", _composes, ()),
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


def _policy(node: Cursor) -> tuple[GenesisPolicy, ExpiryPolicy]:
    genesis = node.default("genesis", _genesis_policy, GenesisPolicy())
    expiry = node.default("expiry", _expiry, ExpiryPolicy())
    node.done()
    return genesis, expiry


def _expiry(node: Cursor) -> ExpiryPolicy:
    usual = ExpiryPolicy()
    expiry = ExpiryPolicy(
        newest=node.default("newest", positive, usual.newest),
        days=node.optional("days", positive),
    )
    node.done()
    return expiry


def _forge(host: str, node: Cursor) -> ForgeSettings:
    forge = ForgeSettings(host=host, api=node.take("api", text))
    node.done()
    return forge


def _repository(node: Cursor) -> Reference:
    value = reference(node)
    if value.tag is not None or value.digest is not None:
        raise node.error(
            f"expected a repository, got {str(value)!r}", hint="the tag is the variant's name"
        )
    return value


def _composes(node: Cursor) -> tuple[ComposeService, ...]:
    """By file and service, whose names are the project's and Compose's own."""
    files = mapping_of(file_path, mapping_of(text, name))(node)
    return tuple(
        ComposeService(file=file, service=service, runs=runs)
        for file, services in files
        for service, runs in services
    )


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
