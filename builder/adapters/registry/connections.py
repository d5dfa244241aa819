"""Connections to servers over ``urllib3``, and answers as they come in.

Proxies and certificate bundles of the environment hold as ``requests`` reads them; where there are
proxies it is asked itself. It is not loaded otherwise: that costs as much as a small push.
"""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from builder.adapters.registry.heads import watched
from builder.adapters.registry.http import urllib3
from builder.adapters.registry.patience import Allowance

_CONNECTIONS = 16


class Response:
    """An answer whose body is not read yet. Whoever got it closes it; what is left of the body then
    goes with its connection."""

    def __init__(self, raw: "urllib3.BaseHTTPResponse", url: str, allowance: Allowance) -> None:
        self.raw = raw
        self.url = url
        self.allowance = allowance
        self.status_code = raw.status
        self.headers: Mapping[str, str] = raw.headers
        """Names in any case."""

    @property
    def next_pages(self) -> tuple[str, ...]:
        """Where ``Link`` says that the next page is (RFC 8288), as written: once, if at all."""
        from requests.utils import parse_header_links  # noqa: PLC0415 - no build turns pages

        links = parse_header_links(self.headers.get("Link", ""))
        return tuple(item["url"] for item in links if "next" in item.get("rel", "").lower().split())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self.raw.close()
        self.raw.release_conn()


class Connections:
    """What is kept open between requests; shared by threads. No redirect is followed, no request
    sent twice, no cookie kept, no credentials added."""

    def __init__(self) -> None:
        self._managers: dict[tuple[str | None, str | None], urllib3.PoolManager] = {}

    def close(self) -> None:
        """Close the connections that are idle."""
        for manager in self._managers.values():
            # clear() alone leaves them to the end of their pool, which everybody holds who has an
            # error, by way of its response.
            pools = [manager.pools.get(key) for key in manager.pools.keys()]  # noqa: SIM118 - no iterator
            manager.clear()
            for pool in filter(None, pools):
                pool.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: "urllib3.Timeout",
        ca_file: str | None,
        direct: bool,
        allowance: Allowance,
    ) -> Response:
        """Send a request and wait for the head of its answer, for twice as long as for a byte.

        Args:
            method, url, headers, body: As they are sent.
            timeout: For the connection, and for each silence.
            ca_file: The certificates to trust, instead of those of the environment or the usual.
            direct: Whether no proxy is asked, whatever the environment says.
            allowance: The time that the answer may take.

        Raises:
            Overdue: As the cause of a time-out: the head came byte by byte.
            urllib3.exceptions.HTTPError, ValueError, OSError: As it happens.
        """
        proxy = None if direct else _proxy(url)
        bundle = (ca_file or _bundle()) if url.startswith("https:") else None
        manager = self._managers.get((proxy, bundle))
        if manager is None:
            manager = self._managers.setdefault((proxy, bundle), _manager(proxy, bundle))
        raw = manager.urlopen(
            method,
            url,
            headers=headers,
            body=body,
            timeout=timeout,
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        return Response(raw, url, allowance)


def _bundle() -> str:
    """The certificates that ``requests`` trusts."""
    named = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    if named:
        return named
    from certifi import where  # noqa: PLC0415 - a registry on this machine has no certificate

    return where()


def _proxy(url: str) -> str | None:
    """The proxy that the environment has for an address."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from requests import utils  # noqa: PLC0415 - see the module's docstring

    found = utils.select_proxy(url, utils.get_environ_proxies(url, no_proxy=None))
    if found is None:
        return None
    full: str = utils.prepend_scheme_if_needed(found, "http")  # type: ignore[no-untyped-call]  # its stubs say nothing of it
    return full


def _manager(proxy: str | None, bundle: str | None) -> "urllib3.PoolManager":
    trusted: dict[str, Any] = {}
    if bundle is not None:
        kind = "ca_cert_dir" if os.path.isdir(bundle) else "ca_certs"  # noqa: PTH112 - as the rest
        trusted = {"cert_reqs": "CERT_REQUIRED", kind: bundle}
    if proxy is None:
        return watched(urllib3.PoolManager(num_pools=_CONNECTIONS, maxsize=_CONNECTIONS, **trusted))
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 - as above

    adapter = HTTPAdapter(pool_connections=_CONNECTIONS, pool_maxsize=_CONNECTIONS)
    manager: urllib3.PoolManager = adapter.proxy_manager_for(proxy, **trusted)
    return watched(manager)
