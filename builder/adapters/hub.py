"""The Hub port: the API of huggingface.co, or of whatever ``HF_ENDPOINT`` names.

Asked through the registry client's transport, for its time-outs, its care with redirects and
tokens, and its bounded waits. What little is asked needs no library of the hub's own.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from builder import canonical
from builder.adapters.hub_download import alone_in, download
from builder.adapters.hub_listing import is_commit, listed_file, object_id, odd
from builder.adapters.hub_settings import OFFICIAL, HubSettings
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.registry.connections import Response
from builder.adapters.registry.failures import answered
from builder.adapters.registry.request import Request, follow, origin, shown
from builder.adapters.registry.transport import Transport
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
    RateLimitError,
)
from builder.tree import parents
from builder.upstream import HubFile, HubRevision, WantedFile

_log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)
_ANSWERS = frozenset({200, 401, 403, 404, 410})
_JSON_LIMIT = 16 << 20
_FILE_LIMIT = 100_000
_PAGES_LIMIT = 2000
"""The hub gives 1000 entries a page, directories among them."""
_REFUSAL_LIMIT = 64 << 10
"""What a refusal may take, however small the file is that was asked for."""
_LESS = "wait, or log in with HF_TOKEN: the hub allows more to known users"
_ELSEWHERE = "try again; HF_ENDPOINT can name another hub to ask"
_LOOK = "look at the page of the model; files that are here can still be verified"
_SQUASHED = (
    "its history was squashed; bump the pin to what is there. Files that are here can still be"
    " verified"
)
_NO_BRANCH = "the page of the model lists its branches and tags; a commit is 40 hex digits"


class HubClient:
    """See :class:`builder.upstream.Hub`.

    Args:
        settings: Where the hub is, who asks, and whether it may be asked.
        sleep, clock: See :class:`builder.adapters.registry.transport.Transport`.
        host_limit: Seconds that one host may take for all of its answers; ``None`` for any.
    """

    def __init__(
        self,
        settings: HubSettings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        host_limit: float | None = None,
    ) -> None:
        self._settings = settings
        self._token = settings.token
        configuration = RegistryConfiguration(host_limit=host_limit)
        self._transport = Transport(configuration, sleep=sleep, clock=clock)

    def close(self) -> None:
        """Close the connections that are idle."""
        self._transport.close()

    def revision(self, repository: str, revision: str) -> HubRevision:
        what = _what(repository)
        path = f"api/models/{repository}/revision/{quote(revision, safe='')}"
        value, _ = self._json(what, f"{self._settings.endpoint}/{path}", revision=revision)
        if not isinstance(value, dict):
            raise odd(what, value)
        name, commit = value.get("id"), value.get("sha")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise IntegrityError(f"{what}: the hub gives no name of the model, but {name!r}")
        found = object_id(commit, at=f"{what}: revision {revision!r}")
        if is_commit(revision) and revision != found.hex:
            raise IntegrityError(f"{what}: commit {revision} is {found} to the hub")
        return HubRevision(repository=name, commit=found.hex)

    def files(self, repository: str, commit: str) -> tuple[HubFile, ...]:
        what = _what(repository)
        files: dict[str, HubFile] = {}
        for entry in self._entries(what, repository, commit):
            if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
                raise odd(what, entry)
            if entry["type"] == "directory":
                continue
            file = listed_file(entry, at=what)
            if file.path in files:
                raise IntegrityError(f"{what}: the hub lists {file.path!r} twice")
            files[file.path] = file
            if len(files) > _FILE_LIMIT:
                raise IntegrityError(f"{what}: over {_FILE_LIMIT} files")
        for path in files:
            if above := next((each for each in parents(path) if each in files), None):
                raise IntegrityError(f"{what}: the hub lists {path!r} below {above!r}, a file")
        return tuple(files[path] for path in sorted(files))

    def read(self, repository: str, commit: str, path: str, *, limit: int) -> bytes:
        what = f"{_what(repository)}: {path}"
        url = f"{self._settings.endpoint}/{repository}/resolve/{commit}/{quote(path)}"
        response, data = self._ask(what, url, revision=commit, limit=limit)
        of = response.headers.get("X-Repo-Commit", commit)
        if of != commit:
            raise IntegrityError(f"{what}: wanted it of commit {commit}, got it of {of!r:.100}")
        return data

    def alone_in(self, directory: Path) -> AbstractContextManager[None]:
        return alone_in(directory)

    def download(
        self, repository: str, commit: str, file: WantedFile, advance: Callable[[int], None]
    ) -> None:
        what = f"{_what(repository)}: {file.path}"
        url = f"{self._settings.endpoint}/{repository}/resolve/{commit}/{quote(file.path)}"
        self._check_online(what, url)
        request = Request(
            what=what, method="GET", url=url, endpoint=None, headers=_headers(self._token)
        )
        try:
            with _hinted():
                download(self._transport, request, file, advance)
        except AuthError as error:
            error.hint = f"accept its conditions at {self._settings.endpoint}/{repository}, or"
            error.hint += " set HF_TOKEN to a token that may read it"
            raise

    def _entries(self, what: str, repository: str, commit: str) -> Iterator[Any]:
        """The listing, page after page."""
        start = f"{self._settings.endpoint}/api/models/{repository}/tree/{commit}"
        url: str | None = f"{start}?recursive=true"
        seen: set[str] = set()
        while url is not None:
            if url in seen:
                raise IntegrityError(f"{what}: the pages of the hub's listing go in a circle")
            seen.add(url)
            if len(seen) > _PAGES_LIMIT:
                raise IntegrityError(f"{what}: the hub's listing has over {_PAGES_LIMIT} pages")
            value, response = self._json(what, url, revision=commit)
            if not isinstance(value, list):
                raise odd(what, value)
            yield from value
            url = self._next_page(what, response)

    def _next_page(self, what: str, response: Response) -> str | None:
        """Where the listing goes on (RFC 8288). A mirror may pass on what the hub itself said."""
        target = next(iter(response.next_pages), None)
        if target is None:
            return None
        endpoint = self._settings.endpoint
        url = follow(response.url, target, what=what)
        if url.startswith(f"{OFFICIAL}/"):
            url = endpoint + url.removeprefix(OFFICIAL)
        if origin(url) != origin(endpoint):
            raise NetworkError(
                f"{what}: the listing goes on at another host, {shown(url)}, refused"
            )
        return url

    def _json(self, what: str, url: str, *, revision: str) -> tuple[Any, Response]:
        response, data = self._ask(what, url, revision=revision, limit=_JSON_LIMIT)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        if kind != "application/json":
            raise NetworkError(
                f"{what}: {shown(response.url)} answers with {kind or 'no type'!r}, wanted JSON",
                hint="a login page or a proxy in between? HF_ENDPOINT says which hub is asked",
            )
        return canonical.decode(data, at=f"{what}: {shown(response.url)}"), response

    def _ask(self, what: str, url: str, *, revision: str, limit: int) -> tuple[Response, bytes]:
        """The whole answer. Where the hub does not know our token, nobody asks once more, because
        it refuses public models, too, to those who come with a bad one."""
        self._check_online(what, url)
        response, data = self._fetched(what, url, self._token, limit)
        bad = (
            self._token is not None
            and response.status_code == 401
            and response.headers.get("X-Error-Code") != "GatedRepo"
        )
        if bad:
            response, data = self._fetched(what, url, None, limit)
            if response.status_code == 200:
                _log.warning(
                    "%s does not accept the token in %s; asked without it",
                    *(shown(self._settings.endpoint), self._settings.token_place),
                )
                self._token = None
        if response.status_code == 200:
            return response, data
        raise self._refusal(what, response, data, revision=revision, bad_token=bad)

    def _check_online(self, what: str, url: str) -> None:
        if self._settings.offline is not None:
            raise OfflineError(
                f"{what}: {self._settings.offline} forbids to ask {shown(url)}",
                hint=f"run it once without {self._settings.offline}",
            )

    def _fetched(
        self, what: str, url: str, token: str | None, limit: int
    ) -> tuple[Response, bytes]:
        request = Request(
            what=what,
            method="GET",
            url=url,
            endpoint=None,
            headers=_headers(token),
            expected=_ANSWERS,
        )
        with _hinted():
            response, data = self._transport.fetch(request, limit=max(limit, _REFUSAL_LIMIT))
        if response.status_code == 200 and len(data) > limit:
            raise IntegrityError(f"{what}: expected at most {limit} bytes, got {len(data)}")
        return response, data

    def _refusal(
        self,
        what: str,
        response: Response,
        data: bytes,
        *,
        revision: str,
        bad_token: bool,
    ) -> BuilderError:
        said = answered(response, data)
        code = response.headers.get("X-Error-Code")
        if origin(response.url) != origin(self._settings.endpoint):
            return NetworkError(f"{what}: {said}", hint=_ELSEWHERE)
        if code == "RevisionNotFound":
            hint = _SQUASHED if is_commit(revision) else _NO_BRANCH
            return GoneError(f"{what}: the hub has no revision {revision!r}", hint=hint)
        if code == "EntryNotFound":
            return GoneError(f"{what}: the hub has no such file at {revision!r}", hint=_LOOK)
        if bad_token:
            return AuthError(
                f"{what}: {said}; neither with the token in {self._settings.token_place} nor"
                " without one",
                hint="make a new token in the settings of your account at the hub",
            )
        if code == "GatedRepo":
            page = f"{self._settings.endpoint}/{what.removeprefix('model ').partition(':')[0]}"
            return AuthError(
                f"{what}: it is gated: {said}",
                hint=f"accept its conditions at {page}, then set HF_TOKEN to a token of that"
                " account",
            )
        if code == "RepoNotFound":
            return GoneError(
                f"{what}: the hub has no such model, or none that you may see: {said}",
                hint="it was removed or renamed; if it is private, set HF_TOKEN",
            )
        if response.status_code in (404, 410) or "resource is disabled" in said:
            return GoneError(f"{what}: {said}", hint=_LOOK)
        return AuthError(f"{what}: {said}", hint="set HF_TOKEN to a token that may read it")


@contextmanager
def _hinted() -> Iterator[None]:
    """What helps with a hub, in place of what helps with registries."""
    try:
        yield
    except RateLimitError as error:
        error.hint = _LESS
        raise
    except NetworkError as error:
        if error.hint == NetworkError.usual_hint:
            error.hint = _ELSEWHERE
        raise


def _headers(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _what(repository: str) -> str:
    if not _NAME.fullmatch(repository) or ".." in repository:
        raise ProjectError(
            f"model {repository!r}: expected owner/name",
            hint="as the page of the model at the hub has it",
        )
    return f"model {repository}"
