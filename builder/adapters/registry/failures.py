"""What an answer that is none, or a broken connection, means: typed errors and their sentences.

Nothing here prints a query string (it may be a signature), a header that we sent, or more than a
line of what a server says.
"""

import logging
import socket
import ssl
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from builder import canonical
from builder.adapters.registry.connections import Response
from builder.adapters.registry.http import urllib3
from builder.adapters.registry.patience import SLOWEST
from builder.adapters.registry.request import Request, origin, shown
from builder.digest import CHUNK
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    IntegrityError,
    NetworkError,
    RateLimitError,
)

_log = logging.getLogger(__name__)

_ENOUGH = CHUNK // 4
"""Bytes: less is collected first, more costs a copy and time in which nothing is read."""
_ERROR_BODY_LIMIT = 64 << 10
_LINE_LIMIT = 200


class Interrupted(NetworkError):
    """A failure that may pass: a broken connection, a server error, a signed address that has
    expired. Worth another attempt; where it stays, it is the NetworkError that the user sees."""


def chunks(response: Response, *, what: str, whole: bool = False) -> Iterator[bytes]:
    """The body as it was sent, no content coding undone. The caller closes the response.

    Args:
        whole: It is no blob, and has to be here in time.

    Raises:
        Interrupted: The connection broke, fell silent before the end, or a blob comes slower than
            anybody would wait for.
        NetworkError: It takes too long.
    """
    if not whole and not response.allowance.counted:
        yield from _filled(response, what)
        return
    while True:
        chunk = _piece(response, CHUNK, what)
        response.allowance.check(whole=whole)
        if not chunk:
            return
        yield chunk


def _filled(response: Response, what: str) -> Iterator[bytes]:
    """What comes of a blob, in pieces that are worth their handling, but for the last one before
    the end, or before a failure. Only waiting is counted: who consumes them may take any time."""
    while True:
        pieces: list[bytes] = []
        size = 0
        slow = response.allowance.slow()
        try:
            while size < _ENOUGH and (piece := _piece(response, CHUNK - size, what)):
                pieces.append(piece)
                size += len(piece)
                if slow(size):
                    said = f"fewer than {SLOWEST} bytes a second"
                    raise Interrupted(f"{what}: {shown(response.url)}: {said}")
        except Interrupted:
            if pieces:  # it goes on from there
                yield b"".join(pieces)
            raise
        if not pieces:
            return
        yield b"".join(pieces)


def _piece(response: Response, size: int, what: str) -> bytes:
    """What is there, at most ``size`` bytes; none at the end."""
    try:
        piece: bytes = response.raw.read1(size, decode_content=False)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Interrupted(f"{what}: {shown(response.url)}: {reason(error)}") from None
    return piece


def check_announced(response: Response, *, limit: int, what: str) -> None:
    """Refuse a body whose length is said to be over the limit: what is cut off would be asked for
    again, as if the network had failed.

    Raises:
        IntegrityError: It is.
    """
    length = response.headers.get("Content-Length", "")
    if length.isascii() and length.isdecimal() and (len(length) > 18 or int(length) > limit):
        raise IntegrityError(
            f"{what}: {shown(response.url)} sends {length[:40]} bytes, more than the"
            f" {limit} bytes that are allowed"
        )


def drain(response: Response) -> bytes:
    """The first bytes of a body that only explains; the connection is kept where it ends soon."""
    data = bytearray()
    with response:
        try:
            for chunk in chunks(response, what="", whole=True):
                data += chunk
                if len(data) > _ERROR_BODY_LIMIT:
                    break
        except NetworkError:  # the status has said enough
            pass
    return bytes(data[:_ERROR_BODY_LIMIT])


def refusal(request: Request, response: Response, body: bytes) -> BuilderError:
    """The error for an answer that is not among the expected ones."""
    status = response.status_code
    said = answered(response, body)
    message = f"{request.what}: {said}"
    moved = origin(response.url) != origin(request.url)
    if status == 429:
        return RateLimitError(message, hint="wait, or log in: registries allow more to known users")
    if status >= 500 or (moved and status in (401, 403)):
        return Interrupted(message)
    if status in (401, 403):
        return AuthError(message)
    if status in (404, 410):
        if request.push:
            return NetworkError(
                message, hint="create the repository first, where registries ask it"
            )
        return GoneError(message, hint="it was deleted upstream, or never was there")
    if 300 <= status < 400:
        return NetworkError(f"{message}, which cannot be followed")
    return NetworkError(message)


def log_mirror(error: BuilderError) -> None:
    """Say that a mirror is left for the next source; a login that fails should be mended."""
    level = logging.WARNING if isinstance(error, AuthError) else logging.INFO
    _log.log(level, "going on without a mirror: %s", error.message)


def with_earlier(error: BuilderError, earlier: Sequence[BuilderError]) -> None:
    """Add to ``error``, the origin's, what the mirrors before it said."""
    said = [f"before it, {each.message}" for each in earlier]
    error.hint = "; ".join(([error.hint] if error.hint else []) + said) or None


def answered(response: Response, body: bytes) -> str:
    """``HOST answered 404 Not Found: MANIFEST_UNKNOWN: manifest unknown``."""
    try:
        phrase = f" {HTTPStatus(response.status_code).phrase}"
    except ValueError:
        phrase = ""
    detail = _explanation(body)
    server = shown(response.url).partition("://")[2].partition("/")[0]
    return f"{server} answered {response.status_code}{phrase}" + (f": {detail}" if detail else "")


def error_code(body: bytes) -> str:
    """The code of the first error of a body (distribution-spec, "Error Codes"), empty where there
    is none."""
    code = _first_error(body).get("code")
    return code if isinstance(code, str) else ""


def _first_error(body: bytes) -> dict[str, Any]:
    try:
        document = canonical.decode(body, at="error", limit=_ERROR_BODY_LIMIT)
    except IntegrityError:
        return {}
    errors = document.get("errors") if isinstance(document, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else document
    return first if isinstance(first, dict) else {}


def _explanation(body: bytes) -> str:
    """The first error of a body in the form of distribution-spec, "Error Codes", or in one of
    those that token services use; empty where there is none."""
    first = _first_error(body)
    keys = ("code", "error", "message", "error_description", "details")
    texts = [first[key] for key in keys if isinstance(first.get(key), str) and first[key]]
    line = "".join(c if c.isprintable() else " " for c in ": ".join(texts))
    return line if len(line) <= _LINE_LIMIT else f"{line[:_LINE_LIMIT]}..."


def reason(error: BaseException) -> str:
    """Why a connection failed, in a few words. The libraries' own texts hold whole addresses."""
    chain = list(_chain(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, socket.gaierror):
            return "its name does not resolve"
        if isinstance(cause, urllib3.exceptions.IncompleteRead):
            return f"the connection ended {cause.expected} bytes too early"
    for cause in chain:
        if isinstance(cause, ssl.SSLError) and cause.reason:
            return f"TLS failed: {cause.reason.replace('_', ' ').lower()}"
        if isinstance(cause, OSError) and isinstance(cause.strerror, str):
            return cause.strerror.lower()
    # Last, because urllib3 counts a refused connection among the time-outs.
    if any(isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError) for cause in chain):
        return "no answer in time"
    return "the connection broke"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending: list[Any] = [error]
    while pending:
        cause = pending.pop(0)
        if isinstance(cause, BaseException) and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            pending += [getattr(cause, "reason", None), cause.__cause__, cause.__context__]
            pending += cause.args
