"""What refers to an image: asked of the registry, or read from the tag that stands in."""

import json
from collections.abc import Iterator

import pytest

from builder.adapters.registry import referrers as pages
from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.digest import Digest
from builder.errors import AuthError, GoneError, IntegrityError, NetworkError, OfflineError
from builder.oci import OCI_INDEX, OCI_MANIFEST, Descriptor, Manifest
from builder.reference import Reference
from builder.sigstore import bundle, carriers
from tests.registry.conftest import MakeClient
from tests.registry.images import tiny_image
from tests.standin.referrers import ReferrersStandIn, referrers_stand_in
from tests.standin.registry import Reply, StandIn

IMAGE = tiny_image().manifest
SUBJECT = IMAGE.digest
ASKED = f"/v2/team/app/referrers/{SUBJECT}"
TAG = f"sha256-{SUBJECT.hex}"


@pytest.fixture
def api() -> Iterator[ReferrersStandIn]:
    with referrers_stand_in() as server:
        yield server


def app(server: StandIn) -> Reference:
    return Reference.parse(f"{server.host}/team/app:any")


def attached(number: int, kind: str = bundle.MEDIA_TYPE) -> Manifest:
    made = carriers.bundle_manifest(b"%d" % number, "https://p", subject=IMAGE.descriptor)
    return Manifest.parse(made.raw.replace(bundle.MEDIA_TYPE.encode(), kind.encode()))


def ask(client: RegistryClient, server: StandIn) -> tuple[Descriptor, ...]:
    return client.referrers(app(server), SUBJECT, artifact_type=bundle.MEDIA_TYPE)


def listing(manifests: object, **more: str) -> Reply:
    body = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests}
    headers = {"Content-Type": OCI_INDEX, **more}
    return Reply(headers=headers, body=json.dumps(body).encode())


def test_a_registry_that_lists_referrers_says_so_when_one_is_put(
    client: RegistryClient, api: ReferrersStandIn, registry: StandIn
) -> None:
    for server, lists in ((api, True), (registry, False)):
        target = app(server).at(attached(1).digest)
        assert client.push_manifest(target, attached(1)) is lists
        assert client.push_manifest(app(server), IMAGE) is False


@pytest.mark.parametrize("filters", [True, False])
def test_all_pages_are_read_and_the_type_is_asked_for(
    client: RegistryClient, api: ReferrersStandIn, filters: bool
) -> None:
    api.filters, api.page_size = filters, 3
    wanted = [attached(number) for number in range(7)]
    other = attached(9, "application/spdx+json")
    for manifest in (*wanted, other):
        client.push_manifest(app(api).at(manifest.digest), manifest)
    api.calls.clear()
    found = ask(client, api)
    kinds = [bundle.MEDIA_TYPE] * 7 + ([] if filters else ["application/spdx+json"])
    assert [entry.artifact_type for entry in found] == kinds
    assert found[:7] == tuple(carriers.referrer(manifest) for manifest in wanted)
    assert api.asked() == [f"GET {ASKED}"] * 3
    assert api.calls[0].query == {"artifactType": [bundle.MEDIA_TYPE]}


@pytest.mark.parametrize("status", [400, 404, 405, 406, 501])
def test_where_the_question_is_unknown_the_tag_is_read(
    client: RegistryClient, registry: StandIn, status: int
) -> None:
    registry.on("GET", ASKED, Reply(status=status), forever=True)
    assert ask(client, registry) == ()
    registry.add_manifest(
        "team/app",
        listing([carriers.referrer(attached(1)).record()] * 2).body,
        media_type=OCI_INDEX,
        tag=TAG,
    )
    assert ask(client, registry) == (carriers.referrer(attached(1)),)
    assert registry.asked()[-2:] == [f"GET {ASKED}", f"GET /v2/team/app/manifests/{TAG}"]


def test_an_empty_list_is_an_answer_and_the_tag_is_not_read(
    client: RegistryClient, api: ReferrersStandIn
) -> None:
    assert ask(client, api) == ()
    assert api.asked() == [f"GET {ASKED}"]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(status=500), NetworkError),
        (Reply(status=503), NetworkError),
        (Reply(status=401), AuthError),
        (Reply(status=403), AuthError),
    ],
)
def test_what_is_no_answer_is_not_an_empty_list(
    client: RegistryClient, registry: StandIn, reply: Reply, kind: type[Exception]
) -> None:
    registry.on("GET", ASKED, reply, forever=True)
    with pytest.raises(kind):
        ask(client, registry)
    registry.on("GET", ASKED.replace("referrers", "x"), reply)
    assert all("manifests" not in call for call in registry.asked())


def test_a_server_error_at_the_tag_is_not_an_empty_list(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("GET", f"/v2/team/app/manifests/{TAG}", Reply(status=502), forever=True)
    with pytest.raises(NetworkError, match="502"):
        ask(client, registry)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(headers={"Content-Type": "text/html"}, body=b"<html>"), "got 'text/html'"),
        (Reply(headers={"Content-Type": OCI_INDEX}, body=b"{"), "not JSON"),
        (Reply(headers={"Content-Type": OCI_INDEX}, body=IMAGE.raw), "but says of itself"),
        (Reply(headers={"Content-Type": OCI_MANIFEST}, body=IMAGE.raw), "expected an image index"),
        (listing({}), "manifests: expected a list"),
        (listing([{"digest": "sha256:0"}]), r"manifests\[0\]"),
        (listing([], Link=f'<{ASKED}?artifactType={bundle.MEDIA_TYPE}>; rel="next"'), "there befo"),
        (listing([carriers.referrer(attached(1)).record()] * 1001), "1001 referrers, the limits"),
        (Reply(headers={"Content-Type": OCI_INDEX}, body=b" " * (5 << 20)), "4194304 bytes"),
    ],
)
def test_a_list_that_is_none_is_refused(
    client: RegistryClient, registry: StandIn, reply: Reply, said: str
) -> None:
    link = reply.headers.get("Link")
    if link:  # the registry writes what was asked in its own way
        reply.headers["Link"] = link.replace("+", "%2B").replace("application/", "application%2F")
    registry.on("GET", ASKED, reply, forever=True)
    with pytest.raises(IntegrityError, match=said):
        ask(client, registry)


def test_only_the_first_page_can_say_that_the_question_is_unknown(
    client: RegistryClient, registry: StandIn
) -> None:
    """A page that is lost later is no reason to read the tag, which may know fewer."""
    first = listing([carriers.referrer(attached(1)).record()], Link=f'<{ASKED}?page=2>; rel="next"')
    registry.on("GET", ASKED, first, Reply(status=404))
    with pytest.raises(GoneError):
        ask(client, registry)
    assert registry.asked() == [f"GET {ASKED}"] * 2


def test_a_list_under_the_tag_has_the_same_limit(
    client: RegistryClient, registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "LISTED_LIMIT", 2)
    registry.on("GET", ASKED, Reply(status=404), forever=True)
    records = [carriers.referrer(attached(number)).record() for number in range(3)]
    for count in (2, 3):
        body = listing(records[:count]).body
        registry.add_manifest("team/app", body, media_type=OCI_INDEX, tag=TAG)
        if count == 2:
            assert len(ask(client, registry)) == 2
    with pytest.raises(IntegrityError, match=f"{TAG}: 3 referrers, the limits are"):
        ask(client, registry)


def test_pages_without_end_are_an_error_that_says_so(
    client: RegistryClient, registry: StandIn
) -> None:
    for number in range(200):
        registry.on("GET", ASKED, listing([], Link=f'<{ASKED}?page={number}>; rel="next"'))
    with pytest.raises(
        IntegrityError, match="0 referrers and more pages, the limits are"
    ) as caught:
        ask(client, registry)
    assert caught.value.hint is not None
    assert "delete what you do not know" in caught.value.hint
    assert len(registry.calls) == pages.PAGES_LIMIT


def test_a_page_at_another_server_is_refused(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    link = f'<http://{other.host}{ASKED}?page=2>; rel="next"'
    registry.on("GET", ASKED, listing([], Link=link))
    with pytest.raises(NetworkError, match="another server, refused"):
        ask(client, registry)
    assert other.calls == []


def test_an_image_at_the_tag_is_no_list(client: RegistryClient, registry: StandIn) -> None:
    registry.add_manifest("team/app", IMAGE.raw, media_type=OCI_MANIFEST, tag=TAG)
    with pytest.raises(IntegrityError, match="expected an index of what refers to the image"):
        ask(client, registry)


def test_mirrors_are_not_asked_for_what_may_be_written_again(
    make_client: MakeClient, registry: StandIn, other: StandIn
) -> None:
    mirror = HostConfiguration(mirrors=(other.host,), mirror_tags=True)
    client = make_client(hosts={registry.host: mirror})
    assert ask(client, registry) == ()
    assert client.tagged(app(registry)) is None
    assert other.calls == []


def test_a_tag_is_read_anew_each_time(client: RegistryClient, registry: StandIn) -> None:
    with pytest.raises(ValueError, match="is not a tag"):
        client.tagged(app(registry).at(Digest.of(b"")))
    assert client.tagged(app(registry)) is None
    for image in (IMAGE, tiny_image(b"another").manifest):
        registry.add_manifest("team/app", image.raw, media_type=OCI_MANIFEST, tag="any")
        assert client.tagged(app(registry)) == image


def test_offline_says_so(make_client: MakeClient, registry: StandIn) -> None:
    with pytest.raises(OfflineError):
        ask(make_client(offline=True), registry)
