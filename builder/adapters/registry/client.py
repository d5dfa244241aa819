"""The port: :class:`builder.ports.Registry` over the distribution API."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, Self, TypeVar

from builder.adapters.registry import download, referrers
from builder.adapters.registry.configuration import Endpoint, RegistryConfiguration
from builder.adapters.registry.failures import drain, log_mirror, with_earlier
from builder.adapters.registry.manifests import (
    ACCEPT,
    check_header,
    content_type,
    describe,
    descriptor_of,
)
from builder.adapters.registry.put import put_manifest
from builder.adapters.registry.request import Request
from builder.adapters.registry.tags import all_tags
from builder.adapters.registry.transport import Transport
from builder.adapters.registry.upload import CHUNK_SIZE, Upload
from builder.digest import Digest
from builder.errors import (
    BuilderError,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    UsageError,
)
from builder.oci import MANIFEST_LIMIT, Descriptor, Index, Manifest, parse_document
from builder.reference import Reference

_log = logging.getLogger(__name__)

_HEAD_REFUSED = frozenset({400, 404, 405, 406, 415, 501})

_T = TypeVar("_T")


class RegistryClient:
    """A registry client for one run of the program; may be shared by threads.

    Where a reference has a digest, the digest decides and its tag is not looked at: whoever wants
    to know whether a tag has moved resolves the tag alone. Manifests are kept in memory by
    repository and digest, so that each is fetched once.

    Args:
        configuration: Hosts, mirrors, credentials, limits.
        sleep, clock, now: Time, see :class:`Transport`.
        chunk_size: Blobs above this size are pushed in pieces of it.
    """

    def __init__(
        self,
        configuration: RegistryConfiguration,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        chunk_size: int = CHUNK_SIZE,
    ) -> None:
        self._configuration = configuration
        self._transport = Transport(configuration, sleep=sleep, clock=clock, now=now)
        self._chunk_size = chunk_size
        self._manifests: dict[tuple[str, Digest], Manifest | Index] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections. The client may be used again."""
        self._transport.close()

    def resolve(self, reference: Reference) -> Descriptor:
        """See the port. A tag's digest is the registry's word, until the manifest is fetched."""
        return self._ask(reference, lambda endpoint: self._head(endpoint, reference))

    def tags(self, reference: Reference) -> tuple[str, ...]:
        """See the port."""
        endpoint = self._configuration.origin(reference.registry)
        return all_tags(self._transport, endpoint, reference)

    def tagged(self, reference: Reference) -> Manifest | Index | None:
        """See the port."""
        if reference.tag is None or reference.digest is not None:
            raise ValueError(f"{reference} is not a tag")
        return self._get_if_there(reference)

    def referrers(
        self, reference: Reference, subject: Digest, *, artifact_type: str
    ) -> tuple[Descriptor, ...]:
        """See the port."""
        return referrers.listed(
            self._transport,
            self._configuration.origin(reference.registry),
            reference.at(subject),
            artifact_type=artifact_type,
            fallback=self._get_if_there,
        )

    def manifest(self, reference: Reference) -> Manifest | Index:
        """See the port."""
        if reference.digest is not None:
            kept = self._manifests.get((reference.name, reference.digest))
            if kept is not None:
                return kept
        return self._ask(reference, lambda endpoint: self._get(endpoint, reference))

    def blob(self, reference: Reference, descriptor: Descriptor) -> Iterator[bytes]:
        """See the port. Nothing is sent before the first chunk is asked for."""
        return download.stream(
            self._transport,
            [
                self._blob_request(endpoint, reference, descriptor)
                for endpoint in self._configuration.readers(reference.registry, by_digest=True)
            ],
            descriptor,
        )

    def blob_range(
        self, reference: Reference, descriptor: Descriptor, *, start: int, length: int
    ) -> bytes:
        """See the port.

        Raises:
            ValueError: The range leaves the blob.
        """
        if start < 0 or length < 0 or start + length > descriptor.size:
            raise ValueError(f"bytes {start}+{length} are not in a blob of {descriptor.size}")
        if length == 0:
            return b""
        return self._ask(
            reference.at(descriptor.digest),
            lambda endpoint: download.read_range(
                self._transport,
                self._blob_request(endpoint, reference, descriptor),
                descriptor,
                start=start,
                length=length,
            ),
        )

    def has_blob(self, reference: Reference, descriptor: Descriptor) -> bool:
        """See the port. The origin is asked, never a mirror."""
        return self._upload(reference, descriptor).exists(push=False)

    def mount(self, target: Reference, descriptor: Descriptor, *, source: Reference) -> bool:
        """See the port. Between two servers there is nothing to ask; two names of one registry (see
        ``HostConfiguration.location``) are one."""
        origin = self._configuration.origin(source.registry)
        if self._configuration.origin(target.registry).host != origin.host:
            return False
        return self._upload(target, descriptor).mount(origin.repository(source.repository))

    def push_blob(self, target: Reference, descriptor: Descriptor, content: BinaryIO) -> bool:
        """See the port. ``content`` is read from where it stands to its end.

        Raises:
            IntegrityError: ``content`` is not what ``descriptor`` says; the upload is cancelled.
        """
        return self._upload(target, descriptor).run(content, chunk_size=self._chunk_size)

    def push_manifest(self, target: Reference, manifest: Manifest | Index) -> bool:
        """See the port. Its blobs must be there: registries refuse it otherwise.

        Raises:
            IntegrityError: The target names another digest, or the registry stored another.
        """
        endpoint = self._configuration.origin(target.registry)
        return put_manifest(self._transport, endpoint, target, manifest)

    def _ask(self, reference: Reference, question: Callable[[Endpoint], _T]) -> _T:
        """The answer of the first mirror that has one, else the origin's answer or error."""
        by_digest = reference.digest is not None
        *mirrors, origin = self._configuration.readers(reference.registry, by_digest=by_digest)
        earlier: list[BuilderError] = []
        for mirror in mirrors:
            try:
                return question(mirror)
            except OfflineError:
                raise
            except (NetworkError, GoneError) as error:
                log_mirror(error)
                earlier.append(error)
        try:
            return question(origin)
        except (NetworkError, GoneError) as error:
            with_earlier(error, earlier)
            raise

    def _head(self, endpoint: Endpoint, reference: Reference) -> Descriptor:
        response = self._transport.send(
            self._manifest_request(endpoint, reference, "HEAD", {200, 206} | _HEAD_REFUSED)
        )
        drain(response)
        described = describe(response, what=str(reference))
        if described is None:
            _log.debug("%s: HEAD does not say enough, asking with GET", reference)
            return descriptor_of(self._get(endpoint, reference))
        if reference.digest is not None and described.digest != reference.digest:
            raise IntegrityError(
                f"{reference}: expected {reference.digest}, {endpoint.host} answers with"
                f" {described.digest}"
            )
        return described

    def _get_if_there(self, reference: Reference) -> Manifest | Index | None:
        """What the registry itself has, if anything."""
        try:
            return self._get(self._configuration.origin(reference.registry), reference)
        except GoneError:
            return None

    def _get(self, endpoint: Endpoint, reference: Reference) -> Manifest | Index:
        what = str(reference)
        response, raw = self._transport.fetch(
            self._manifest_request(endpoint, reference, "GET", {200}), limit=MANIFEST_LIMIT
        )
        kind = content_type(response, what=what)
        coding = response.headers.get("Content-Encoding", "identity")
        if coding != "identity":
            raise IntegrityError(f"{what}: {endpoint.host} sends it {coding!r}-encoded, unasked")
        digest = Digest.of(raw) if reference.digest is None else reference.digest
        digest.check(raw, at=f"{what}: {endpoint.host}")
        check_header(response, digest, what=what)
        document = parse_document(raw, media_type=kind, at=what)
        self._manifests[reference.name, digest] = document
        return document

    def _manifest_request(
        self, endpoint: Endpoint, reference: Reference, method: str, expected: set[int]
    ) -> Request:
        name = reference.digest or reference.tag
        if name is None:
            raise UsageError(
                f"image reference: {str(reference)!r} has neither a tag nor a digest",
                hint="add :TAG or @sha256:...",
            )
        return Request(
            what=str(reference),
            method=method,
            url=endpoint.url(reference.repository, f"manifests/{name}"),
            endpoint=endpoint,
            repository=endpoint.repository(reference.repository),
            headers=ACCEPT,
            expected=frozenset(expected),
            attempts=1 if endpoint.mirror else None,
        )

    def _blob_request(
        self, endpoint: Endpoint, reference: Reference, descriptor: Descriptor
    ) -> Request:
        return Request(
            what=f"{reference.name}: blob {descriptor.digest}",
            method="GET",
            url=endpoint.url(reference.repository, f"blobs/{descriptor.digest}"),
            endpoint=endpoint,
            repository=endpoint.repository(reference.repository),
            attempts=1 if endpoint.mirror else None,
        )

    def _upload(self, target: Reference, descriptor: Descriptor) -> Upload:
        return Upload(
            transport=self._transport,
            endpoint=self._configuration.origin(target.registry),
            repository=target.repository,
            descriptor=descriptor,
            what=f"{target.name}: blob {descriptor.digest}",
        )
