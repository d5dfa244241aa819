"""All tags of a repository, page by page.

Source: distribution-spec v1.1, "Listing Tags"; RFC 8288 for ``Link``. Registries give fewer than
they are asked for, and say where the rest is.
"""

import logging

from builder import canonical
from builder.adapters.registry.configuration import Endpoint
from builder.adapters.registry.connections import Response
from builder.adapters.registry.request import Request, follow, origin, shown
from builder.adapters.registry.transport import Transport
from builder.errors import IntegrityError, NetworkError
from builder.reference import Reference, is_tag

_log = logging.getLogger(__name__)

PAGE = 1000
"""How many tags are asked for at a time."""
PAGES_LIMIT = 1000
TAGS_LIMIT = 200_000
_BODY_LIMIT = 32 << 20


def all_tags(transport: Transport, endpoint: Endpoint, reference: Reference) -> tuple[str, ...]:
    """The tags of ``reference``'s repository, sorted.

    Raises:
        GoneError: There is no such repository.
        IntegrityError: A page is no list of tags.
        NetworkError: The pages do not end, or lead to another server.
        AuthError, RateLimitError, OfflineError.
    """
    what = f"{reference.name}: tags"
    url: str | None = endpoint.url(reference.repository, f"tags/list?n={PAGE}")
    tags: set[str] = set()
    asked: set[str] = set()
    while url is not None:
        asked.add(url)
        request = Request(
            what=what,
            method="GET",
            url=url,
            endpoint=endpoint,
            repository=endpoint.repository(reference.repository),
            headers={"Accept": "application/json"},
        )
        response, body = transport.fetch(request, limit=_BODY_LIMIT)
        page = _page(body, at=f"{what}: {shown(response.url)}")
        url = next_page(response, endpoint=endpoint, what=what)
        known = len(tags)
        tags.update(page)
        _log.debug("%s: page %d has %d", what, len(asked), len(page))
        if url is not None:
            repeats = url in asked or (bool(page) and len(tags) == known)
            _check_progress(repeats, pages=len(asked), tags=len(tags), at=f"{what}: {shown(url)}")
    return tuple(sorted(tags))


def _check_progress(repeats: bool, *, pages: int, tags: int, at: str) -> None:
    hint = "the registry's list of tags is broken; name the tag"
    if repeats:
        raise NetworkError(f"{at}: page {pages} leads to what was there before", hint=hint)
    if pages >= PAGES_LIMIT or tags > TAGS_LIMIT:
        raise NetworkError(
            f"{at}: goes on after {pages} pages and {tags} tags, the limits are {PAGES_LIMIT} and"
            f" {TAGS_LIMIT}",
            hint=hint,
        )


def _page(body: bytes, *, at: str) -> list[str]:
    """The tags of one page; ``null`` is how some registries write none."""
    document = canonical.decode(body, at=at, limit=_BODY_LIMIT)
    if not isinstance(document, dict) or "tags" not in document:
        raise IntegrityError(f"{at}: expected an object with a list 'tags'")
    tags = document["tags"]
    if tags is None:
        return []
    if not isinstance(tags, list):
        raise IntegrityError(f"{at}: tags: expected a list, got {type(tags).__name__}")
    for tag in tags:
        if not isinstance(tag, str) or not is_tag(tag):
            raise IntegrityError(f"{at}: tags: {repr(tag)[:200]} is not a tag")
    return tags


def next_page(response: Response, *, endpoint: Endpoint, what: str) -> str | None:
    """Where the next page is; ``None`` behind the last one.

    Raises:
        NetworkError: It is said to be at another server.
    """
    found = response.next_pages
    if not found:
        return None
    target = follow(response.url, found[0], what=what)
    if origin(target) != origin(endpoint.url("x", "")):
        raise NetworkError(
            f"{what}: the next page is said to be at {shown(target)}, which is another server,"
            " refused",
            hint="a registry behind a proxy needs to be told its own name, or relative links",
        )
    return target
