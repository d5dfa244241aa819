"""The Proposals port: GitHub's REST API, "Pull requests"."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from builder import canonical
from builder.adapters.forge_hosts import ForgeRepository
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.registry.failures import answered
from builder.adapters.registry.request import Request
from builder.adapters.registry.transport import Transport
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    IntegrityError,
    ProjectError,
    RateLimitError,
)
from builder.upstream import Proposal

_LIMIT = 16 << 20
_REFUSED = frozenset({401, 403, 404, 410, 422, 429})


class ForgeProposals:
    """See :class:`builder.upstream.Proposals`.

    Args:
        place: The repository, and where its API is.
        token: Sent there and nowhere else; a redirect is not followed.
        offline: Refuse before the first question.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        place: ForgeRepository,
        *,
        token: str,
        offline: bool = False,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._place, self._token = place, token
        configuration = RegistryConfiguration(offline=offline)
        self._transport = (
            Transport(configuration) if sleep is None else Transport(configuration, sleep=sleep)
        )

    def open_or_update(self, *, head: str, base: str, title: str, body: str) -> Proposal:
        """See :meth:`builder.upstream.Proposals.open_or_update`."""
        try:
            return self._open_or_update(head, base, title, body)
        finally:
            self._transport.close()

    def _open_or_update(self, head: str, base: str, title: str, body: str) -> Proposal:
        query = urlencode({"head": f"{self._place.owner}:{head}", "state": "all", "per_page": 100})
        found = self._call("GET", f"pulls?{query}", head)
        ours = [item for item in _each(found, at=head) if item["head"]["ref"] == head]
        still = [item for item in ours if item["state"] == "open"]
        still.sort(key=lambda item: bool(item["base"]["ref"] != base))
        if still:
            return self._updated(still[0], title, body, head)
        for item in ours:
            if item["title"] == title and item["merged_at"] is None:
                return Proposal(url=item["html_url"], state="closed")
        fields = {"title": title, "head": head, "base": base, "body": body}
        made = self._call("POST", "pulls", head, fields)
        return Proposal(url=_checked(made, at=head)["html_url"], state="opened")

    def _updated(self, item: dict[str, Any], title: str, body: str, head: str) -> Proposal:
        said = (item["body"] or "").replace("\r\n", "\n")
        if (item["title"], said.strip()) == (title, body.strip()):
            return Proposal(url=item["html_url"], state="unchanged")
        self._call("PATCH", f"pulls/{item['number']}", head, {"title": title, "body": body})
        return Proposal(url=item["html_url"], state="updated")

    def _call(
        self, method: str, path: str, head: str, fields: dict[str, str] | None = None
    ) -> object:
        place, at = self._place, f"pull request from {head}"
        request = Request(
            what=at,
            method=method,
            url=f"{place.api}/repos/{place.owner}/{place.name}/{path}",
            endpoint=None,
            headers={
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "Authorization": f"Bearer {self._token}",
            },
            body=None if fields is None else canonical.encode(fields),
            expected=frozenset({200, 201}) | _REFUSED | {301, 302, 307, 308},
            resend=method != "POST",  # it may have been opened
        )
        response, data = self._transport.fetch(request, limit=_LIMIT)
        if response.status_code in (200, 201):
            return canonical.decode(data, at=at, limit=_LIMIT)
        limited = response.status_code == 429 or (
            response.status_code == 403
            and (
                response.headers.get("X-RateLimit-Remaining") == "0"
                or b"rate limit" in data.lower()
            )
        )
        raise _refusal(response.status_code, f"{at}: {answered(response, data)}", data, limited)


def _refusal(status: int, said: str, data: bytes, limited: bool) -> BuilderError:
    if limited:
        return RateLimitError(said, hint="run it again later")
    if status in (401, 403):
        return AuthError(said, hint="the token must be let write pull requests")
    if status in (404, 410):
        return GoneError(said, hint="no such repository, or none that the token is let see")
    if status == 422:
        return ProjectError(said, hint=_why(data))
    return GoneError(f"{said}: the repository has moved", hint="git remote set-url origin URL")


def _each(found: object, *, at: str) -> list[dict[str, Any]]:
    if not isinstance(found, list):
        got = type(found).__name__
        raise IntegrityError(f"pull requests from {at}: the API answers with {got}, wanted a list")
    return [_checked(item, at=at) for item in found]


def _checked(item: object, *, at: str) -> dict[str, Any]:
    """A pull request that has what is read of it."""
    match item:
        case {
            "number": int(),
            "state": str(),
            "title": str(),
            "body": str() | None,
            "html_url": str(),
            "merged_at": str() | None,
            "head": {"ref": str()},
            "base": {"ref": str()},
        } if isinstance(item, dict):
            return item
        case _:
            raise IntegrityError(
                f"pull request from {at}: the API answers with what is no pull request"
            )


def _why(data: bytes) -> str | None:
    """What GitHub says of a field that it refuses: ``errors[].message``."""
    try:
        document = canonical.decode(data, at="error", limit=_LIMIT)
    except IntegrityError:
        return None
    match document:
        case {"errors": [{"message": str(message)}, *_]}:
            return "".join(filter(str.isprintable, message))[:200]
        case _:
            return None
