"""The Forge port: GitHub's REST API, read and never written.

Over the same transport as registries: redirects by hand, ``Authorization`` only for the origin that
it was made for, waits that are bounded.
"""

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

from builder import canonical
from builder.adapters.forge_hosts import ForgeRepository, locate, token_for
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.registry.connections import Response
from builder.adapters.registry.failures import answered
from builder.adapters.registry.request import Request
from builder.adapters.registry.transport import Transport, asked_wait
from builder.errors import (
    AuthError,
    GoneError,
    IntegrityError,
    NetworkError,
    RateLimitError,
)
from builder.upstream import PullFacts

_LIMIT = 4 << 20
_WAIT = 60.0
"""Seconds that one question may wait until it is let in."""
_ATTEMPTS = 4
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class ForgeClient:
    """See :class:`builder.upstream.Forge`.

    Args:
        apis: Where the API of a host is, beyond what is known of github.com.
        token: Sent to one host alone: the only one of ``apis``, otherwise github.com. Never over a
            redirect to another origin.
        offline: Refuse before the first question.
        sleep: Waits for some seconds.
        now: Seconds since 1970.
    """

    def __init__(
        self,
        apis: Mapping[str, str],
        *,
        token: str | None,
        offline: bool,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._apis = {host.lower(): api for host, api in apis.items()}
        self._token = (token or "").strip()
        self._sleep, self._now = sleep, now
        self._transport = Transport(RegistryConfiguration(offline=offline), sleep=sleep, now=now)

    def close(self) -> None:
        """Close the connections that are idle."""
        self._transport.close()

    def pull(self, repository: str, number: int) -> PullFacts | None:
        """See :meth:`builder.upstream.Forge.pull`.

        Raises:
            IntegrityError: The host answers with what is not about that pull request.
            ProjectError: builder.yaml has no usable address for the host.
        """
        place = locate(repository, self._apis)
        if place is None:
            return None
        at = f"{repository}: pull request {number}"
        url = f"{place.api}/repos/{place.owner}/{place.name}/pulls/{number}"
        response, body = self._ask(url, place, at=at)
        if "json" not in response.headers.get("Content-Type", ""):
            raise NetworkError(
                f"{at}: {answered(response, b'')} with"
                f" {response.headers.get('Content-Type', 'no type')!r}, wanted JSON",
                hint="a proxy or a login page may stand in between",
            )
        return _facts(canonical.decode(body, at=at, limit=_LIMIT), number, at=at)

    def _ask(self, url: str, place: ForgeRepository, *, at: str) -> tuple[Response, bytes]:
        token = token_for(place, self._apis, self._token, at=at)
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        request = Request(
            what=at,
            method="GET",
            url=url,
            endpoint=None,
            headers=headers,
            expected=frozenset({200, 401, 403, 404, 410, 429}),
        )
        waited = 0.0
        for attempt in count(1):
            response, body = self._transport.fetch(request, limit=_LIMIT)
            if response.status_code == 200:
                return response, body
            pause = self._pause(response, body)
            if pause is None:
                raise _refusal(response, body, at=at, token=bool(token))
            waited += pause
            if waited > _WAIT or attempt == _ATTEMPTS:
                raise self._limited(response, body, pause, at=at, token=bool(token))
            self._sleep(pause)
        raise AssertionError("count() has no end")

    def _pause(self, response: Response, body: bytes) -> float | None:
        """Seconds until the host wants to be asked again; ``None`` where that is not the matter.

        GitHub, "Best practices for using the REST API": 403 or 429; ``retry-after``, else
        ``x-ratelimit-reset`` where nothing remains, else at least a minute.
        """
        if response.status_code not in (403, 429):
            return None
        asked = asked_wait(response, self._now)
        if asked is not None:
            return asked
        reset = response.headers.get("X-RateLimit-Reset", "")
        if response.headers.get("X-RateLimit-Remaining") == "0":
            # A second more: both are whole seconds.
            known = reset.isascii() and reset.isdigit() and len(reset) < 12
            return max(0.0, int(reset) - self._now()) + 1 if known else _WAIT + 1
        limited = response.status_code == 429 or b"rate limit" in body.lower()
        return _WAIT + 1 if limited else None

    def _limited(
        self, response: Response, body: bytes, pause: float, *, at: str, token: bool
    ) -> RateLimitError:
        until = datetime.fromtimestamp(min(self._now() + pause, 32503680000), UTC)
        return RateLimitError(
            f"{at}: {answered(response, body)}; it wants to be asked again at"
            f" {until:%Y-%m-%dT%H:%M:%SZ}",
            hint="wait until then"
            if token
            else "wait until then, or set GITHUB_TOKEN: known users may ask more",
        )


def _refusal(response: Response, body: bytes, *, at: str, token: bool) -> AuthError | GoneError:
    message = f"{at}: {answered(response, body)}"
    if response.status_code in (404, 410):
        return GoneError(
            message,
            hint="there is none of this number, or it is not for "
            + ("this GITHUB_TOKEN to see" if token else "everybody to see: set GITHUB_TOKEN"),
        )
    return AuthError(
        message,
        hint="GITHUB_TOKEN is not accepted, or may not see it: set another"
        if token
        else "set GITHUB_TOKEN",
    )


def _facts(document: Any, number: int, *, at: str) -> PullFacts:
    def take(*keys: str, want: type) -> Any:
        found = document
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if not isinstance(found, want) or (want is int and isinstance(found, bool)):
            raise IntegrityError(
                f"{at}: the API answers with {'.'.join(keys)} {str(found)[:80]!r}, expected"
                f" {want.__name__}"
            )
        return found

    if (got := take("number", want=int)) != number:
        raise IntegrityError(f"{at}: the API answers about number {got}")
    merged = take("merged", want=bool)
    state = "merged" if merged else take("state", want=str)
    head = take("head", "sha", want=str)
    # Of one that is not merged this is a trial merge that GitHub makes, and no commit of anybody.
    commit = take("merge_commit_sha", want=str) if merged else None
    if state not in ("open", "closed", "merged"):
        raise IntegrityError(f"{at}: the API answers with state {state[:80]!r}")
    for name in (head, *([commit] if commit else [])):
        if not _COMMIT.fullmatch(name):
            raise IntegrityError(f"{at}: the API answers with {name[:80]!r} for a commit")
    title = "".join(c if c.isprintable() else " " for c in take("title", want=str))
    return PullFacts(
        title=title[:500].strip(),
        state=state,
        base_ref=take("base", "ref", want=str),
        head=head,
        merge_commit=commit,
    )
