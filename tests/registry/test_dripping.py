"""A server that sends a byte now and then: it is never silent, and must not hold anybody."""

from collections.abc import Callable
from itertools import count

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration, RegistryConfiguration
from builder.adapters.registry.patience import SLOWEST, Patience
from builder.digest import Digest
from builder.errors import AuthError, NetworkError
from builder.oci import OCI_MANIFEST, Descriptor
from builder.reference import Reference
from tests.registry.conftest import Clock, MakeClient
from tests.registry.images import tiny_image
from tests.standin.dripping import BODY, CHUNKED, FIELDS, HEAD, dripping
from tests.standin.registry import Call, Reply, StandIn

IMAGE = tiny_image()
SILENCE = 1.0
HINT = "it is overloaded, or something in between is: try again later"


def client_of(host: str, **settings: float) -> RegistryClient:
    """On the real clock: an answer may take 2 s."""
    hosts = {host: HostConfiguration(read_timeout=SILENCE)}
    return RegistryClient(RegistryConfiguration(hosts=hosts, **settings))  # type: ignore[arg-type]  # floats all


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(FIELDS, id="head"),
        pytest.param(BODY, id="body"),
        pytest.param(CHUNKED, id="chunked body"),
    ],
)
def test_an_answer_that_comes_byte_by_byte_ends_and_is_not_asked_for_again(
    parts: list[bytes],
) -> None:
    with dripping(parts) as server, client_of(server.host) as client:
        with pytest.raises(NetworkError) as caught:
            client.tags(Reference.parse(f"{server.host}/team/app"))
        assert caught.value.message == (
            f"{server.host}/team/app: tags: http://{server.host}/v2/team/app/tags/list: no whole"
            " answer within 2 s"
        )
        assert caught.value.hint == HINT
        assert len(server.asked) == 1


def test_a_manifest_is_an_answer_and_the_next_source_is_asked(registry: StandIn) -> None:
    manifest = IMAGE.manifest
    digest = registry.add_manifest("team/app", manifest.raw, media_type=OCI_MANIFEST, tag="t")
    with dripping(BODY) as mirror:
        hosts = {
            registry.host: HostConfiguration(mirrors=(mirror.host,)),
            mirror.host: HostConfiguration(read_timeout=SILENCE),
        }
        with RegistryClient(RegistryConfiguration(hosts=hosts)) as client:
            reference = Reference.parse(f"{registry.host}/team/app@{digest}")
            assert client.manifest(reference).raw == manifest.raw
        assert len(mirror.asked) == 1


def test_a_refusal_that_does_not_end_has_said_enough_by_its_status() -> None:
    refusal = [part.replace(b"200 OK", b"403 Forbidden") for part in BODY]
    with dripping(refusal) as server, client_of(server.host) as client:
        with pytest.raises(AuthError):
            client.tags(Reference.parse(f"{server.host}/team/app"))
        assert len(server.asked) == 1


@pytest.mark.parametrize("size", [SLOWEST * 20, SLOWEST // 2])
def test_a_blob_may_take_long_and_not_for_ever(size: int) -> None:
    """Each look at the clock is ten seconds after the one before: some twenty pieces are 200 s."""
    data = bytes(size * 20)
    descriptor = Descriptor(media_type=OCI_MANIFEST, digest=Digest.of(data), size=len(data))
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(data)
    parts = [head, *([bytes(size)] * 20)]
    seconds = count(0.0, 10.0)
    with dripping(parts, gap=0.02) as server:
        client = RegistryClient(
            RegistryConfiguration(attempts=2), clock=lambda: next(seconds), sleep=lambda _: None
        )
        blob = client.blob(Reference.parse(f"{server.host}/team/app"), descriptor)
        if size > SLOWEST:
            assert b"".join(blob) == data
            assert len(server.asked) == 1
        else:
            with client, pytest.raises(NetworkError) as caught:
                list(blob)
            assert "fewer than 1024 bytes a second; " in caught.value.message
            assert caught.value.message.endswith(" of 10240 bytes after 2 attempts")
            assert b"Range: bytes=" in server.asked[1]
            assert len(server.asked) == 2
        client.close()


def test_how_slow_a_blob_comes_is_looked_at_after_a_while() -> None:
    now = 5.0
    slow = Patience(lambda: now, total=None).begin("h", seconds=60.0, at="x").slow()
    now = 65.0
    assert not slow(0)
    now = 66.0
    assert slow(61 * SLOWEST - 1)
    assert not slow(61 * SLOWEST)


def test_a_blob_may_take_longer_than_what_is_read_whole() -> None:
    now = 5.0
    patience = Patience(lambda: now, total=100.0)
    allowance = patience.begin("h", seconds=60.0, at="x")
    now = 65.0
    allowance.check(whole=True)
    now = 105.0
    allowance.check(whole=False)
    with pytest.raises(NetworkError, match="x: no whole answer within 60 s"):
        allowance.check(whole=True)
    now = 106.0
    with pytest.raises(NetworkError, match="x: h has taken over 100 s for its answers in all"):
        allowance.check(whole=False)


def test_silence_is_still_the_end_of_an_attempt(clock: Clock, make_client: MakeClient) -> None:
    with dripping([HEAD], gap=5) as server:
        hosts = {server.host: HostConfiguration(read_timeout=0.05)}
        with pytest.raises(NetworkError, match="no answer in time"):
            make_client(hosts=hosts, attempts=2).tags(Reference.parse(f"{server.host}/team/app"))
        assert (len(server.asked), len(clock.naps)) == (2, 1)


def slowly(clock: Clock, seconds: float) -> Callable[[Call], Reply | None]:
    """An answer as it would be, after a while."""

    def answer(call: Call) -> None:
        clock.seconds += seconds

    return answer


def test_what_one_host_takes_in_all_can_be_limited(
    registry: StandIn, other: StandIn, clock: Clock, make_client: MakeClient
) -> None:
    for server in (registry, other):
        server.add_manifest("a/b", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag="t")
    registry.on("HEAD", ".*", slowly(clock, 40), forever=True)
    client = make_client(host_limit=100.0)
    tag = Reference.parse(f"{registry.host}/a/b:t")
    for _ in range(3):
        client.resolve(tag)
    with pytest.raises(NetworkError) as caught:
        client.resolve(tag)
    assert caught.value.message == (
        f"{tag}: http://{registry.host}/v2/a/b/manifests/t: {registry.host} has taken over 100 s"
        " for its answers in all"
    )
    assert caught.value.hint == HINT
    assert len(registry.calls) == 3
    client.resolve(Reference.parse(f"{other.host}/a/b:t"))


def test_what_a_host_wants_to_be_waited_for_counts(
    registry: StandIn, clock: Clock, make_client: MakeClient
) -> None:
    busy = Reply(status=429, headers={"Retry-After": "30"})
    registry.on("HEAD", ".*", busy, forever=True)
    with pytest.raises(NetworkError, match="has taken over 20 s"):
        make_client(host_limit=20.0).resolve(Reference.parse(f"{registry.host}/a/b:t"))
    assert (clock.naps, len(registry.calls)) == ([30.0], 1)


def test_so_do_blobs() -> None:
    data = b"x" * 10_000
    descriptor = Descriptor(media_type=OCI_MANIFEST, digest=Digest.of(data), size=len(data))
    parts = [HEAD + b"Content-Length: 10000\r\n\r\n", *([b"x"] * 10_000)]
    with dripping(parts) as server, client_of(server.host, host_limit=0.4) as client:
        reference = Reference.parse(f"{server.host}/team/app")
        with pytest.raises(NetworkError, match="has taken over 0 s for its answers in all"):
            b"".join(client.blob(reference, descriptor))
        assert len(server.asked) == 1
