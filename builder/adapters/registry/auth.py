"""The answer to a 401: bearer tokens and Basic, from the challenge that the registry gives.

Nothing about a registry is built in: realm, service and scope come from ``WWW-Authenticate``. A
token is fetched once for a (realm, service, scope) and used until it expires or is refused.
Credentials that are refused are an error, also where the repository is public: going on without
them would hide it.

Sources: RFC 9110, 11 (challenges); Docker Registry "Token Authentication Specification" and
"OAuth2 Token Authentication".
"""

import logging
import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlencode, urlsplit

from builder import __version__, canonical
from builder.adapters.registry.configuration import DOCKER_HUB_API, Endpoint, is_loopback
from builder.adapters.registry.credentials import Credentials, DockerConfig
from builder.adapters.registry.request import Request, origin, shown
from builder.errors import AuthError, IntegrityError
from builder.reference import DOCKER_HUB
from builder.value import field, value

_log = logging.getLogger(__name__)

CLIENT = f"builder/{__version__}"
_DEFAULT_LIFETIME = 60
"""Seconds, where the token service does not say (token specification, "expires_in")."""
_LONGEST_LIFETIME = 24 * 60 * 60
_MARGIN = 5.0
_TOKEN_CHARACTERS = re.compile(r"[\x21-\x7e]+")
_PART = (
    r"[\s,]*(?:(?P<key>[\w!#$%&'*+.^`|~-]+)\s*=\s*"
    r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s,"]+))'
    r"|(?P<scheme>[\w!#$%&'*+.^`|~-]+)(?=\s|,|$))"
)
"""Compiled at the first challenge: a registry on this machine has none."""


@value(kw_only=False)
class Challenge:
    """One challenge of a ``WWW-Authenticate`` header. Names are in lower case."""

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict)


def parse_challenges(header: str) -> tuple[Challenge, ...]:
    """Read a header with any number of challenges, up to what does not follow the grammar."""
    challenges: list[tuple[str, dict[str, str]]] = []
    position = 0
    part = re.compile(_PART, re.ASCII)  # RFC 9110, 5.6.2: tokens have no other characters
    while found := part.match(header, position):
        position = found.end()
        if found["scheme"]:
            challenges.append((found["scheme"].lower(), {}))
        elif challenges:
            quoted = found["quoted"]
            value = found["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            challenges[-1][1].setdefault(found["key"].lower(), value)
    return tuple(Challenge(scheme, parameters) for scheme, parameters in challenges)


@value(kw_only=False)
class _Wanted:
    """What a token is fetched for."""

    realm: str
    service: str
    scope: str


class Authorizer:
    """The ``Authorization`` headers of one client. Safe to share between threads.

    Args:
        credentials: Where they are looked up, by the server's own ``host[:port]``.
        fetch: Sends a request to a token service and returns status and body.
        clock: Seconds that only go up.
    """

    def __init__(
        self,
        credentials: DockerConfig,
        *,
        fetch: Callable[[Request], tuple[str, int, bytes]],
        clock: Callable[[], float],
    ) -> None:
        self._credentials = credentials
        self._fetch = fetch
        self._clock = clock
        self._lock = Lock()
        self._basic: dict[str, str] = {}
        self._wanted: dict[tuple[str, str], _Wanted] = {}
        self._tokens: dict[_Wanted, tuple[str, float]] = {}

    def header(self, request: Request) -> str | None:
        """What is known to be wanted for such a request: saves the 401 of all but the first."""
        if request.endpoint is None:
            return None
        host = request.endpoint.host
        if host in self._basic:
            return self._basic[host]
        wanted = self._wanted.get((host, request.scope))
        return self._valid(wanted) if wanted else None

    def answer(self, request: Request, header: str | None, *, refused: str | None) -> str:
        """What to send instead of ``refused``, which was answered with 401 and ``header``.

        Raises:
            AuthError: There is nothing to answer with, or what there is was refused.
        """
        endpoint = request.endpoint
        assert endpoint is not None
        challenges = {c.scheme: c for c in reversed(parse_challenges(header or ""))}
        with self._lock:
            if bearer := challenges.get("bearer"):
                wanted = self._bearer(request, bearer)
                self._wanted[endpoint.host, request.scope] = wanted
                known = self._valid(wanted)
                if known is None or known == refused:
                    known = self._renew(request, endpoint, wanted)
                return known
            if "basic" in challenges:
                return self._basic_for(request, endpoint, refused=refused)
        schemes = ", ".join(sorted(challenges)) or "nothing"
        raise AuthError(
            f"{request.what}: {endpoint.host} asks for {schemes}, known are Bearer and Basic"
        )

    def hint(self, endpoint: Endpoint) -> str:
        """What a user can do about a 401 or 403."""
        login = f"'docker login {_login_name(endpoint)}'"
        found = self._credentials.get(endpoint.host)
        if found is None:
            return (
                f"no credentials for {endpoint.host} in {self._credentials.name}: run {login};"
                " registries also answer so where the repository does not exist"
            )
        return f"the credentials from {found.source} lack the right; run {login} as another user"

    def _valid(self, wanted: _Wanted) -> str | None:
        token, expires = self._tokens.get(wanted, ("", 0.0))
        return f"Bearer {token}" if token and self._clock() < expires else None

    def _basic_for(self, request: Request, endpoint: Endpoint, *, refused: str | None) -> str:
        found = self._credentials.get(endpoint.host)
        if found is None or not found.password:
            raise AuthError(
                f"{request.what}: {endpoint.host} wants a user name and a password",
                hint=self.hint(endpoint),
            )
        if found.basic == refused:
            self._basic.pop(endpoint.host, None)
            raise _bad_credentials(request, endpoint, found, f"{endpoint.host} refused")
        self._basic[endpoint.host] = found.basic
        return found.basic

    def _bearer(self, request: Request, challenge: Challenge) -> _Wanted:
        realm = challenge.parameters.get("realm", "")
        _check_realm(realm, request)
        scope = challenge.parameters.get("scope", "")
        # A read may have been what was challenged; a push must not come back for a second token.
        pushes = any("push" in part.rpartition(":")[2] for part in scope.split())
        if not scope or (request.push and not pushes):
            scope = request.scope
        return _Wanted(realm, challenge.parameters.get("service", ""), scope)

    def _renew(self, request: Request, endpoint: Endpoint, wanted: _Wanted) -> str:
        found = self._credentials.get(endpoint.host)
        _log.debug("a token for %s from %s", wanted.scope, shown(wanted.realm))
        said, status, body = self._fetch(_token_request(request, wanted, found))
        service = urlsplit(wanted.realm).netloc
        if status != 200 and found is not None:
            raise _bad_credentials(request, endpoint, found, said)
        if status != 200:
            raise AuthError(f"{request.what}: {said}", hint=self.hint(endpoint))
        token, lifetime = _read_token(body, at=f"{request.what}: the token of {service}")
        # Slightly early, so that a request under way does not outlive its token.
        self._tokens[wanted] = (token, self._clock() + lifetime - _MARGIN)
        return f"Bearer {token}"


def _token_request(request: Request, wanted: _Wanted, found: Credentials | None) -> Request:
    headers: dict[str, str] = {}
    method, url, body = "GET", wanted.realm, None
    if found is not None and found.identity_token:
        # OAuth2 Token Authentication: the only flow that takes an identity token.
        form = {
            "grant_type": "refresh_token",
            "service": wanted.service,
            "client_id": "builder",
            "scope": wanted.scope,
            "refresh_token": found.identity_token,
        }
        method, body = "POST", urlencode(form).encode()
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    else:
        query = [("service", wanted.service)] if wanted.service else []
        query += [("scope", scope) for scope in wanted.scope.split()]
        if found is not None:
            query.append(("account", found.username))
            headers["Authorization"] = found.basic
        url += ("&" if urlsplit(url).query else "?") + urlencode(query)
    return Request(
        what=request.what,
        method=method,
        url=url,
        endpoint=None,
        headers=headers,
        body=body,
        expected=frozenset({200, 400, 401, 403}),
    )


def _check_realm(realm: str, request: Request) -> None:
    """Refuse to send a password, or to take a token, where others can read it."""
    try:
        scheme, host, _ = origin(realm)
    except ValueError:
        scheme = host = ""
    if scheme not in ("http", "https") or not host:
        raise AuthError(f"{request.what}: the challenge names no token service")
    if scheme == "http" and origin(realm) != origin(request.url) and not is_loopback(host):
        raise AuthError(
            f"{request.what}: the token service {shown(realm)} is not reached over TLS, refused"
        )


def _read_token(body: bytes, *, at: str) -> tuple[str, int]:
    try:
        answer: Any = canonical.decode(body, at=at, limit=1 << 20)
    except IntegrityError:
        answer = None
    fields = answer if isinstance(answer, dict) else {}
    token = fields.get("token") or fields.get("access_token")
    if not isinstance(token, str) or not _TOKEN_CHARACTERS.fullmatch(token):
        raise AuthError(f"{at}: expected a JSON object with 'token' or 'access_token'")
    lifetime = fields.get("expires_in", _DEFAULT_LIFETIME)
    if not isinstance(lifetime, int) or isinstance(lifetime, bool):
        lifetime = _DEFAULT_LIFETIME
    return token, min(lifetime, _LONGEST_LIFETIME)


def _bad_credentials(
    request: Request, endpoint: Endpoint, found: Credentials, said: str
) -> AuthError:
    user = f"of {found.username!r} " if found.username else ""
    name = _login_name(endpoint)
    return AuthError(
        f"{request.what}: the credentials {user}from {found.source} are not accepted: {said}",
        hint=f"run 'docker login {name}' again; 'docker logout {name}' where the repository is"
        " public",
    )


def _login_name(endpoint: Endpoint) -> str:
    return DOCKER_HUB if endpoint.host == DOCKER_HUB_API else endpoint.host
