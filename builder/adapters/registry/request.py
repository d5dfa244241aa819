"""One request to a registry, as a value, and what may be said about addresses."""

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urljoin, urlsplit

from builder.adapters.registry.configuration import Endpoint
from builder.errors import NetworkError
from builder.value import field, value


@value
class Request:
    """What is sent, which answers are answers, and whom it is about.

    ``endpoint`` is ``None`` for what takes no authorisation from us (token services: theirs stands
    in ``headers``). Authorisation goes to the endpoint's own origin and nowhere else.
    """

    what: str
    """What it is about, as users write it: the start of every message."""
    method: str
    url: str
    endpoint: Endpoint | None
    repository: str = ""
    """As the endpoint knows it, prefix and all."""
    push: bool = False
    source: str | None = None
    """The repository that a blob is mounted from, which is read."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    body: bytes | None = field(default=None, repr=False)
    expected: frozenset[int] = frozenset({200})
    attempts: int | None = None
    """``None`` for as many as the configuration says."""
    resend: bool = True
    """Whether it may be sent again after a failure that may have happened behind its effect."""

    @property
    def scope(self) -> str:
        """The rights it needs (Token Scope Documentation, "Resource Scope Grammar")."""
        actions = "pull,push" if self.push else "pull"
        scope = f"repository:{self.repository}:{actions}"
        return f"{scope} repository:{self.source}:pull" if self.source else scope


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port (RFC 6454)."""
    parts = urlsplit(url)
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname or "", parts.port or default


def shown(url: str) -> str:
    """An address for people: no query, which may be a signature, and no user information."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def follow(url: str, location: str | None, *, what: str) -> str:
    """Where a ``Location`` header leads from ``url`` (RFC 9110, 10.2.2: a URI reference).

    Raises:
        NetworkError: None was given, it is not HTTP, it carries credentials, or it gives up TLS.
    """
    at = f"{what}: {shown(url)}"
    if not location:
        raise NetworkError(f"{at} answered without the Location header that is due")
    try:
        target = urljoin(url, location)
        scheme, host, _ = origin(target)
        user = urlsplit(target).username
    except ValueError:
        target = scheme = host = user = ""
    if scheme not in ("http", "https") or not host or user is not None:
        raise NetworkError(f"{at} answered with a Location that cannot be followed")
    if scheme == "http" and urlsplit(url).scheme == "https":
        raise NetworkError(
            f"{at} leads from https to {shown(target)}, refused",
            hint="a registry behind a proxy that ends TLS needs X-Forwarded-Proto from it",
        )
    return target
