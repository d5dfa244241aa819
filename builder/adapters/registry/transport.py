"""One request, sent until it is answered or its failure stands.

Redirects are followed by hand: ``Authorization`` stays at the origin it was made for, TLS is not
given up, and each attempt starts at the registry again, so that a signed address that has expired
is replaced by a fresh one.
"""

import logging
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from itertools import count
from urllib.parse import urlsplit

from builder.adapters.registry.auth import CLIENT, Authorizer
from builder.adapters.registry.configuration import RegistryConfiguration, is_loopback
from builder.adapters.registry.connections import Connections, Response
from builder.adapters.registry.credentials import DockerConfig
from builder.adapters.registry.failures import (
    Interrupted,
    answered,
    check_announced,
    chunks,
    drain,
    reason,
    refusal,
)
from builder.adapters.registry.heads import Overdue
from builder.adapters.registry.http import urllib3
from builder.adapters.registry.patience import Patience, overdue
from builder.adapters.registry.request import Request, follow, origin, shown
from builder.errors import (
    AuthError,
    BuilderError,
    IntegrityError,
    NetworkError,
    OfflineError,
    RateLimitError,
)

_log = logging.getLogger(__name__)

_MAY_PASS = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ProtocolError,
    urllib3.exceptions.ProxyError,
    urllib3.exceptions.TimeoutError,
)
"""What a connection breaks with that may hold the next time."""
_REDIRECT_LIMIT = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {"User-Agent": CLIENT, "Accept": "*/*", "Accept-Encoding": "identity"}
_BACKOFF = 0.5
"""Seconds before the second attempt; doubled for each that follows."""


class Transport:
    """Connections to registries, their storage and their token services; shared by threads.

    Args:
        configuration: Hosts, limits, credentials.
        sleep: Waits for some seconds.
        clock: Seconds that only go up: the age of tokens.
        now: Seconds since 1970, for a ``Retry-After`` that names a date.
    """

    def __init__(
        self,
        configuration: RegistryConfiguration,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.configuration = configuration
        self._sleep = sleep
        self._now = now
        self._auth = Authorizer(
            DockerConfig(configuration.docker_config), fetch=self._fetch_token, clock=clock
        )
        self._connections = Connections()
        self._patience = Patience(clock, total=configuration.host_limit)

    def close(self) -> None:
        """Close the connections that are idle."""
        self._connections.close()

    def send(self, request: Request) -> Response:
        """Send until one of the expected answers comes; the caller reads and closes it.

        Raises:
            OfflineError: Before anything else.
            Interrupted: The failure may pass, and has not within the attempts.
            GoneError, AuthError, RateLimitError, NetworkError: See ``failures``.
        """
        if self.configuration.offline:
            raise OfflineError(
                f"{request.what}: --offline forbids to ask {shown(request.url)}",
                hint="run once without --offline",
            )
        attempts = request.attempts or self.configuration.attempts
        waited = 0.0
        for attempt in count(1):
            asked: float | None = None
            failure: BuilderError
            try:
                response = self._authorized(request)
            except Interrupted as error:
                failure = error
            else:
                if response.status_code in request.expected:
                    return response
                failure = self._explain(request, response)
                asked = self._asked_wait(response)
            if not isinstance(failure, RateLimitError | Interrupted):
                raise failure
            if isinstance(failure, Interrupted) and not request.resend:
                raise failure
            pause = backoff(attempt) if asked is None else asked
            waited += pause
            if asked is not None and waited > self.configuration.wait_limit:
                raise RateLimitError(
                    f"{failure.message}; it wants a wait of {pause:.0f} s, over the limit of"
                    f" {self.configuration.wait_limit:.0f} s for one request",
                    hint=failure.hint,
                ) from failure
            if attempt >= attempts:
                raise failure
            _log.debug("attempt %d in %.1f s: %s", attempt + 1, pause, failure.message)
            if pause:
                self._sleep(pause)
                self._patience.taken[urlsplit(request.url).netloc] += pause
        raise AssertionError("count() has no end")

    def fetch(self, request: Request, *, limit: int) -> tuple[Response, bytes]:
        """Like :meth:`send`, with the whole body of at most ``limit`` bytes.

        Raises:
            IntegrityError: The body is larger.
        """
        attempts = request.attempts or self.configuration.attempts
        for attempt in count(1):
            response = self.send(request)
            data = bytearray()
            try:
                with response:
                    check_announced(response, limit=limit, what=request.what)
                    for chunk in chunks(response, what=request.what, whole=True):
                        data += chunk
                        if len(data) > limit:
                            raise IntegrityError(
                                f"{request.what}: {shown(response.url)} sends more than the"
                                f" {limit} bytes that are allowed"
                            )
                return response, bytes(data)
            except Interrupted:
                if attempt >= attempts:
                    raise
                self.pause(attempt)
        raise AssertionError("count() has no end")

    def pause(self, attempt: int) -> None:
        """Wait as is due after the failure of attempt number ``attempt``."""
        self._sleep(backoff(attempt))

    def _authorized(self, request: Request) -> Response:
        """Send once; where that is answered with 401, answer the challenge and send once more."""
        header = None
        ours = request.endpoint is not None and origin(request.url) == origin(
            request.endpoint.url("x", "")
        )
        if ours:
            header = self._auth.header(request)
        response = self._followed(request, header)
        if response.status_code != 401 or not ours or origin(response.url) != origin(request.url):
            return response
        challenge = response.headers.get("WWW-Authenticate")
        drain(response)
        header = self._auth.answer(request, challenge, refused=header)
        response = self._followed(request, header)
        if response.status_code == 401 and header.startswith("Basic "):
            challenge = response.headers.get("WWW-Authenticate")
            drain(response)
            self._auth.answer(request, challenge, refused=header)  # raises: they are not accepted
        return response

    def _followed(self, request: Request, authorization: str | None) -> Response:
        method, url = request.method, request.url
        headers = _HEADERS | dict(request.headers)
        if authorization is not None:
            headers["Authorization"] = authorization
        for _ in range(_REDIRECT_LIMIT + 1):
            response = self._exchange(request, method, url, headers)
            if response.status_code not in _REDIRECTS or method not in ("GET", "HEAD"):
                return response
            drain(response)
            target = follow(url, response.headers.get("Location"), what=request.what)
            if origin(target) != origin(url):
                # Storage takes one authorisation, its own (in the query), and has signed it for
                # GET: a HEAD would be refused, so one byte is asked for instead.
                headers.pop("Authorization", None)
                if method == "HEAD":
                    method = "GET"
                    headers["Range"] = "bytes=0-0"
            _log.debug("redirected to %s", shown(target))
            url = target
        raise NetworkError(
            f"{request.what}: {shown(request.url)}: over {_REDIRECT_LIMIT} redirects"
        )

    def _exchange(
        self, request: Request, method: str, url: str, headers: dict[str, str]
    ) -> Response:
        parts = urlsplit(url)
        server = self.configuration.server(parts.netloc)
        at = f"{request.what}: {shown(url)}"
        allowance = self._patience.begin(parts.netloc, seconds=server.answer_timeout, at=at)
        # The texts of these errors, and so their chain, hold the address with its query.
        try:
            return self._connections.request(
                method,
                url,
                headers=headers,
                body=request.body,
                timeout=urllib3.Timeout(connect=server.connect_timeout, read=server.read_timeout),
                ca_file=None if server.ca_file is None else str(server.ca_file),
                # Loopback is never asked of a proxy, which would be another machine (as in Go's
                # clients).
                direct=is_loopback(parts.hostname),
                allowance=allowance,
            )
        except urllib3.exceptions.SSLError as error:
            raise NetworkError(
                f"{at}: {reason(error)}",
                hint="ca_file names the certificates to trust; plain_http is for registries"
                " without TLS",
            ) from None
        except _MAY_PASS as error:
            if isinstance(error.__cause__, Overdue):
                raise overdue(at, server.answer_timeout) from None
            raise Interrupted(f"{at}: {reason(error)}") from None
        except (urllib3.exceptions.HTTPError, ValueError, OSError) as error:
            raise NetworkError(f"{at}: {type(error).__name__}: {reason(error)}") from None
        finally:
            allowance.count()

    def _explain(self, request: Request, response: Response) -> BuilderError:
        failure = refusal(request, response, drain(response))
        if isinstance(failure, AuthError) and request.endpoint is not None:
            failure.hint = self._auth.hint(request.endpoint)
        return failure

    def _asked_wait(self, response: Response) -> float | None:
        if response.status_code not in (429, 503):
            return 0.0 if response.status_code < 500 else None
        return asked_wait(response, self._now)

    def _fetch_token(self, request: Request) -> tuple[str, int, bytes]:
        response, body = self.fetch(request, limit=1 << 20)
        return answered(response, body), response.status_code, body


def backoff(attempt: int) -> float:
    """Seconds to wait after the failure of attempt number ``attempt``."""
    return float(_BACKOFF * 2 ** (attempt - 1))


def asked_wait(response: Response, now: Callable[[], float]) -> float | None:
    """``Retry-After`` in seconds (RFC 9110, 10.2.3). A date is read against the server's own clock
    where it gives its time."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    until = _date(text)
    if until is None:
        return None
    its = _date(response.headers.get("Date", ""))
    return max(0.0, until - (now() if its is None else its))


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None
