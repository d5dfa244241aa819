"""Manifests on their way out (distribution-spec v1.1, "Pushing Manifests")."""

import logging

from builder.adapters.registry.configuration import Endpoint
from builder.adapters.registry.failures import drain, error_code, refusal
from builder.adapters.registry.manifests import check_header
from builder.adapters.registry.request import Request
from builder.adapters.registry.transport import Transport
from builder.errors import IntegrityError
from builder.oci import Index, Manifest
from builder.reference import Reference

_log = logging.getLogger(__name__)


def put_manifest(
    transport: Transport, endpoint: Endpoint, target: Reference, manifest: Manifest | Index
) -> bool:
    """Put a manifest; returns whether the registry says that it lists it for its subject.

    The digest is that of the bytes. A registry that denies it has read another file while somebody
    wrote it (distribution 2.8: the links of a blob that is being pushed a second time), so that it
    is asked again.

    Raises:
        IntegrityError: The target names another digest, or the registry stored another.
        AuthError, RateLimitError, NetworkError, OfflineError.
    """
    digest = manifest.digest
    if target.digest is not None and target.digest != digest:
        raise IntegrityError(f"{target}: expected {target.digest}, the manifest is {digest}")
    request = Request(
        what=str(target),
        method="PUT",
        url=endpoint.url(target.repository, f"manifests/{target.tag or digest}"),
        endpoint=endpoint,
        repository=endpoint.repository(target.repository),
        push=True,
        headers={"Content-Type": manifest.media_type},
        body=manifest.raw,
        expected=frozenset({201, 400}),
    )
    attempt = 0
    while True:
        attempt += 1
        response = transport.send(request)
        body = drain(response)
        if response.status_code == 201:
            check_header(response, digest, what=str(target))
            return "OCI-Subject" in response.headers
        if error_code(body) != "DIGEST_INVALID" or attempt >= transport.configuration.attempts:
            raise refusal(request, response, body)
        _log.debug("%s: the registry denies its digest, asking again", target)
        transport.pause(attempt)
