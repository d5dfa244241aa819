"""Blobs on their way here: redirects, resumption, and what ends them (case 23)."""

import logging
import random

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.adapters.registry.request import follow
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError, NetworkError, OfflineError
from builder.oci import Descriptor
from builder.reference import Reference
from tests.registry.conftest import Clock, DockerLogin, MakeClient
from tests.registry.images import describe
from tests.standin.registry import Call, Reply, StandIn, ranged

DATA = random.Random(1).randbytes(3000)
BIG = random.Random(2).randbytes(3 << 20)
BLOB = describe(DATA)


def repository(server: StandIn) -> Reference:
    return Reference.parse(f"{server.host}/team/app")


def path(descriptor: Descriptor = BLOB) -> str:
    return f"/v2/team/app/blobs/{descriptor.digest}"


@pytest.fixture(autouse=True)
def _blobs(registry: StandIn) -> None:
    registry.add_blob("team/app", DATA)
    registry.add_blob("team/app", BIG)


def fetch(client: RegistryClient, server: StandIn, descriptor: Descriptor = BLOB) -> bytes:
    return b"".join(client.blob(repository(server), descriptor))


def test_a_blob_arrives_whole_in_one_request(client: RegistryClient, registry: StandIn) -> None:
    assert fetch(client, registry) == DATA
    assert registry.asked() == [f"GET {path()}"]
    assert "range" not in registry.calls[0].headers


def test_an_empty_blob_arrives(client: RegistryClient, registry: StandIn) -> None:
    assert fetch(client, registry, registry.add_blob("team/app", b"")) == b""


class Storage:
    """What stands behind registries: one authorisation only, GET only, addresses good once."""

    def __init__(self, server: StandIn, registry: StandIn, *, cut: int | None = None) -> None:
        self.server = server
        self.issued = 0
        self.valid: set[str] = set()
        self._cut = cut
        registry.on("GET", "/v2/.*/blobs/.*", self.redirect, forever=True)
        registry.on("HEAD", "/v2/.*/blobs/.*", self.redirect, forever=True)
        server.on("GET", "/bucket", self.serve, forever=True)
        server.on("HEAD", "/bucket", Reply(status=403), forever=True)

    def redirect(self, call: Call) -> Reply:
        self.issued += 1
        signature = f"secret-{self.issued}"
        self.valid.add(signature)
        location = f"http://{self.server.host}/bucket?signature={signature}"
        return Reply(status=307, headers={"Location": location})

    def serve(self, call: Call) -> Reply:
        if "authorization" in call.headers:
            return Reply(status=400, body=b"only one auth mechanism allowed")
        signature = call.query["signature"][0]
        if signature not in self.valid:
            return Reply(status=403)
        self.valid.remove(signature)
        reply = ranged(call, DATA)
        if self._cut is not None:
            cut, self._cut = self._cut, None
            return Reply(headers=reply.headers, body=reply.body, cut=cut)
        return reply


def test_storage_gets_no_authorisation_of_ours(
    make_client: MakeClient, registry: StandIn, other: StandIn, docker_config: DockerLogin
) -> None:
    registry.on("GET", "/v2/.*", Reply(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'}))
    Storage(other, registry)
    client = make_client(docker_config=docker_config({registry.host: "alice:secret"}))
    assert fetch(client, registry) == DATA
    assert registry.calls[-1].headers["authorization"] == "Basic YWxpY2U6c2VjcmV0"
    assert "authorization" not in other.calls[0].headers


def test_a_broken_transfer_goes_on_at_a_fresh_address(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    storage = Storage(other, registry, cut=1000)
    assert fetch(client, registry) == DATA
    assert storage.issued == 2
    assert [call.headers.get("range") for call in other.calls] == [None, "bytes=1000-"]


def test_an_expired_address_is_replaced_by_a_fresh_one_without_a_wait(
    client: RegistryClient, registry: StandIn, other: StandIn, clock: Clock
) -> None:
    expired = Reply(status=307, headers={"Location": f"http://{other.host}/bucket?signature=old"})
    registry.on("GET", ".*", expired)
    storage = Storage(other, registry)
    assert fetch(client, registry) == DATA
    assert storage.issued == 1
    assert len(other.calls) == 2
    assert clock.naps == []


def test_an_address_that_is_never_accepted_is_an_error_without_its_signature(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    other.on("GET", "/bucket", Reply(status=403), forever=True)
    Storage(other, registry)
    with pytest.raises(NetworkError) as caught:
        fetch(client, registry)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {BLOB.digest}: {other.host} answered 403 Forbidden"
    )
    assert len(other.calls) == 4


def test_existence_is_asked_of_storage_with_a_get_of_one_byte(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    Storage(other, registry)
    assert client.has_blob(repository(registry), BLOB)
    assert [(c.method, c.headers.get("range")) for c in other.calls] == [("GET", "bytes=0-0")]


def test_redirects_within_the_registry_keep_the_authorisation_and_are_counted(
    client: RegistryClient, registry: StandIn
) -> None:
    again = Reply(status=307, headers={"Location": f"../../../..{path()}"})
    registry.on("GET", ".*", *[again] * 5)
    assert fetch(client, registry) == DATA
    assert len(registry.calls) == 6
    registry.on("GET", ".*", again, forever=True)
    with pytest.raises(NetworkError) as caught:
        fetch(client, registry)
    assert len(registry.calls) == 12
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {BLOB.digest}:"
        f" http://{registry.host}{path()}: over 5 redirects"
    )


@pytest.mark.parametrize(
    ("location", "message"),
    [
        pytest.param(
            "http://cdn.example/x?sig=secret",
            "blob: https://r.example/v2/a leads from https to http://cdn.example/x, refused",
            id="TLS is given up",
        ),
        pytest.param(
            "file:///etc/passwd",
            "blob: https://r.example/v2/a answered with a Location that cannot be followed",
            id="another scheme",
        ),
        pytest.param(
            "https://user:secret@cdn.example/",
            "blob: https://r.example/v2/a answered with a Location that cannot be followed",
            id="credentials in the address",
        ),
        pytest.param(
            "https://[::1/",
            "blob: https://r.example/v2/a answered with a Location that cannot be followed",
            id="not an address",
        ),
        pytest.param(
            None,
            "blob: https://r.example/v2/a answered without the Location header that is due",
            id="none",
        ),
    ],
)
def test_a_location_that_must_not_be_followed(location: str | None, message: str) -> None:
    with pytest.raises(NetworkError) as caught:
        follow("https://r.example/v2/a?token=secret", location, what="blob")
    assert caught.value.message == message


def test_a_broken_transfer_is_resumed_where_it_broke(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    registry.on("GET", ".*", Reply(body=DATA, cut=700), lambda c: cut_range(c, 900))
    assert fetch(client, registry) == DATA
    ranges = [call.headers.get("range") for call in registry.calls]
    assert ranges == [None, "bytes=700-", "bytes=1600-"]
    assert clock.naps == [0.5, 1.0]


def cut_range(call: Call, cut: int) -> Reply:
    reply = ranged(call, DATA)
    return Reply(status=reply.status, headers=reply.headers, body=reply.body, cut=cut)


def test_a_body_of_unannounced_length_that_ends_early_is_resumed(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", ".*", Reply(body=DATA[:100], announce=-1))
    assert fetch(client, registry) == DATA


def test_a_server_that_ignores_ranges_sends_the_prefix_again(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", ".*", Reply(body=DATA, cut=700), Reply(body=DATA))
    assert fetch(client, registry) == DATA
    assert len(registry.calls) == 2


def test_transfers_that_break_without_progress_end(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    registry.on("GET", ".*", Reply(body=DATA, cut=700))
    registry.on("GET", ".*", lambda c: cut_range(c, 0), forever=True)
    with pytest.raises(NetworkError) as caught:
        fetch(client, registry)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {BLOB.digest}: http://{registry.host}{path()}:"
        " the connection ended 2300 bytes too early; 700 of 3000 bytes after 4 attempts"
    )
    assert clock.naps == [0.5, 1.0, 2.0]


def test_transfers_that_break_with_progress_go_on(
    make_client: MakeClient, registry: StandIn, clock: Clock
) -> None:
    def cut(call: Call) -> Reply:
        reply = ranged(call, BIG)
        return Reply(status=reply.status, headers=reply.headers, body=reply.body, cut=1 << 20)

    registry.on("GET", ".*", cut, forever=True)
    assert fetch(make_client(attempts=1), registry, describe(BIG)) == BIG
    assert clock.naps == []


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(
            Reply(body=DATA + b"!"),
            "http://{host}{path}: expected 3000 bytes, got 3001 of type ''",
            id="announced longer",
        ),
        pytest.param(
            Reply(body=DATA + b"!" * 9999, announce=-1),
            "expected 3000 bytes, http://{host}{path} sends more",
            id="longer without announcement",
        ),
        pytest.param(
            Reply(body=DATA[:-1]),
            "http://{host}{path}: expected 3000 bytes, got 2999 of type ''",
            id="announced shorter",
        ),
        pytest.param(
            Reply(body=bytes(3000)),
            f"expected {BLOB.digest}, got {Digest.of(bytes(3000))}",
            id="other bytes",
        ),
        pytest.param(
            Reply(headers={"Content-Type": "text/html"}, body=b"<html>Log in"),
            "http://{host}{path}: expected 3000 bytes, got 12 of type 'text/html'",
            id="a login page",
        ),
        pytest.param(
            Reply(status=206, headers={"Content-Range": "bytes 5-3004/3005"}, body=DATA),
            "http://{host}{path}: expected bytes from 0 of 3000, got Content-Range"
            " 'bytes 5-3004/3005'",
            id="another part",
        ),
        pytest.param(
            Reply(status=206, headers={"Content-Range": "bytes 0-2999/3001"}, body=DATA),
            "http://{host}{path}: expected bytes from 0 of 3000, got Content-Range"
            " 'bytes 0-2999/3001'",
            id="a part of something else",
        ),
    ],
)
def test_bytes_that_are_not_the_blob_end_the_stream_with_an_error(
    client: RegistryClient, registry: StandIn, reply: Reply, message: str
) -> None:
    registry.on("GET", ".*", reply)
    with pytest.raises(IntegrityError) as caught:
        fetch(client, registry)
    expected = message.format(host=registry.host, path=path())
    assert caught.value.message == f"{registry.host}/team/app: blob {BLOB.digest}: {expected}"
    assert len(registry.calls) == 1


def test_a_blob_that_is_shorter_than_its_descriptor_is_not_waited_for(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", ".*", Reply(body=DATA[:100], announce=-1), Reply(status=416))
    with pytest.raises(IntegrityError) as caught:
        fetch(client, registry)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {BLOB.digest}: http://{registry.host}{path()}:"
        " expected 3000 bytes, but it has none from 100 on"
    )


def test_a_blob_that_was_deleted_is_gone(client: RegistryClient, registry: StandIn) -> None:
    registry.blobs.clear()
    with pytest.raises(GoneError) as caught:
        fetch(client, registry)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {BLOB.digest}: {registry.host} answered 404 Not Found:"
        " BLOB_UNKNOWN: blob unknown to registry"
    )


def test_the_origin_goes_on_where_the_mirror_broke(
    make_client: MakeClient, registry: StandIn, other: StandIn
) -> None:
    other.on("GET", ".*", Reply(body=DATA, cut=700), forever=True)
    hosts = {registry.host: HostConfiguration(mirrors=(other.host,))}
    assert fetch(make_client(hosts=hosts), registry) == DATA
    assert [call.headers.get("range") for call in registry.calls] == ["bytes=700-"]
    assert len(other.calls) == 1, "nobody waits for a mirror"


def test_who_fails_before_the_origin_is_told_with_it(
    make_client: MakeClient,
    registry: StandIn,
    other: StandIn,
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry.blobs.clear()
    other.on("GET", ".*", Reply(status=410), forever=True)
    hosts = {registry.host: HostConfiguration(mirrors=(other.host,))}
    what = f"{registry.host}/team/app: blob {BLOB.digest}"
    with caplog.at_level(logging.INFO), pytest.raises(GoneError) as caught:
        fetch(make_client(hosts=hosts), registry)
    assert caught.value.message.startswith(f"{what}: {registry.host} answered 404 Not Found")
    before = f"{what}: {other.host} answered 410 Gone"
    assert caught.value.hint == (
        f"it was deleted upstream, or never was there; before it, {before}"
    )
    assert f"going on without a mirror: {before}" in caplog.messages


def test_offline_no_mirror_is_asked_for_a_blob(
    make_client: MakeClient, registry: StandIn, other: StandIn
) -> None:
    hosts = {registry.host: HostConfiguration(mirrors=(other.host,))}
    with pytest.raises(OfflineError) as caught:
        fetch(make_client(hosts=hosts, offline=True), registry)
    assert caught.value.message.endswith(f"--offline forbids to ask http://{other.host}{path()}")
    assert caught.value.hint == "run once without --offline"
    assert (registry.calls, other.calls) == ([], [])


class TestRange:
    """Parts of blobs: unverified, but the right part."""

    def test_only_the_part_is_asked_for(self, client: RegistryClient, registry: StandIn) -> None:
        got = client.blob_range(repository(registry), BLOB, start=100, length=50)
        assert got == DATA[100:150]
        assert registry.calls[0].headers["range"] == "bytes=100-149"

    def test_a_server_that_ignores_ranges_is_read_up_to_the_part(
        self, client: RegistryClient, registry: StandIn
    ) -> None:
        registry.on("GET", ".*", Reply(body=DATA))
        got = client.blob_range(repository(registry), BLOB, start=100, length=50)
        assert got == DATA[100:150]

    def test_but_not_when_the_part_is_far_away(
        self, client: RegistryClient, registry: StandIn
    ) -> None:
        far = Descriptor(media_type="x", digest=BLOB.digest, size=1 << 30)
        registry.on("GET", ".*", Reply(body=DATA, announce=1 << 30))
        with pytest.raises(NetworkError) as caught:
            client.blob_range(repository(registry), far, start=100 << 20, length=50)
        assert caught.value.message == (
            f"{registry.host}/team/app: blob {BLOB.digest}: http://{registry.host}{path()}"
            " ignores ranges, and 104857600 bytes stand before this one (limit 67108864)"
        )

    def test_a_server_that_knows_ranges_is_asked_for_one_far_away(
        self, client: RegistryClient, registry: StandIn
    ) -> None:
        far = Descriptor(media_type="x", digest=BLOB.digest, size=1 << 30)
        headers = {"Content-Range": "bytes 104857600-104857649/1073741824"}
        registry.on("GET", ".*", Reply(status=206, headers=headers, body=DATA[:50]))
        got = client.blob_range(repository(registry), far, start=100 << 20, length=50)
        assert got == DATA[:50]

    def test_another_part_than_asked_for_is_refused(
        self, client: RegistryClient, registry: StandIn
    ) -> None:
        wrong = Reply(status=206, headers={"Content-Range": "bytes 0-49/3000"}, body=DATA[:50])
        registry.on("GET", ".*", wrong)
        with pytest.raises(IntegrityError) as caught:
            client.blob_range(repository(registry), BLOB, start=100, length=50)
        assert caught.value.message == (
            f"{registry.host}/team/app: blob {BLOB.digest}: http://{registry.host}{path()}:"
            " expected bytes from 100 of 3000, got Content-Range 'bytes 0-49/3000'"
        )

    def test_a_part_that_breaks_is_asked_for_again(
        self, client: RegistryClient, registry: StandIn
    ) -> None:
        registry.on("GET", ".*", lambda call: cut_range(call, 10))
        got = client.blob_range(repository(registry), BLOB, start=100, length=50)
        assert (got, len(registry.calls)) == (DATA[100:150], 2)

    def test_a_part_that_breaks_for_ever_is_given_up(
        self, client: RegistryClient, registry: StandIn, clock: Clock
    ) -> None:
        registry.on("GET", ".*", lambda call: cut_range(call, 10), forever=True)
        with pytest.raises(NetworkError, match="the connection ended 40 bytes too early"):
            client.blob_range(repository(registry), BLOB, start=100, length=50)
        assert (len(registry.calls), clock.naps) == (4, [0.5, 1.0, 2.0])

    def test_a_mirror_that_breaks_is_left_for_the_origin(
        self, make_client: MakeClient, registry: StandIn, other: StandIn
    ) -> None:
        other.add_blob("team/app", DATA)
        other.on("GET", ".*", lambda call: cut_range(call, 10), forever=True)
        hosts = {registry.host: HostConfiguration(mirrors=(other.host,))}
        client = make_client(hosts=hosts)
        got = client.blob_range(repository(registry), BLOB, start=100, length=50)
        assert (got, len(other.calls), len(registry.calls)) == (DATA[100:150], 1, 1)

    def test_nothing_is_asked_for_nothing_and_outside_is_a_bug(
        self, client: RegistryClient, registry: StandIn
    ) -> None:
        assert client.blob_range(repository(registry), BLOB, start=3000, length=0) == b""
        with pytest.raises(ValueError, match="bytes 2999\\+2 are not in a blob of 3000"):
            client.blob_range(repository(registry), BLOB, start=2999, length=2)
        assert registry.calls == []
