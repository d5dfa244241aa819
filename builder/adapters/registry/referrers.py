"""What refers to a manifest: the registry's own list, or the index that stands in for it.

Source: distribution-spec v1.1, "Listing Referrers", "Unavailable Referrers API", "Referrers Tag
Schema".
"""

import logging
from collections.abc import Callable
from urllib.parse import urlencode

from builder.adapters.registry.configuration import Endpoint
from builder.adapters.registry.manifests import content_type
from builder.adapters.registry.request import Request, shown
from builder.adapters.registry.tags import next_page
from builder.adapters.registry.transport import Transport
from builder.errors import IntegrityError
from builder.oci import MANIFEST_LIMIT, OCI_INDEX, Descriptor, Index, Manifest
from builder.reference import Reference

_log = logging.getLogger(__name__)

PAGES_LIMIT = 50
LISTED_LIMIT = 1000
"""How many referrers a list may have, of whatever type."""
_HINT = "somebody attached them: delete what you do not know, and look at who may push there"
_UNKNOWN = frozenset({400, 404, 405, 406, 501})
"""What registries answer that do not know the question (as google/go-containerregistry, too, has
met them). Where it is the repository that does not exist, the tag does not, either."""

Fallback = Callable[[Reference], Manifest | Index | None]


def listed(
    transport: Transport,
    endpoint: Endpoint,
    subject: Reference,
    *,
    artifact_type: str,
    fallback: Fallback,
) -> tuple[Descriptor, ...]:
    """What refers to ``subject``, a reference with a digest.

    Raises:
        IntegrityError: An answer is no index, or the list is too long.
        NetworkError: The pages lead to another server, or round in a circle.
        AuthError, RateLimitError, OfflineError.
    """
    found = _asked(transport, endpoint, subject, artifact_type)
    if found is None:
        _log.debug("%s: no referrers API, reading the tag that stands in", subject.name)
        found = _stand_in(subject, fallback)
    return tuple(dict.fromkeys(found))


def _asked(
    transport: Transport, endpoint: Endpoint, subject: Reference, artifact_type: str
) -> list[Descriptor] | None:
    """All pages; ``None`` where the registry does not know the question."""
    what = f"{subject}: referrers"
    query = urlencode({"artifactType": artifact_type})
    url: str | None = endpoint.url(subject.repository, f"referrers/{subject.digest}?{query}")
    found: list[Descriptor] = []
    asked: set[str] = set()
    while url is not None:
        asked.add(url)
        request = Request(
            what=what,
            method="GET",
            url=url,
            endpoint=endpoint,
            repository=endpoint.repository(subject.repository),
            headers={"Accept": OCI_INDEX},
            expected=frozenset({200}) | (_UNKNOWN if len(asked) == 1 else frozenset()),
        )
        response, raw = transport.fetch(request, limit=MANIFEST_LIMIT)
        if response.status_code != 200:
            return None
        kind = content_type(response, what=what)
        at = f"{what}: {shown(response.url)}"
        found += Index.parse(raw, media_type=kind, at=at).manifests
        url = next_page(response, endpoint=endpoint, what=what)
        if url in asked:
            raise IntegrityError(f"{at}: page {len(asked)} leads to what was there before")
        _check(len(found), more=url is not None and len(asked) >= PAGES_LIMIT, at=at)
    return found


def _stand_in(subject: Reference, fallback: Fallback) -> list[Descriptor]:
    tag = Reference(
        registry=subject.registry,
        repository=subject.repository,
        tag=str(subject.digest).replace(":", "-"),
    )
    document = fallback(tag)
    if document is None:
        return []
    if not isinstance(document, Index):
        raise IntegrityError(
            f"{tag}: expected an index of what refers to the image, got {document.media_type}",
            hint="an image may have been pushed there by mistake: give it another tag",
        )
    _check(len(document.manifests), more=False, at=str(tag))
    return list(document.manifests)


def _check(count: int, *, more: bool, at: str) -> None:
    if count > LISTED_LIMIT or more:
        raise IntegrityError(
            f"{at}: {count} referrers{' and more pages' if more else ''}, the limits are"
            f" {LISTED_LIMIT} and {PAGES_LIMIT} pages",
            hint=_HINT,
        )
