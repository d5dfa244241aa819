"""One upload under way at a registry (distribution-spec v1.1, "Pushing a blob in chunks").

Every ``Location`` is a reference relative to the request it answers, and each replaces the one
before. A chunk that fails goes on where the registry says that it stands.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode, urlsplit

from builder.adapters.registry.connections import Response
from builder.adapters.registry.failures import Interrupted, drain
from builder.adapters.registry.request import Request, follow, shown
from builder.adapters.registry.transport import Transport
from builder.digest import Digest
from builder.errors import NetworkError

_log = logging.getLogger(__name__)

_CHUNK_LIMIT = 256 << 20
"""The largest least chunk that we hold in memory for a registry."""
_RECEIVED = re.compile(r"(?:bytes=)?0-(\d{1,18})")
_BINARY = {"Content-Type": "application/octet-stream"}


class UploadSession:
    """An upload that was started. Of no use after ``finish``, ``cancel`` or an error.

    Args:
        transport: Sends the requests.
        template: Whom they are about; its method and address are not used.
        location: Where the registry wants the first of them.
    """

    def __init__(self, transport: Transport, template: Request, location: str) -> None:
        self._transport = transport
        self._template = template
        self._location = location
        self._size = 0

    def least_chunk(self, response: Response) -> int:
        """``OCI-Chunk-Min-Length`` of the answer that started the upload.

        Raises:
            NetworkError: It is more than we are willing to hold in memory.
        """
        text = response.headers.get("OCI-Chunk-Min-Length", "")
        least = int(text[:18]) if text.isascii() and text.isdigit() else 0
        if least > _CHUNK_LIMIT:
            raise NetworkError(
                f"{self._template.what}: the registry wants chunks of at least {least} bytes, the"
                f" limit is {_CHUNK_LIMIT}"
            )
        return least

    def append(self, chunk: bytes) -> None:
        """Send the next chunk, in as many pieces as it takes.

        Raises:
            Interrupted: The upload is lost, or does not get on within the attempts.
        """
        start, stop = self._size, self._size + len(chunk)
        for attempt in range(1, self._transport.configuration.attempts + 1):
            response = self._patch(chunk[start - self._size :], start, attempt=attempt)
            self._check_open(response)
            self._move(response)
            taken = response.status_code == 202
            start = _received(response.headers, otherwise=stop if taken else self._size)
            if start == stop:
                self._size = stop
                return
            if not self._size <= start < stop:
                break
            _log.debug("%s: the registry has %d, not %d", self._template.what, start, stop)
        raise Interrupted(
            f"{self._template.what}: {shown(self._location)} has {start} bytes of the upload,"
            f" wanted {stop}"
        )

    def finish(self, digest: Digest, body: bytes) -> Response:
        """Close the upload with the last (or only) bytes; the answer's body is read.

        Raises:
            Interrupted: The upload is lost, or the answer is.
        """
        query = urlencode({"digest": str(digest)})
        response = self._send(
            "PUT",
            f"{self._location}{'&' if urlsplit(self._location).query else '?'}{query}",
            expected={201, 404},
            headers=_BINARY,
            body=body,
        )
        if response.status_code == 404:
            raise self._lost(response)
        return response

    def cancel(self) -> None:
        """End an upload that nobody will finish. The registry's own expiry is the fallback."""
        try:
            self._send("DELETE", self._location, expected={200, 202, 204, 404, 405})
        except NetworkError as error:
            _log.debug("left to expire: %s", error.message)

    def _patch(self, piece: bytes, start: int, *, attempt: int) -> Response:
        """Send a piece; where that fails, ask where the upload stands."""
        try:
            response = self._send(
                "PATCH",
                self._location,
                expected={202, 404, 416},
                headers=_BINARY | {"Content-Range": f"{start}-{start + len(piece) - 1}"},
                body=piece,
            )
        except Interrupted:
            self._transport.pause(attempt)
            return self._status()
        # 416: out of order (distribution-spec, "Pushing a blob in chunks").
        return self._status() if response.status_code == 416 else response

    def _status(self) -> Response:
        return self._send("GET", self._location, expected={200, 204, 404, 405}, resend=True)

    def _check_open(self, response: Response) -> None:
        if response.status_code not in (202, 204):
            raise self._lost(response)

    def _lost(self, response: Response) -> Interrupted:
        return Interrupted(
            f"{self._template.what}: {shown(response.url)}: the registry has lost the upload"
        )

    def _move(self, response: Response) -> None:
        if "Location" in response.headers:
            self._location = follow(
                response.url, response.headers["Location"], what=self._template.what
            )

    def _send(
        self,
        method: str,
        url: str,
        *,
        expected: set[int],
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        resend: bool = False,
    ) -> Response:
        response = self._transport.send(
            replace(
                self._template,
                method=method,
                url=url,
                headers=headers or {},
                body=body,
                expected=frozenset(expected),
                resend=resend,
            )
        )
        drain(response)
        return response


def _received(headers: Mapping[str, str], *, otherwise: int) -> int:
    """How many bytes the registry has, by its ``Range`` header.

    ``0-0`` is what distribution says of an upload without a byte; that it also means one byte is
    caught by the digest at the end.
    """
    found = _RECEIVED.fullmatch(headers.get("Range", "").strip())
    if not found:
        return otherwise
    return 0 if found[1] == "0" else int(found[1]) + 1
