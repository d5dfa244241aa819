"""Which API knows a repository: by the host in its URL."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from builder.adapters.registry.configuration import is_loopback
from builder.errors import AuthError, ProjectError
from builder.value import value

GITHUB = "github.com"
_GITHUB_API = "https://api.github.com"

_FORMS = (
    re.compile(r"https://(?:[^/@]+@)?(?P<host>[^/@]+)/(?P<owner>[^/]+)/(?P<name>[^/]+?)"),
    re.compile(r"ssh://(?:[^/@]+@)?(?P<host>[^/@]+)/(?P<owner>[^/]+)/(?P<name>[^/]+?)"),
    re.compile(r"(?:[^/@:]+@)?(?P<host>[^/@:]+):(?P<owner>[^/:]+)/(?P<name>[^/]+?)"),
)
_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,100}")


@value
class ForgeRepository:
    """A repository at a host that has an API."""

    host: str
    owner: str
    name: str
    api: str
    """Without a slash at its end."""


def locate(repository: str, apis: Mapping[str, str]) -> ForgeRepository | None:
    """The repository that a URL means, in one of the forms that git hosts give::

        https://github.com/OWNER/NAME(.git)
        ssh://git@github.com/OWNER/NAME(.git)
        git@github.com:OWNER/NAME(.git)

    ``None`` where no API of its host is known, and for what is no repository of an owner.

    Args:
        repository: The URL.
        apis: By host; over what is known of github.com.

    Raises:
        ProjectError: What ``apis`` has for the host is no address of an API.
    """
    url = re.sub(r"(\.git)?/*$", "", repository)
    found = next((match for form in _FORMS if (match := form.fullmatch(url))), None)
    if found is None or not (_NAME.fullmatch(found["owner"]) and _NAME.fullmatch(found["name"])):
        return None
    host = re.sub(r":(22|443)$", "", found["host"].lower())
    api = {GITHUB: _GITHUB_API, **apis}.get(host)
    if api is None:
        return None
    _check(host, api)
    return ForgeRepository(host=host, owner=found["owner"], name=found["name"], api=api.rstrip("/"))


def token_for(
    place: ForgeRepository, apis: Mapping[str, str], token: str, *, at: str
) -> str | None:
    """The token, where it is for the host: it is for the only one of ``apis``, otherwise for
    github.com. ``None`` for an empty one, and for other hosts.

    Raises:
        AuthError: It holds what no token has.
    """
    owner = next(iter(apis)) if len(apis) == 1 else GITHUB
    if not token or place.host != owner.lower():
        return None
    if not token.isascii() or not token.isprintable() or " " in token:
        raise AuthError(
            f"{at}: GITHUB_TOKEN holds blanks or other characters that no token has",
            hint="set it anew; without one fewer questions are allowed",
        )
    return token


def _check(host: str, api: str) -> None:
    at = f"builder.yaml: forges.{host}.api"
    try:
        parts = urlsplit(api)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, known = urlsplit(""), False
    if not known or parts.query or parts.fragment or api.split() != [api] or not api.isprintable():
        raise ProjectError(
            f"{at}: expected the address of an API, got {api!r}",
            hint="for example https://api.github.com, or https://HOST/api/v3",
        )
    if "@" in parts.netloc:
        raise ProjectError(
            f"{at}: holds credentials", hint="the token is taken from GITHUB_TOKEN alone"
        )
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ProjectError(
            f"{at}: {api!r} is without TLS, which is for this machine only", hint="write https://"
        )
