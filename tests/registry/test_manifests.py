"""Tags and manifests: what is asked, and what is believed (cases 01, 11, 14, 24)."""

import json
import re

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError, OfflineError, UsageError
from builder.oci import MANIFEST_LIMIT, OCI_MANIFEST, Index, Manifest, Platform
from builder.reference import Reference
from tests.registry.conftest import MakeClient
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
            Reply(
                headers={
                    "Content-Type": OCI_MANIFEST,
                    "Docker-Content-Digest": str(OTHER),
                    "Content-Length": "\N{SUPERSCRIPT TWO}",
                },
                announce=-1,
            ),
            id="a size in digits that are no number",
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


def test_a_digest_header_of_another_algorithm_says_nothing(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", ".*", manifest_reply(Docker_Content_Digest="sha512:" + "0" * 128))
    assert client.manifest(tag(registry)).digest == DIGEST


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


@pytest.mark.parametrize(
    ("announced", "said"),
    [
        (None, f"{MANIFEST_LIMIT + 1} bytes, "),
        (1 << 50, f"{1 << 50} bytes, "),
        (-1, ""),
    ],
    ids=["announced", "announced, and never sent", "unannounced"],
)
def test_a_manifest_over_the_limit_is_not_read_to_its_end(
    client: RegistryClient, registry: StandIn, announced: int | None, said: str
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
        f"{tag(registry)}: http://{registry.host}/v2/team/app/manifests/t sends {said}more than the"
        f" {MANIFEST_LIMIT} bytes that are allowed"
    )
    assert registry.asked() == ["GET /v2/team/app/manifests/t"]


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
    assert caught.value.hint == "run once without --offline"
    assert registry.calls == []


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
