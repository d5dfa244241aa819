"""Blobs on their way out: asked for first, mounted where possible, sent whole or in chunks.

Source: distribution-spec v1.1, "Pushing blobs". An upload that is lost starts over, where the
content can be rewound; ``session`` holds what happens within one.
"""

import logging
from typing import BinaryIO
from urllib.parse import urlencode

from builder.adapters.registry.configuration import Endpoint
from builder.adapters.registry.connections import Response
from builder.adapters.registry.failures import Interrupted, drain
from builder.adapters.registry.request import Request, follow
from builder.adapters.registry.session import UploadSession
from builder.adapters.registry.transport import Transport
from builder.digest import Hasher
from builder.errors import AuthError, IntegrityError
from builder.oci import Descriptor
from builder.value import value

_log = logging.getLogger(__name__)

CHUNK_SIZE = 8 << 20
"""Blobs up to this size go in one PUT, larger ones in pieces of it: memory per upload."""


@value
class Upload:
    """One blob for one repository.

    ``repository`` is as references name it, without the endpoint's prefix; ``what`` is what
    messages call the blob.
    """

    transport: Transport
    endpoint: Endpoint
    repository: str
    descriptor: Descriptor
    what: str

    def exists(self, *, push: bool) -> bool:
        """Whether the repository holds the blob. ``push`` asks for the rights of a push at once,
        which saves a second token where one follows.

        Raises:
            IntegrityError: It holds something else under that digest.
        """
        # Storage that a HEAD is redirected to answers a GET of one byte (see transport): 206, or
        # 416 for an empty blob.
        response = self._send(
            "HEAD", f"blobs/{self.descriptor.digest}", expected={200, 206, 404, 416}, push=push
        )
        drain(response)
        if response.status_code == 404:
            return False
        self._check_digest(response)
        size = response.headers.get("Content-Length", "")
        # Some servers give HEAD a length of 0: that says nothing about the blob.
        if response.status_code == 200 and size not in ("", "0", str(self.descriptor.size)):
            raise IntegrityError(
                f"{self.what}: expected {self.descriptor.size} bytes, the registry holds {size}"
            )
        return True

    def mount(self, source: str) -> bool:
        """Try a mount from another repository of the registry; only 201 means that it happened
        (distribution-spec, "Mounting a blob from another repository")."""
        query = urlencode({"mount": str(self.descriptor.digest), "from": source})
        try:
            # Registries differ in how they say that the source is not readable, or not there.
            response = self._send(
                "POST",
                f"blobs/uploads/?{query}",
                expected={201, 202, 400, 404, 405},
                source=source,
            )
        except AuthError as error:
            _log.debug("not mounted: %s", error.message)
            return False
        drain(response)
        if response.status_code == 201:
            self._check_digest(response)
            return True
        location = response.headers.get("Location")
        if response.status_code == 202 and location:
            self._session(follow(response.url, location, what=self.what)).cancel()
        return False

    def run(self, content: BinaryIO, *, chunk_size: int) -> bool:
        """Send the blob, unless the repository holds it; returns whether it was sent.

        Raises:
            IntegrityError: ``content`` is not what the descriptor says, or the registry stored
                something else; nothing of ours is left under the digest.
        """
        if self.exists(push=True):
            _log.debug("%s is there already", self.what)
            return False
        start = content.tell() if content.seekable() else None
        attempts = self.transport.configuration.attempts
        for attempt in range(1, attempts + 1):
            try:
                if self.descriptor.size <= chunk_size:
                    self._send_whole(content)
                else:
                    self._send_chunks(content, chunk_size=chunk_size)
                return True
            except Interrupted as error:
                if self.exists(push=True):  # it was the answer that got lost
                    return True
                if attempt == attempts or start is None:
                    raise
                _log.debug("starting over: %s", error.message)
            self.transport.pause(attempt)
            content.seek(start)
        raise RuntimeError("the last attempt returns or raises")

    def _send_whole(self, content: BinaryIO) -> None:
        body = _take(content, self.descriptor.size)
        self._check_content(content, Hasher([body]))
        session, _ = self._start()
        self._check_digest(session.finish(self.descriptor.digest, body))

    def _send_chunks(self, content: BinaryIO, *, chunk_size: int) -> None:
        session, least = self._start()
        hasher = Hasher()
        piece = max(chunk_size, least)
        while True:
            try:
                chunk = _take(content, min(piece, self.descriptor.size - hasher.size))
                if not chunk:
                    self._check_content(content, hasher)
            except Exception:  # of the content, which may be a stream of another registry
                session.cancel()
                raise
            if not chunk:
                break
            session.append(chunk)
            hasher.update(chunk)
        self._check_digest(session.finish(self.descriptor.digest, b""))

    def _start(self) -> tuple[UploadSession, int]:
        """A session, and the least chunk that the registry takes."""
        response = self._send("POST", "blobs/uploads/", expected={202})
        drain(response)
        location = follow(response.url, response.headers.get("Location"), what=self.what)
        session = self._session(location)
        return session, session.least_chunk(response)

    def _session(self, location: str) -> UploadSession:
        return UploadSession(self.transport, self._request("", expected=set()), location)

    def _check_content(self, content: BinaryIO, hasher: Hasher) -> None:
        wanted = self.descriptor
        if (got := hasher.digest()) != wanted.digest or hasher.size != wanted.size:
            raise IntegrityError(
                f"{self.what}: the content to push is not what its descriptor says: expected"
                f" {wanted.digest} ({wanted.size} bytes), got {got} ({hasher.size} bytes)"
            )
        if content.read(1):
            raise IntegrityError(
                f"{self.what}: the content to push goes on after the {wanted.size} bytes of its"
                " descriptor"
            )

    def _check_digest(self, response: Response) -> None:
        """Compare what the registry says it holds (distribution-spec: the header is optional)."""
        header = response.headers.get("Docker-Content-Digest")
        if header and header != str(self.descriptor.digest):
            raise IntegrityError(
                f"{self.what}: expected {self.descriptor.digest}, the registry answers with"
                f" {header!r}"
            )

    def _send(
        self,
        method: str,
        rest: str,
        *,
        expected: set[int],
        push: bool = True,
        source: str | None = None,
    ) -> Response:
        request = self._request(rest, expected=expected, method=method, push=push, source=source)
        return self.transport.send(request)

    def _request(
        self,
        rest: str,
        *,
        expected: set[int],
        method: str = "",
        push: bool = True,
        source: str | None = None,
    ) -> Request:
        return Request(
            what=self.what,
            method=method,
            url=self.endpoint.url(self.repository, rest),
            endpoint=self.endpoint,
            repository=self.endpoint.repository(self.repository),
            push=push,
            source=source,
            expected=frozenset(expected),
        )


def _take(content: BinaryIO, count: int) -> bytes:
    """``count`` bytes, fewer only at the end of ``content``."""
    data = content.read(count)
    if len(data) == count or not data:
        return data
    parts = bytearray(data)
    while len(parts) < count and (data := content.read(count - len(parts))):
        parts += data
    return bytes(parts)
