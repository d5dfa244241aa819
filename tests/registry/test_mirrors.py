"""Mirrors accelerate what is named by content, and nothing else (case 01)."""

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.oci import OCI_MANIFEST
from builder.reference import Reference
from tests.registry.conftest import MakeClient
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


def manifest_reply(raw: bytes = RAW, **headers: str) -> Reply:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(headers={"Content-Type": OCI_MANIFEST} | names, body=raw)


@pytest.fixture
def mirrored(make_client: MakeClient, registry: StandIn, other: StandIn) -> RegistryClient:
    """``registry`` is the origin, ``other`` its mirror, below a prefix."""
    mirrors = (f"{other.host}/cache",)
    return make_client(hosts={registry.host: HostConfiguration(mirrors=mirrors)})


def test_a_digest_is_asked_of_the_mirror_first(
    mirrored: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    other.add_manifest("cache/team/app", RAW, media_type=OCI_MANIFEST, tag="t")
    assert mirrored.manifest(tag(registry).at(DIGEST)) == IMAGE.manifest
    assert other.asked() == [f"GET /v2/cache/team/app/manifests/{DIGEST}"]
    assert registry.calls == []


def test_a_tag_is_asked_of_the_origin(
    mirrored: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    mirrored.resolve(tag(registry))
    assert (len(registry.calls), other.calls) == (1, [])


def test_a_tag_is_asked_of_a_mirror_that_is_trusted_with_tags(
    make_client: MakeClient, registry: StandIn, other: StandIn
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
    mirrored: RegistryClient, registry: StandIn, other: StandIn, answer: Reply
) -> None:
    other.on("GET", ".*", answer, forever=True)
    assert mirrored.manifest(tag(registry).at(DIGEST)) == IMAGE.manifest
    assert (len(other.calls), len(registry.calls)) == (1, 1)


def test_a_mirror_that_refuses_the_login_is_warned_about(
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
    mirrored: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    other.add_manifest("cache/team/app", RAW, media_type=OCI_MANIFEST, tag="t")
    registry.manifests.clear()
    assert mirrored.manifest(tag(registry).at(DIGEST)) == IMAGE.manifest


def test_where_all_fail_the_origin_decides_and_the_mirrors_are_named(
    mirrored: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    registry.manifests.clear()
    reference = tag(registry).at(DIGEST)
    with pytest.raises(GoneError) as caught:
        mirrored.manifest(reference)
    said = "answered 404 Not Found: MANIFEST_UNKNOWN: manifest unknown"
    assert caught.value.message == f"{reference}: {registry.host} {said}"
    assert caught.value.hint == (
        f"it was deleted upstream, or never was there; before it, {reference}: {other.host} {said}"
    )


def test_wrong_bytes_from_a_mirror_stop_everything(
    mirrored: RegistryClient, registry: StandIn, other: StandIn
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
    make_client: MakeClient, registry: StandIn
) -> None:
    registry.add_manifest("hub/library/ubuntu", RAW, media_type=OCI_MANIFEST, tag="1")
    client = make_client(hosts={"docker.io": HostConfiguration(location=f"{registry.host}/hub")})
    assert client.resolve(Reference.parse("ubuntu:1")).digest == DIGEST
    assert registry.asked() == ["HEAD /v2/hub/library/ubuntu/manifests/1"]
