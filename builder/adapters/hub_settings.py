"""What the environment says of the hub of models, in the hub's own variables.

They are those of huggingface_hub ("Environment variables" in its documentation), so that who has
set it up for other programs has set it up for this one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from builder.adapters.registry.configuration import is_loopback
from builder.errors import EnvironmentFault
from builder.value import field, value

OFFICIAL = "https://huggingface.co"
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_TOKEN_LIMIT = 4096


@value
class HubSettings:
    """Where the hub is and who asks. ``token_place`` says where the token was found, ``offline``
    what forbids the network (``None``: nothing does)."""

    endpoint: str = OFFICIAL
    token: str | None = field(default=None, repr=False)
    token_place: str = ""
    offline: str | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str], *, offline: bool = False) -> Self:
        """Read ``HF_ENDPOINT``, ``HF_TOKEN`` (or the file that ``hf auth login`` writes) and
        ``HF_HUB_OFFLINE``.

        Raises:
            EnvironmentFault: ``HF_ENDPOINT`` is no address, or would get a token without TLS; or
                what should be a token is none.
        """
        token, place = _token(environment)
        endpoint = _endpoint(environment)
        if token is not None:
            _check_secret(endpoint, place)
        forbidden = [name for name in _OFFLINE if _is_true(environment.get(name))]
        return cls(
            endpoint=endpoint,
            token=token,
            token_place=place,
            offline="--offline" if offline else next(iter(forbidden), None),
        )


def _endpoint(environment: Mapping[str, str]) -> str:
    text = environment.get("HF_ENDPOINT") or OFFICIAL
    try:
        parts = urlsplit(text)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        known = known and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, known = urlsplit(""), None
    if not known or parts.query or parts.fragment or text.split() != [text]:
        told = text.rpartition("@")[2]  # before it there may be a password
        raise EnvironmentFault(
            f"HF_ENDPOINT: expected https://HOST without credentials, got {told!r:.200}"
        )
    return text.rstrip("/")


def _check_secret(endpoint: str, place: str) -> None:
    """A token is for one host's eyes."""
    parts = urlsplit(endpoint)
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise EnvironmentFault(
            f"HF_ENDPOINT: {endpoint!r} is without TLS: others could read the token in {place}",
            hint="write https://, or ask without a token: HF_HUB_DISABLE_IMPLICIT_TOKEN=1",
        )


def _token(environment: Mapping[str, str]) -> tuple[str | None, str]:
    if _is_true(environment.get("HF_HUB_DISABLE_IMPLICIT_TOKEN")):
        return None, ""
    for name in _TOKENS:
        if token := environment.get(name, "").strip():
            return _plain(token, at=name), name
    path = _token_path(environment)
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            token = file.read(_TOKEN_LIMIT).strip()
    except OSError:
        return None, ""
    return (_plain(token, at=str(path)), str(path)) if token else (None, "")


def _token_path(environment: Mapping[str, str]) -> Path:
    if stated := environment.get("HF_TOKEN_PATH"):
        return Path(stated).expanduser()
    if home := environment.get("HF_HOME"):
        return Path(home).expanduser() / "token"
    cache = environment.get("XDG_CACHE_HOME")
    return Path(cache or "~/.cache").expanduser() / "huggingface/token"


def _plain(token: str, *, at: str) -> str:
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise EnvironmentFault(
            f"{at}: no token of the hub: {len(token)} characters with blanks or worse among them",
            hint="hf auth login writes one, or unset it",
        )
    return token


def _is_true(text: str | None) -> bool:
    return text is not None and text.upper() in _TRUE
