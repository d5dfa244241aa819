"""Where registries are and how they are spoken to, as a frozen value that the caller gives.

Mirrors only accelerate. What is asked for by digest is asked of the mirrors first, in order, then
of the origin; wrong bytes from a mirror stop everything, as from anywhere. A *tag* is resolved at
the origin alone, because a mirror may be days behind, unless ``mirror_tags`` says otherwise.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from builder.errors import ProjectError
from builder.reference import DOCKER_HUB, without_user
from builder.value import field, value

DOCKER_HUB_API = "registry-1.docker.io"
"""Where docker.io answers the distribution API. Its token service is named by its challenge."""


@value
class HostConfiguration:
    """How one registry is reached. The defaults are those of a registry nobody configured.

    A location is ``host[:port][/prefix]``; the prefix goes before the repository, as pull-through
    caches want it. Settings of a mirror (``plain_http``, ``ca_file``, ...) are those of the entry
    under the mirror's own ``host[:port]``.

    Raises:
        ProjectError: A location that is not one, a time-out that is not positive.
    """

    mirrors: tuple[str, ...] = ()
    mirror_tags: bool = False
    location: str | None = None
    """Where the registry really is; ``None`` for its own name."""
    plain_http: bool | None = None
    """``None``: plain HTTP for loopback, as Docker does, TLS for all others."""
    ca_file: Path | None = None
    """PEM certificates to trust instead of the system's."""
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    """Seconds without a byte. A head, and an answer that is no blob, may take twice that in all."""

    def __post_init__(self) -> None:
        for mirror in self.mirrors:
            _check_location(mirror, at="mirrors")
        if self.location is not None:
            _check_location(self.location, at="location")
        for name, seconds in (("connect", self.connect_timeout), ("read", self.read_timeout)):
            if not seconds > 0:
                raise ProjectError(f"{name}_timeout: expected seconds above 0, got {seconds!r}")

    @property
    def answer_timeout(self) -> float:
        """Seconds for the head of an answer, and for one that is read whole."""
        return 2 * self.read_timeout


@value
class Endpoint:
    """One server that can be asked for the content of a registry."""

    registry: str
    """The name in references: what messages and ``docker login`` call it."""
    host: str
    """``host[:port]`` of the server; credentials are looked up under this, never under another."""
    prefix: str
    scheme: str
    mirror: bool

    def repository(self, name: str) -> str:
        """The name of a repository at this server."""
        return f"{self.prefix}/{name}" if self.prefix else name

    def url(self, repository: str, rest: str) -> str:
        """The address of something below a repository."""
        return f"{self.scheme}://{self.host}/v2/{self.repository(repository)}/{rest}"


@value
class RegistryConfiguration:
    """Everything the client takes from outside.

    Args:
        hosts: By registry name as in references (``docker.io``, ``127.0.0.1:5000``).
        docker_config: Docker's ``config.json``; ``None`` or a missing file means no credentials.
        offline: Refuse before the first request.
        attempts: How often a request is sent before its failure stands, the first one included.
        wait_limit: Seconds that one request may spend waiting between its attempts.
        host_limit: Seconds that one host may take for all of its answers; ``None`` for any.
    """

    hosts: Mapping[str, HostConfiguration] = field(default_factory=lambda: MappingProxyType({}))
    docker_config: Path | None = None
    offline: bool = False
    attempts: int = 4
    wait_limit: float = 60.0
    host_limit: float | None = None

    def origin(self, registry: str) -> Endpoint:
        """The registry itself: the only one that is written to."""
        own = DOCKER_HUB_API if registry == DOCKER_HUB else registry
        return self._endpoint(registry, self._host(registry).location or own, mirror=False)

    def readers(self, registry: str, *, by_digest: bool) -> tuple[Endpoint, ...]:
        """Who is asked for content, in order; the origin is last."""
        host = self._host(registry)
        mirrors = host.mirrors if by_digest or host.mirror_tags else ()
        asked = (self._endpoint(registry, mirror, mirror=True) for mirror in mirrors)
        return (*asked, self.origin(registry))

    def server(self, netloc: str) -> HostConfiguration:
        """The settings for a server that is about to be contacted: its own entry, else that of
        the registry which it is the location of, else the defaults."""
        if netloc in self.hosts:
            return self.hosts[netloc]
        for registry, host in self.hosts.items():
            own = DOCKER_HUB_API if registry == DOCKER_HUB else registry
            if (host.location or own).partition("/")[0] == netloc:
                return host
        return HostConfiguration()

    def _host(self, registry: str) -> HostConfiguration:
        return self.hosts.get(registry) or HostConfiguration()

    def _endpoint(self, registry: str, location: str, *, mirror: bool) -> Endpoint:
        host, _, prefix = location.partition("/")
        plain = self.server(host).plain_http
        if plain is None:
            plain = is_loopback(urlsplit(f"//{host}").hostname)
        return Endpoint(
            registry=registry,
            host=host,
            prefix=prefix.strip("/"),
            scheme="http" if plain else "https",
            mirror=mirror,
        )


def is_loopback(hostname: str | None) -> bool:
    """Whether a host name means this machine: ``localhost``, 127.0.0.0/8 or ``::1``."""
    if hostname == "localhost":
        return True
    try:
        return ip_address(hostname or "").is_loopback
    except ValueError:
        return False


def _check_location(text: str, *, at: str) -> None:
    try:
        parts = urlsplit(f"//{text}")
        known = parts.hostname and (parts.port is None or parts.port > 0) and "@" not in text
    except ValueError:
        parts, known = urlsplit(""), False
    if not known or parts.query or parts.fragment or "//" in text or text.split() != [text]:
        raise ProjectError(
            f"{at}: expected host[:port][/prefix], got {without_user(text)!r}",
            hint="write it without 'https://'; plain_http is a setting of its own",
        )
