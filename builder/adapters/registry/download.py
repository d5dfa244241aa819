"""Blobs on their way here: streamed, hashed, resumed where a connection broke.

Which server sent which part does not matter: one hash runs over all of it, and the end is only
reached when size and digest are those of the descriptor.
"""

import logging
import re
from collections.abc import Iterator, Sequence

from builder.adapters.registry.connections import Response
from builder.adapters.registry.failures import Interrupted, chunks, log_mirror, with_earlier
from builder.adapters.registry.request import Request, shown
from builder.adapters.registry.transport import Transport
from builder.digest import CHUNK, Hasher
from builder.errors import BuilderError, GoneError, IntegrityError, NetworkError, OfflineError
from builder.oci import Descriptor

_log = logging.getLogger(__name__)

DISCARD_LIMIT = 64 << 20
"""The most bytes that are read and dropped to reach a range, at a server that ignores ranges."""
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")
_ANSWERS = frozenset({200, 206, 416})


def stream(
    transport: Transport, sources: Sequence[Request], descriptor: Descriptor
) -> Iterator[bytes]:
    """Yield a blob from the first source that has it, going on with the next where one fails.

    Raises:
        IntegrityError: At the end, or as soon as it is certain, from whichever source.
        GoneError, AuthError, RateLimitError, NetworkError: What the last source said.
    """
    hasher = Hasher()
    earlier: list[BuilderError] = []
    for source in sources:
        try:
            yield from resumed(transport, source, descriptor, hasher)
            break
        except OfflineError:
            raise
        except (NetworkError, GoneError) as error:
            if source is sources[-1]:
                with_earlier(error, earlier)
                raise
            log_mirror(error)
            earlier.append(error)
    if (got := hasher.digest()) != descriptor.digest:
        raise IntegrityError(f"{sources[-1].what}: expected {descriptor.digest}, got {got}")


def resumed(
    transport: Transport, source: Request, descriptor: Descriptor, hasher: Hasher
) -> Iterator[bytes]:
    """Yield what ``hasher`` has not seen of a blob, and bring it to the size of the descriptor.
    Whether the digest is the right one is for the caller to look at."""
    attempts = source.attempts or transport.configuration.attempts
    fruitless = 0
    while True:
        start = hasher.size
        wanted = {"Range": f"bytes={start}-"} if start else {}
        response = transport.send(_ranged(source, wanted))
        failure = Interrupted(f"{source.what}: {shown(response.url)} sent less than announced")
        try:
            with response:
                for chunk in _from(response, descriptor, start=start, what=source.what):
                    hasher.update(chunk)
                    yield chunk
        except Interrupted as error:
            failure = error
        if hasher.size == descriptor.size:
            return
        # A long blob may break often; what must not go on for ever is breaking without progress.
        fruitless = 0 if hasher.size - start >= CHUNK else fruitless + 1
        if fruitless >= attempts:
            raise Interrupted(
                f"{failure.message}; {hasher.size} of {descriptor.size} bytes after"
                f" {fruitless} attempts"
            ) from failure
        _log.debug("resuming at %d of %d: %s", hasher.size, descriptor.size, failure.message)
        if fruitless:
            transport.pause(fruitless)


def _from(response: Response, descriptor: Descriptor, *, start: int, what: str) -> Iterator[bytes]:
    """The body from byte ``start`` of the blob on, never past the size of the descriptor."""
    position = _first_byte(response, descriptor, start=start, what=what)
    for chunk in chunks(response, what=what):
        position += len(chunk)
        if position > descriptor.size:
            raise IntegrityError(
                f"{what}: expected {descriptor.size} bytes, {shown(response.url)} sends more"
            )
        if position > start:
            yield chunk[max(0, len(chunk) - (position - start)) :]


def read_range(
    transport: Transport, source: Request, descriptor: Descriptor, *, start: int, length: int
) -> bytes:
    """``length`` bytes of a blob from ``start``, unverified.

    Raises:
        NetworkError: The server ignores ranges and the range is further than ``DISCARD_LIMIT``.
        IntegrityError: The blob is shorter than its descriptor says.
    """
    stop = start + length
    attempts = source.attempts or transport.configuration.attempts
    attempt = 0
    while True:
        attempt += 1
        request = _ranged(source, {"Range": f"bytes={start}-{stop - 1}"})
        data = bytearray()
        response = transport.send(request)
        failure = Interrupted(f"{source.what}: {shown(response.url)} sent less than announced")
        try:
            with response:
                if response.status_code == 200 and start > DISCARD_LIMIT:
                    raise NetworkError(
                        f"{source.what}: {shown(response.url)} ignores ranges, and {start} bytes"
                        f" stand before this one (limit {DISCARD_LIMIT})",
                        hint="fetch the blob as a whole",
                    )
                for chunk in _from(response, descriptor, start=start, what=source.what):
                    data += chunk
                    if len(data) >= length:
                        return bytes(data[:length])
        except Interrupted as error:
            failure = error
        if attempt >= attempts:
            raise failure
        transport.pause(attempt)


def _ranged(source: Request, headers: dict[str, str]) -> Request:
    return Request(
        what=source.what,
        method="GET",
        url=source.url,
        endpoint=source.endpoint,
        repository=source.repository,
        headers={**source.headers, **headers},
        expected=_ANSWERS,
        attempts=source.attempts,
    )


def _first_byte(response: Response, descriptor: Descriptor, *, start: int, what: str) -> int:
    """Which byte of the blob the body starts with: ``start``, or 0 where ranges are ignored."""
    at = f"{what}: {shown(response.url)}"
    kind = response.headers.get("Content-Type", "")
    if response.status_code == 206:
        text = response.headers.get("Content-Range", "")
        found = _CONTENT_RANGE.fullmatch(text)
        if not found or int(found[1]) != start or found[3] not in ("*", str(descriptor.size)):
            raise IntegrityError(
                f"{at}: expected bytes from {start} of {descriptor.size}, got Content-Range"
                f" {text!r}"
            )
        return start
    if response.status_code == 416:
        raise IntegrityError(
            f"{at}: expected {descriptor.size} bytes, but it has none from {start} on"
        )
    length = response.headers.get("Content-Length")
    if length is not None and length != str(descriptor.size):
        raise IntegrityError(
            f"{at}: expected {descriptor.size} bytes, got {length} of type {kind!r}",
            hint="a login page or a proxy may have answered in the registry's place"
            if kind.startswith("text/html")
            else None,
        )
    return 0
