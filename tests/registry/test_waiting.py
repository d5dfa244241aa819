"""429, 5xx and silence: what is waited for, and what is not (case 14)."""

import io
import json
import threading
import time

import pytest
import urllib3

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.adapters.registry.connections import Response
from builder.adapters.registry.failures import drain
from builder.adapters.registry.patience import Patience
from builder.errors import GoneError, NetworkError, RateLimitError
from builder.oci import OCI_MANIFEST
from builder.reference import Reference
from tests.registry.conftest import Clock, MakeClient
from tests.registry.images import tiny_image
from tests.standin.registry import Reply, StandIn

IMAGE = tiny_image()
RAW = IMAGE.manifest.raw
DIGEST = IMAGE.manifest.digest


def tag(server: StandIn, name: str = "t") -> Reference:
    return Reference.parse(f"{server.host}/team/app:{name}")


@pytest.fixture(autouse=True)
def _one_image(registry: StandIn) -> None:
    registry.add_manifest("team/app", RAW, media_type=OCI_MANIFEST, tag="t")


def test_retry_after_in_seconds_is_honoured(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    busy = Reply(status=429, headers={"Retry-After": "2"})
    registry.on("HEAD", ".*", busy, busy)
    assert client.resolve(tag(registry)).digest == DIGEST
    assert clock.naps == [2.0, 2.0]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_as_a_date_is_read_against_the_servers_own_clock(
    client: RegistryClient, registry: StandIn, clock: Clock, status: int
) -> None:
    def busy(call: object) -> Reply:
        return Reply(
            status=status,
            headers={
                "Date": "Fri, 01 May 2026 10:00:00 GMT",
                "Retry-After": "Fri, 01 May 2026 10:00:07 GMT",
            },
        )

    registry.on("HEAD", ".*", busy)
    assert client.resolve(tag(registry)).digest == DIGEST
    assert clock.naps == [7.0]


def test_429_for_ever_ends_as_a_rate_limit(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    body = b'{"errors":[{"code":"TOOMANYREQUESTS","message":"pull rate limit reached"}]}'
    registry.on("GET", ".*", Reply(status=429, body=body), forever=True)
    with pytest.raises(RateLimitError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} answered 429 Too Many Requests: TOOMANYREQUESTS:"
        " pull rate limit reached"
    )
    assert caught.value.hint == "wait, or log in: registries allow more to known users"
    assert clock.naps == [0.5, 1.0, 2.0]
    assert len(registry.calls) == 4


def test_an_hour_is_not_waited_for(client: RegistryClient, registry: StandIn, clock: Clock) -> None:
    registry.on("GET", ".*", Reply(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(RateLimitError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} answered 429 Too Many Requests; it wants a wait of"
        " 3600 s, over the limit of 60 s for one request"
    )
    assert (clock.naps, len(registry.calls)) == ([], 1)


def test_the_waits_of_one_request_are_limited_together(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    busy = Reply(status=429, headers={"Retry-After": "40"})
    registry.on("GET", ".*", busy, forever=True)
    with pytest.raises(RateLimitError):
        client.manifest(tag(registry))
    assert clock.naps == [40.0]


def test_a_server_error_is_asked_about_again_and_then_stands(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    registry.on("GET", ".*", Reply(status=502), forever=True)
    with pytest.raises(NetworkError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (f"{tag(registry)}: {registry.host} answered 502 Bad Gateway")
    assert caught.value.exit_status == 8
    assert clock.naps == [0.5, 1.0, 2.0]


def test_a_refusal_is_not_asked_about_again(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    registry.on("GET", ".*", Reply(status=400, body=b'{"errors":[{"code":"X\\n\\u001b[2J"}]}'))
    with pytest.raises(NetworkError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} answered 400 Bad Request: X  [2J"
    )
    assert (clock.naps, len(registry.calls)) == ([], 1)


def test_a_server_that_is_not_there_is_a_network_error(
    client: RegistryClient, clock: Clock
) -> None:
    with pytest.raises(NetworkError) as caught:
        client.resolve(Reference.parse("127.0.0.1:1/a:t"))
    assert caught.value.message == (
        "127.0.0.1:1/a:t: http://127.0.0.1:1/v2/a/manifests/t: connection refused"
    )
    assert not isinstance(caught.value, GoneError)
    assert clock.naps == [0.5, 1.0, 2.0]


def test_tls_that_fails_is_not_tried_again(
    make_client: MakeClient, registry: StandIn, clock: Clock
) -> None:
    client = make_client(hosts={registry.host: HostConfiguration(plain_http=False)})
    with pytest.raises(NetworkError) as caught:
        client.resolve(tag(registry))
    assert caught.value.message.startswith(
        f"{tag(registry)}: https://{registry.host}/v2/team/app/manifests/t: TLS failed: "
    )
    assert clock.naps == []


def test_a_silent_server_is_a_time_out(make_client: MakeClient, registry: StandIn) -> None:
    release = threading.Event()

    def silent(call: object) -> Reply | None:
        release.wait(5)
        return None

    registry.on("HEAD", ".*", silent)
    host = HostConfiguration(read_timeout=0.05)
    client = make_client(hosts={registry.host: host}, attempts=1)
    try:
        with pytest.raises(NetworkError) as caught:
            client.resolve(tag(registry))
    finally:
        release.set()
    assert caught.value.message == (
        f"{tag(registry)}: http://{registry.host}/v2/team/app/manifests/t: no answer in time"
    )


def test_an_explanation_without_end_is_not_read_to_its_end() -> None:
    class Endless(io.BufferedIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def read(self, size: int | None = -1, /) -> bytes:
            self.given += size or 0
            assert self.given < 4 << 20
            return bytes(size or 0)

        read1 = read

    body = Endless()
    raw = urllib3.HTTPResponse(body=body, status=500, preload_content=False)
    allowance = Patience(time.monotonic, total=None).begin("r.example", seconds=60, at="it")
    assert len(drain(Response(raw, "http://r.example/v2/", allowance))) == 64 << 10
    assert body.closed


def test_an_explanation_is_one_short_line(client: RegistryClient, registry: StandIn) -> None:
    said = json.dumps({"errors": [{"code": "X", "message": "\x1b[31m" + "long " * 100}]})
    registry.on("GET", ".*", Reply(status=400, body=said.encode()))
    with pytest.raises(NetworkError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} answered 400 Bad Request: X:  [31m"
        + ("long " * 100)[:192]
        + "..."
    )
