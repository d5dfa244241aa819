"""Tags and manifests: what is asked, and what is believed (cases 01, 11, 14, 24)."""

import json
import re
import threading

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.digest import Digest
from builder.errors import (
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    RateLimitError,
    UsageError,
)
from builder.oci import MANIFEST_LIMIT, OCI_MANIFEST, Index, Manifest, Platform
from builder.reference import Reference
from tests.registry.conftest import Clock, MakeClient
from tests.registry.images import index_of, tiny_image
from tests.standin.registry import Reply, StandIn

IMAGE = tiny_image()
RAW = IMAGE.manifest.raw
DIGEST = IMAGE.manifest.digest
OTHER = Digest.of(b"other")


def tag(server: StandIn, name: str = "t") -> Reference:
    return Reference.parse(f"{server.host}/team/app:{name}")


@pytest.fixture(autouse=True)
def _one_image(registry: StandIn) -> None:
    registry.add_manifest("team/app", RAW, media_type=OCI_MANIFEST, tag="t")


def manifest_reply(raw: bytes = RAW, **headers: str) -> Reply:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(headers={"Content-Type": OCI_MANIFEST} | names, body=raw)


def test_a_tag_is_resolved_with_one_head_and_no_body(
    client: RegistryClient, registry: StandIn
) -> None:
    assert client.resolve(tag(registry)) == IMAGE.manifest.descriptor
    assert registry.asked() == ["HEAD /v2/team/app/manifests/t"]


def test_all_four_types_are_accepted_and_the_client_gives_its_name(
    client: RegistryClient, registry: StandIn
) -> None:
    client.resolve(tag(registry))
    assert registry.calls[0].headers["accept"] == (
        "application/vnd.oci.image.index.v1+json,"
        " application/vnd.docker.distribution.manifest.list.v2+json,"
        " application/vnd.oci.image.manifest.v1+json,"
        " application/vnd.docker.distribution.manifest.v2+json"
    )
    assert re.fullmatch(r"builder/\d+\.\d+\.\d+", registry.calls[0].headers["user-agent"])


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(Reply(status=405), id="HEAD is not allowed"),
        pytest.param(Reply(status=404), id="HEAD is not found"),
        pytest.param(manifest_reply(), id="no digest"),
        pytest.param(manifest_reply(Docker_Content_Digest=""), id="an empty digest"),
        pytest.param(manifest_reply(Docker_Content_Digest="sha512:beef"), id="another algorithm"),
        pytest.param(
            Reply(
                headers={"Content-Type": OCI_MANIFEST, "Docker-Content-Digest": str(OTHER)},
                announce=0,
            ),
            id="no size",
        ),
        pytest.param(
            Reply(headers={"Docker-Content-Digest": str(OTHER)}, body=RAW), id="no media type"
        ),
    ],
)
def test_where_head_does_not_say_enough_the_body_is_hashed(
    client: RegistryClient, registry: StandIn, head: Reply
) -> None:
    registry.on("HEAD", ".*", head)
    assert client.resolve(tag(registry)) == IMAGE.manifest.descriptor
    assert registry.asked() == [
        "HEAD /v2/team/app/manifests/t",
        "GET /v2/team/app/manifests/t",
    ]


def test_a_manifest_without_a_digest_header_is_named_by_its_bytes(
    client: RegistryClient, registry: StandIn
) -> None:
    with_newline = RAW + b"\n"
    registry.on("GET", ".*", manifest_reply(with_newline))
    manifest = client.manifest(tag(registry))
    assert (manifest.digest, manifest.raw) == (Digest.of(with_newline), with_newline)


def test_a_digest_header_that_differs_from_the_bytes_is_refused(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", ".*", manifest_reply(Docker_Content_Digest=str(OTHER)))
    with pytest.raises(IntegrityError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: the bytes are {DIGEST}, but Docker-Content-Digest says '{OTHER}'"
    )
    assert len(registry.calls) == 1


def test_a_digest_that_resolves_to_another_is_refused(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("HEAD", ".*", manifest_reply(Docker_Content_Digest=str(OTHER)))
    reference = tag(registry).at(DIGEST)
    with pytest.raises(IntegrityError) as caught:
        client.resolve(reference)
    assert caught.value.message == (
        f"{reference}: expected {DIGEST}, {registry.host} answers with {OTHER}"
    )


def test_bytes_that_are_not_what_the_digest_names_are_refused(
    client: RegistryClient, registry: StandIn
) -> None:
    changed = RAW.replace(b"}", b" }", 1)
    registry.on("GET", ".*", manifest_reply(changed))
    reference = tag(registry).at(DIGEST)
    with pytest.raises(IntegrityError) as caught:
        client.manifest(reference)
    assert caught.value.message == (
        f"{reference}: {registry.host}: expected {DIGEST}, got {Digest.of(changed)}"
        f" ({len(changed)} bytes)"
    )


def test_a_manifest_is_fetched_once_by_its_digest(
    client: RegistryClient, registry: StandIn
) -> None:
    first = client.manifest(tag(registry))
    assert client.manifest(tag(registry).at(DIGEST)) is first
    assert len(registry.calls) == 1
    with pytest.raises(GoneError):  # what one repository has says nothing of another
        client.manifest(Reference.parse(f"{registry.host}/team/other@{DIGEST}"))


@pytest.mark.parametrize(
    "kind", ["manifest.v1+json", "manifest.v1+prettyjws"], ids=["plain", "signed"]
)
def test_a_schema_1_manifest_is_refused_with_its_reason(
    client: RegistryClient, registry: StandIn, kind: str
) -> None:
    answer = Reply(
        headers={"Content-Type": f"application/vnd.docker.distribution.{kind}"},
        body=b'{"schemaVersion":1}',
    )
    registry.on("HEAD", ".*", answer)
    with pytest.raises(IntegrityError) as caught:
        client.resolve(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: a Docker schema 1 manifest, which is not supported: its layers have"
        " no sizes and its digest covers a signature"
    )


def test_a_login_page_with_status_200_is_not_taken_for_a_manifest(
    client: RegistryClient, registry: StandIn
) -> None:
    page = Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=b"<html>Log in")
    registry.on("GET", ".*", page)
    with pytest.raises(IntegrityError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: expected an image manifest or index, got 'text/html'"
    )
    assert caught.value.hint == (
        "a login page or a proxy may have answered in the registry's place"
    )


@pytest.mark.parametrize(
    "kind", ["", "application/json", "application/octet-stream"], ids=["none", "json", "binary"]
)
def test_where_the_server_does_not_know_the_type_the_document_speaks(
    client: RegistryClient, registry: StandIn, kind: str
) -> None:
    registry.on("GET", ".*", Reply(headers={"Content-Type": kind} if kind else {}, body=RAW))
    assert client.manifest(tag(registry)) == IMAGE.manifest


@pytest.mark.parametrize("announced", [None, -1], ids=["announced", "unannounced"])
def test_a_manifest_over_the_limit_is_not_read_to_its_end(
    client: RegistryClient, registry: StandIn, announced: int | None
) -> None:
    registry.on(
        "GET",
        ".*",
        Reply(
            headers={"Content-Type": OCI_MANIFEST},
            body=b" " * (MANIFEST_LIMIT + 1),
            announce=announced,
        ),
    )
    with pytest.raises(IntegrityError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: http://{registry.host}/v2/team/app/manifests/t sends more than the"
        " 4194304 bytes that are allowed"
    )


def test_a_manifest_that_is_compressed_on_the_way_is_refused(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", ".*", manifest_reply(Content_Encoding="gzip"))
    with pytest.raises(IntegrityError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} sends it 'gzip'-encoded, unasked"
    )
    assert registry.calls[0].headers["accept-encoding"] == "identity"


def test_a_manifest_whose_connection_breaks_is_asked_for_again(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", ".*", Reply(headers={"Content-Type": OCI_MANIFEST}, body=RAW, cut=10))
    assert client.manifest(tag(registry)) == IMAGE.manifest
    assert len(registry.calls) == 2


def test_an_index_without_the_platform_lists_what_it_has(
    client: RegistryClient, registry: StandIn
) -> None:
    index = index_of(
        (IMAGE.manifest, "linux", "arm64"), (tiny_image(b"a").manifest, "unknown", "unknown")
    )
    registry.add_manifest("team/app", index.raw, media_type=index.media_type, tag="multi")
    found = client.manifest(tag(registry, "multi"))
    assert isinstance(found, Index)
    with pytest.raises(IntegrityError) as caught:
        found.select(Platform("linux", "amd64"), at="team/app")
    assert caught.value.message == (
        "team/app: 0 manifests for platform 'linux/amd64', wanted one; the index has:"
        " linux/arm64, unknown/unknown"
    )


def test_a_deleted_tag_is_gone_and_its_manifest_is_not(
    client: RegistryClient, registry: StandIn
) -> None:
    del registry.manifests["team/app", "t"]
    with pytest.raises(GoneError) as caught:
        client.resolve(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} answered 404 Not Found: MANIFEST_UNKNOWN:"
        " manifest unknown"
    )
    assert caught.value.exit_status == 7
    assert isinstance(client.manifest(tag(registry).at(DIGEST)), Manifest)


def test_a_reference_without_tag_and_digest_names_nothing(
    client: RegistryClient, registry: StandIn
) -> None:
    with pytest.raises(UsageError) as caught:
        client.resolve(Reference.parse(f"{registry.host}/team/app"))
    assert caught.value.message == (
        f"image reference: '{registry.host}/team/app' has neither a tag nor a digest"
    )
    assert registry.calls == []


def test_offline_nothing_is_asked(make_client: MakeClient, registry: StandIn) -> None:
    client = make_client(
        offline=True, hosts={registry.host: HostConfiguration(mirrors=(f"{registry.host}/m",))}
    )
    with pytest.raises(OfflineError) as caught:
        client.resolve(tag(registry).at(DIGEST))
    assert caught.value.message == (
        f"{tag(registry).at(DIGEST)}: --offline forbids to ask"
        f" http://{registry.host}/v2/m/team/app/manifests/{DIGEST}"
    )
    assert registry.calls == []


class TestMirrors:
    """Mirrors accelerate what is named by content, and nothing else."""

    @pytest.fixture
    def mirrored(
        self, make_client: MakeClient, registry: StandIn, other: StandIn
    ) -> RegistryClient:
        """``registry`` is the origin, ``other`` its mirror, below a prefix."""
        mirrors = (f"{other.host}/cache",)
        return make_client(hosts={registry.host: HostConfiguration(mirrors=mirrors)})

    def test_a_digest_is_asked_of_the_mirror_first(
        self, mirrored: RegistryClient, registry: StandIn, other: StandIn
    ) -> None:
        other.add_manifest("cache/team/app", RAW, media_type=OCI_MANIFEST, tag="t")
        assert mirrored.manifest(tag(registry).at(DIGEST)) == IMAGE.manifest
        assert other.asked() == [f"GET /v2/cache/team/app/manifests/{DIGEST}"]
        assert registry.calls == []

    def test_a_tag_is_asked_of_the_origin(
        self, mirrored: RegistryClient, registry: StandIn, other: StandIn
    ) -> None:
        mirrored.resolve(tag(registry))
        assert (len(registry.calls), other.calls) == (1, [])

    def test_a_tag_is_asked_of_a_mirror_that_is_trusted_with_tags(
        self, make_client: MakeClient, registry: StandIn, other: StandIn
    ) -> None:
        other.add_manifest("team/app", RAW, media_type=OCI_MANIFEST, tag="t")
        host = HostConfiguration(mirrors=(other.host,), mirror_tags=True)
        make_client(hosts={registry.host: host}).resolve(tag(registry))
        assert (registry.calls, len(other.calls)) == ([], 1)

    @pytest.mark.parametrize(
        "answer",
        [
            pytest.param(Reply(status=404), id="gone"),
            pytest.param(Reply(status=500), id="broken"),
            pytest.param(Reply(status=403), id="forbidden"),
            pytest.param(Reply(status=429, headers={"Retry-After": "9999"}), id="limited"),
        ],
    )
    def test_a_mirror_that_fails_is_left_at_once_for_the_origin(
        self, mirrored: RegistryClient, registry: StandIn, other: StandIn, answer: Reply
    ) -> None:
        other.on("GET", ".*", answer, forever=True)
        assert mirrored.manifest(tag(registry).at(DIGEST)) == IMAGE.manifest
        assert (len(other.calls), len(registry.calls)) == (1, 1)

    def test_a_mirror_that_refuses_the_login_is_warned_about(
        self,
        mirrored: RegistryClient,
        registry: StandIn,
        other: StandIn,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        other.on("GET", ".*", Reply(status=403))
        reference = tag(registry).at(DIGEST)
        mirrored.manifest(reference)
        assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
            (
                "WARNING",
                f"going on without a mirror: {reference}: {other.host} answered 403 Forbidden",
            )
        ]

    def test_a_mirror_has_what_the_origin_has_deleted(
        self, mirrored: RegistryClient, registry: StandIn, other: StandIn
    ) -> None:
        other.add_manifest("cache/team/app", RAW, media_type=OCI_MANIFEST, tag="t")
        registry.manifests.clear()
        assert mirrored.manifest(tag(registry).at(DIGEST)) == IMAGE.manifest

    def test_where_all_fail_the_origin_decides_and_the_mirrors_are_named(
        self, mirrored: RegistryClient, registry: StandIn, other: StandIn
    ) -> None:
        registry.manifests.clear()
        reference = tag(registry).at(DIGEST)
        with pytest.raises(GoneError) as caught:
            mirrored.manifest(reference)
        said = "answered 404 Not Found: MANIFEST_UNKNOWN: manifest unknown"
        assert caught.value.message == f"{reference}: {registry.host} {said}"
        assert caught.value.hint == (
            "it was deleted upstream, or never was there;"
            f" before it, {reference}: {other.host} {said}"
        )

    def test_wrong_bytes_from_a_mirror_stop_everything(
        self, mirrored: RegistryClient, registry: StandIn, other: StandIn
    ) -> None:
        other.on("GET", ".*", manifest_reply(b"{}"))
        with pytest.raises(IntegrityError) as caught:
            mirrored.manifest(tag(registry).at(DIGEST))
        assert caught.value.message == (
            f"{tag(registry).at(DIGEST)}: {other.host}: expected {DIGEST}, got"
            f" {Digest.of(b'{}')} (2 bytes)"
        )
        assert registry.calls == []

    def test_docker_io_can_be_somewhere_else_altogether(
        self, make_client: MakeClient, registry: StandIn
    ) -> None:
        registry.add_manifest("hub/library/ubuntu", RAW, media_type=OCI_MANIFEST, tag="1")
        client = make_client(
            hosts={"docker.io": HostConfiguration(location=f"{registry.host}/hub")}
        )
        assert client.resolve(Reference.parse("ubuntu:1")).digest == DIGEST
        assert registry.asked() == ["HEAD /v2/hub/library/ubuntu/manifests/1"]


class TestWaiting:
    """429 and 5xx: what is waited for, and what is not (case 14)."""

    def test_retry_after_in_seconds_is_honoured(
        self, client: RegistryClient, registry: StandIn, clock: Clock
    ) -> None:
        busy = Reply(status=429, headers={"Retry-After": "2"})
        registry.on("HEAD", ".*", busy, busy)
        assert client.resolve(tag(registry)).digest == DIGEST
        assert clock.naps == [2.0, 2.0]

    @pytest.mark.parametrize("status", [429, 503])
    def test_retry_after_as_a_date_is_read_against_the_servers_own_clock(
        self, client: RegistryClient, registry: StandIn, clock: Clock, status: int
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
        self, client: RegistryClient, registry: StandIn, clock: Clock
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

    def test_an_hour_is_not_waited_for(
        self, client: RegistryClient, registry: StandIn, clock: Clock
    ) -> None:
        registry.on("GET", ".*", Reply(status=429, headers={"Retry-After": "3600"}))
        with pytest.raises(RateLimitError) as caught:
            client.manifest(tag(registry))
        assert caught.value.message == (
            f"{tag(registry)}: {registry.host} answered 429 Too Many Requests; it wants a wait of"
            " 3600 s, over the limit of 60 s for one request"
        )
        assert (clock.naps, len(registry.calls)) == ([], 1)

    def test_the_waits_of_one_request_are_limited_together(
        self, client: RegistryClient, registry: StandIn, clock: Clock
    ) -> None:
        busy = Reply(status=429, headers={"Retry-After": "40"})
        registry.on("GET", ".*", busy, forever=True)
        with pytest.raises(RateLimitError):
            client.manifest(tag(registry))
        assert clock.naps == [40.0]

    def test_a_server_error_is_asked_about_again_and_then_stands(
        self, client: RegistryClient, registry: StandIn, clock: Clock
    ) -> None:
        registry.on("GET", ".*", Reply(status=502), forever=True)
        with pytest.raises(NetworkError) as caught:
            client.manifest(tag(registry))
        assert caught.value.message == (
            f"{tag(registry)}: {registry.host} answered 502 Bad Gateway"
        )
        assert caught.value.exit_status == 8
        assert clock.naps == [0.5, 1.0, 2.0]

    def test_a_refusal_is_not_asked_about_again(
        self, client: RegistryClient, registry: StandIn, clock: Clock
    ) -> None:
        registry.on("GET", ".*", Reply(status=400, body=b'{"errors":[{"code":"X\\n\\u001b[2J"}]}'))
        with pytest.raises(NetworkError) as caught:
            client.manifest(tag(registry))
        assert caught.value.message == (
            f"{tag(registry)}: {registry.host} answered 400 Bad Request: X  [2J"
        )
        assert (clock.naps, len(registry.calls)) == ([], 1)

    def test_a_server_that_is_not_there_is_a_network_error(
        self, client: RegistryClient, clock: Clock
    ) -> None:
        with pytest.raises(NetworkError) as caught:
            client.resolve(Reference.parse("127.0.0.1:1/a:t"))
        assert caught.value.message == (
            "127.0.0.1:1/a:t: http://127.0.0.1:1/v2/a/manifests/t: connection refused"
        )
        assert not isinstance(caught.value, GoneError)
        assert clock.naps == [0.5, 1.0, 2.0]

    def test_tls_that_fails_is_not_tried_again(
        self, make_client: MakeClient, registry: StandIn, clock: Clock
    ) -> None:
        client = make_client(hosts={registry.host: HostConfiguration(plain_http=False)})
        with pytest.raises(NetworkError) as caught:
            client.resolve(tag(registry))
        assert caught.value.message.startswith(
            f"{tag(registry)}: https://{registry.host}/v2/team/app/manifests/t: TLS failed: "
        )
        assert clock.naps == []

    def test_a_silent_server_is_a_time_out(
        self, make_client: MakeClient, registry: StandIn
    ) -> None:
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


def test_many_questions_take_one_connection(client: RegistryClient, registry: StandIn) -> None:
    for _ in range(3):
        client.resolve(tag(registry))
        client.manifest(tag(registry))
        with pytest.raises(GoneError):
            client.manifest(tag(registry, "missing"))
    assert registry.connections == 1


def test_the_content_type_must_agree_with_the_document(
    client: RegistryClient, registry: StandIn
) -> None:
    both = json.dumps({**json.loads(RAW), "manifests": []}).encode()
    registry.on("GET", ".*", manifest_reply(both))
    with pytest.raises(IntegrityError, match="expected an image manifest, got"):
        client.manifest(tag(registry))
