"""Credentials from docker's ``config.json``: inline, or from its credential helpers.

Read as the docker command line does: ``credHelpers`` for the host, then ``credsStore``, then
``auths``. Nothing is written, nothing is kept beyond the process, nothing is logged.
"""

import base64
import binascii
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from builder import canonical
from builder.adapters.registry.configuration import DOCKER_HUB_API
from builder.errors import AuthError, EnvironmentFault, IntegrityError, ProjectError
from builder.value import field, value

_log = logging.getLogger(__name__)

_HUB_KEY = "https://index.docker.io/v1/"
"""What docker.io is called in config.json and by the helpers, since the days of registry v1."""
_HELPER_TIMEOUT = 30.0
_HELPER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOT_FOUND = "credentials not found"
"""What helpers print for "none" (docker-credential-helpers, credentials/error.go)."""


@value
class Credentials:
    """A user name with a password, or an identity token (an OAuth2 refresh token)."""

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    source: str = ""
    """Where they come from, for messages."""

    @property
    def basic(self) -> str:
        """The value of an ``Authorization`` header of the Basic scheme (RFC 7617, UTF-8)."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode('ascii')}"


class DockerConfig:
    """The credentials of one ``config.json``. Safe to share between threads.

    The file is read when credentials are first wanted, and each helper is asked once per host.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        self._document: Mapping[str, Any] | None = None
        self._known: dict[str, Credentials | None] = {}

    @property
    def name(self) -> str:
        """How messages call the place that was searched."""
        return str(self._path) if self._path else "docker's config.json (none was given)"

    def get(self, host: str) -> Credentials | None:
        """The credentials for a server, ``None`` where there are none.

        Raises:
            ProjectError: The file is not what docker writes.
            EnvironmentFault: It names a helper that is not installed.
            AuthError: The helper fails, or takes longer than 30 s.
        """
        with self._lock:
            if host not in self._known:
                self._known[host] = self._look_up(host)
            return self._known[host]

    def _look_up(self, host: str) -> Credentials | None:
        if self._document is None:
            self._document = self._read()
        key = _HUB_KEY if host == DOCKER_HUB_API else host
        helpers = self._section("credHelpers")
        helper = next((helpers[name] for name in _spellings(key) if name in helpers), None)
        helper = helper or self._document.get("credsStore")
        if helper:
            found = _ask_helper(helper, server=key, at=self.name)
            if found is not None:
                return found
        return self._inline(key)

    def _inline(self, key: str) -> Credentials | None:
        auths = self._section("auths")
        name = next((name for name in _spellings(key) if name in auths), None)
        if name is None:
            return None
        at = f"{self.name}: auths[{name!r}]"
        entry = auths[name]
        if not isinstance(entry, dict):
            raise ProjectError(f"{at}: expected an object, got {type(entry).__name__}")
        texts = {key: value for key, value in entry.items() if isinstance(value, str)}
        username, password = texts.get("username", ""), texts.get("password", "")
        if texts.get("auth"):
            username, password = _decode_pair(texts["auth"], at=at)
        token = texts.get("identitytoken", "")
        if not token and not password:  # what `docker logout` and a credsStore leave behind
            return None
        return Credentials(
            username=username, password=password, identity_token=token, source=self.name
        )

    def _section(self, name: str) -> Mapping[str, Any]:
        section = (self._document or {}).get(name) or {}
        if not isinstance(section, dict):
            raise ProjectError(
                f"{self.name}: {name}: expected an object, got {type(section).__name__}"
            )
        return section

    def _read(self) -> Mapping[str, Any]:
        if self._path is None:
            return {}
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            _log.debug("no credentials: there is no %s", self._path)
            return {}
        except OSError as error:
            raise EnvironmentFault(f"{self._path}: {error.strerror}") from error
        try:
            document = canonical.decode(data, at=str(self._path), limit=1 << 20)
        except IntegrityError as error:  # a file of the user's, not bytes with a name
            raise ProjectError(error.message) from error
        if not isinstance(document, dict):
            raise ProjectError(f"{self._path}: expected an object, got {type(document).__name__}")
        return document


def _spellings(key: str) -> tuple[str, ...]:
    """The keys under which docker, podman and old versions of both file a server."""
    if key == _HUB_KEY:
        return (_HUB_KEY, "index.docker.io", "docker.io", DOCKER_HUB_API)
    return tuple(
        f"{scheme}{key}{tail}"
        for scheme in ("", "https://", "http://")
        for tail in ("", "/", "/v1/", "/v2/")
    )


def _decode_pair(text: str, *, at: str) -> tuple[str, str]:
    try:
        pair = base64.b64decode(text, validate=True).decode().rstrip("\0")
    except (binascii.Error, UnicodeDecodeError):
        pair = ""
    username, colon, password = pair.partition(":")
    if not colon:
        raise ProjectError(
            f"{at}.auth: expected 'user:password' in base64", hint="run docker login again"
        )
    return username, password


def _ask_helper(helper: object, *, server: str, at: str) -> Credentials | None:
    if not isinstance(helper, str) or not _HELPER_NAME.fullmatch(helper):
        raise ProjectError(f"{at}: expected the name of a credential helper, got {helper!r}")
    import subprocess  # noqa: PLC0415 - few have a helper

    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run(
            [program, "get"],
            input=server.encode(),
            capture_output=True,
            timeout=_HELPER_TIMEOUT,
            check=False,
        )
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise EnvironmentFault(
            f"{at}: the credential helper {program!r}"
            f" {'is not installed' if missing else f'cannot be run: {error.strerror}'}",
            hint="install it, or take credsStore and credHelpers out of the file",
        ) from None
    except subprocess.TimeoutExpired:  # its output may hold a secret: not chained
        raise AuthError(
            f"{program}: no answer for {server!r} after {_HELPER_TIMEOUT:.0f} s",
            hint="it may be waiting for a key store to be unlocked",
        ) from None
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        if _NOT_FOUND in said:
            _log.debug("%s has nothing for %s", program, server)
            return None
        raise AuthError(
            f"{program}: status {done.returncode} for {server!r}",
            hint=f"try: echo {server} | {program} get",
        )
    return _helper_answer(done.stdout, program=program)


def _helper_answer(data: bytes, *, program: str) -> Credentials | None:
    try:
        answer = canonical.decode(data, at=program, limit=1 << 20)
    except IntegrityError:
        answer = None
    if not isinstance(answer, dict):
        raise AuthError(f"{program}: expected a JSON object with Username and Secret")
    username, secret = answer.get("Username"), answer.get("Secret")
    if not isinstance(username, str) or not isinstance(secret, str):
        raise AuthError(f"{program}: expected a JSON object with Username and Secret")
    if not secret:
        return None
    if username == "<token>":  # docker-credential-helpers, "identity tokens"
        return Credentials(identity_token=secret, source=program)
    return Credentials(username=username, password=secret, source=program)
