"""All tags of a repository, whatever the registry makes of its pages (cases 14, 36)."""

import io
import json
import re
import shutil
from pathlib import Path

import pytest

from builder.adapters.registry import tags as pages
from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    RateLimitError,
)
from builder.oci import OCI_MANIFEST
from builder.reference import Reference
from tests.registry.conftest import DockerLogin, MakeClient
from tests.registry.images import tiny_image
from tests.services import PASSWORD, running_registry
from tests.standin.registry import Reply, StandIn

LIST = "/v2/team/app/tags/list"
IMAGE = tiny_image()


def app(server: StandIn) -> Reference:
    return Reference.parse(f"{server.host}/team/app:any")


def hold(server: StandIn, *names: str) -> None:
    for name in names:
        server.add_manifest("team/app", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag=name)


def page(tags: object, link: str | None = None) -> Reply:
    headers = {"Content-Type": "application/json"} | ({"Link": link} if link else {})
    return Reply(headers=headers, body=json.dumps({"name": "team/app", "tags": tags}).encode())


def test_all_pages_are_read_in_order_and_no_manifest_is_asked_for(
    client: RegistryClient, registry: StandIn
) -> None:
    names = [f"nightly-{number:02}" for number in range(30)]
    hold(registry, *reversed(names))
    registry.page_size = 12
    assert client.tags(app(registry)) == tuple(names)
    assert registry.asked() == [f"GET {LIST}"] * 3
    assert [call.query for call in registry.calls] == [
        {"n": ["1000"]},
        {"last": ["nightly-11"], "n": ["12"]},
        {"last": ["nightly-23"], "n": ["12"]},
    ]


@pytest.mark.parametrize(
    "link",
    [
        pytest.param('</v2/team/app/tags/list?n=1&last=b>; rel="next"', id="a path"),
        pytest.param('<list?n=1&last=b>; rel="next"', id="relative to the page"),
        pytest.param('<?n=1&last=b>; rel="next"', id="a query alone"),
        pytest.param('<http://HOST/v2/team/app/tags/list?last=b>; rel="next"', id="absolute"),
        pytest.param("<?last=b>; rel=next", id="no quotes"),
        pytest.param('<?last=b>; title="x"; rel="NEXT"', id="another parameter, upper case"),
        pytest.param('<?first>; rel="prev", <?last=b>; rel="last next"', id="several links"),
    ],
)
def test_links_are_understood_as_they_are_written(
    client: RegistryClient, registry: StandIn, link: str
) -> None:
    registry.on("GET", LIST, page(["b"], link.replace("HOST", registry.host)), page(["a", "b"]))
    assert client.tags(app(registry)) == ("a", "b")
    assert [call.path for call in registry.calls] == [LIST, LIST]
    assert registry.calls[1].query["last"] == ["b"]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(page(None), id="null"),
        pytest.param(page([]), id="an empty list"),
        pytest.param(page(["a"], "<>"), id="a link without a relation"),
    ],
)
def test_a_last_page_may_be_empty(client: RegistryClient, registry: StandIn, reply: Reply) -> None:
    registry.on("GET", LIST, page(["a"], '<?last=a>; rel="next"'), reply)
    assert client.tags(app(registry)) == ("a",)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"<html>", "not JSON: ", id="a login page"),
        pytest.param(b"", "not JSON: ", id="nothing"),
        pytest.param(b"[]", "expected an object with a list 'tags'", id="a list"),
        pytest.param(b"{}", "expected an object with a list 'tags'", id="no tags"),
        pytest.param(b'{"tags":"a"}', "tags: expected a list, got str", id="a text"),
        pytest.param(b'{"tags":["a",1]}', "tags: 1 is not a tag", id="a number among them"),
        pytest.param(b'{"tags":["a/../b"]}', "tags: 'a/../b' is not a tag", id="a path"),
        pytest.param(b'{"tags":["a\\n"]}', r"tags: 'a\n' is not a tag", id="a line break"),
        pytest.param(b'{"tags":[],"tags":["a"]}', "duplicate key 'tags'", id="a key twice"),
    ],
)
def test_what_is_no_list_of_tags_is_refused(
    client: RegistryClient, registry: StandIn, body: bytes, message: str
) -> None:
    registry.on("GET", LIST, Reply(body=body))
    with pytest.raises(IntegrityError) as caught:
        client.tags(app(registry))
    where = f"{registry.host}/team/app: tags: http://{registry.host}{LIST}: "
    assert caught.value.message.startswith(where + message)


def test_a_page_that_is_far_too_large_is_refused(
    client: RegistryClient, registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_BODY_LIMIT", 1000)
    registry.on("GET", LIST, page(["a" * 100] * 20))
    with pytest.raises(IntegrityError, match="more than the 1000 bytes that are allowed"):
        client.tags(app(registry))


def test_another_server_is_never_asked_for_the_next_page(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    link = f'<http://{other.host}{LIST}?last=a&token=sesame>; rel="next"'
    registry.on("GET", LIST, page(["a"], link))
    with pytest.raises(NetworkError) as caught:
        client.tags(app(registry))
    assert caught.value.message == (
        f"{registry.host}/team/app: tags: the next page is said to be at http://{other.host}{LIST},"
        " which is another server, refused"
    )
    assert other.calls == []


@pytest.mark.parametrize(
    "link", ["<ftp://HOST/x>", "<http://user:password@HOST/x>", "<http://[/x>"]
)
def test_a_link_that_cannot_be_followed_is_an_error_and_not_the_end(
    client: RegistryClient, registry: StandIn, link: str
) -> None:
    link = link.replace("HOST", registry.host)
    registry.on("GET", LIST, page(["a"], f'{link}; rel="next"'))
    with pytest.raises(NetworkError, match="a Location that cannot be followed"):
        client.tags(app(registry))


@pytest.mark.parametrize(
    "links",
    [
        pytest.param(["?n=1000"], id="to itself"),
        pytest.param(["?last=b", "?last=c", "?last=b"], id="in a circle"),
    ],
)
def test_pages_that_go_in_a_circle_end_with_an_error(
    client: RegistryClient, registry: StandIn, links: list[str]
) -> None:
    replies = [page([f"t{n}"], f'<{link}>; rel="next"') for n, link in enumerate(links)]
    registry.on("GET", LIST, *replies)
    with pytest.raises(NetworkError, match=f"page {len(links)} leads to what was there before"):
        client.tags(app(registry))


def test_pages_that_say_the_same_again_end_with_an_error(
    client: RegistryClient, registry: StandIn
) -> None:
    """A registry that knows ``n`` and not ``last``, and gives each page another address."""
    count = iter(range(1000))
    registry.on(
        "GET", LIST, lambda call: page(["a", "b"], f'<?c={next(count)}>; rel="next"'), forever=True
    )
    with pytest.raises(NetworkError, match="page 2 leads to what was there before"):
        client.tags(app(registry))


@pytest.mark.parametrize("limit", ["PAGES_LIMIT", "TAGS_LIMIT"])
def test_a_list_without_end_ends(
    client: RegistryClient, registry: StandIn, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(pages, limit, 7)
    count = iter(range(1000))

    def more(call: object) -> Reply:
        return page([f"t{(number := next(count))}"], f'<?last={number}>; rel="next"')

    registry.on("GET", LIST, more, forever=True)
    with pytest.raises(NetworkError) as caught:
        client.tags(app(registry))
    assert re.search(r": goes on after \d pages and \d tags, the limits are ", caught.value.message)
    assert len(registry.calls) < 10


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AuthError), (403, AuthError), (404, GoneError), (429, RateLimitError)]
    + [(503, NetworkError), (405, NetworkError)],
)
@pytest.mark.parametrize("first", [True, False], ids=["first page", "second page"])
def test_an_answer_that_is_none_is_told_as_what_it_is(
    client: RegistryClient,
    registry: StandIn,
    status: int,
    kind: type[BuilderError],
    first: bool,
) -> None:
    if not first:
        registry.on("GET", LIST, page(["a"], '<?last=a>; rel="next"'))
    refused = Reply(status=status, headers={"Retry-After": "3600"} if status == 429 else {})
    registry.on("GET", LIST, refused, forever=True)
    with pytest.raises(BuilderError) as caught:
        client.tags(app(registry))
    assert isinstance(caught.value, kind)
    assert isinstance(caught.value, AuthError | RateLimitError) == (status in (401, 403, 429))
    assert caught.value.message.startswith(f"{registry.host}/team/app: tags: ")


def test_a_page_that_breaks_off_is_asked_for_again(
    client: RegistryClient, registry: StandIn
) -> None:
    hold(registry, "a")
    registry.on("GET", LIST, Reply(body=b'{"tags":["', announce=1000), Reply(status=503))
    assert client.tags(app(registry)) == ("a",)
    assert len(registry.calls) == 3


def test_mirrors_are_not_asked_and_offline_nobody_is(
    make_client: MakeClient, registry: StandIn, other: StandIn
) -> None:
    hold(registry, "here")
    hold(other, "there")
    hosts = {
        "registry.test": HostConfiguration(
            location=registry.host, mirrors=(other.host,), mirror_tags=True
        )
    }
    where = Reference.parse("registry.test/team/app")
    assert make_client(hosts=hosts).tags(where) == ("here",)
    assert other.calls == []
    with pytest.raises(OfflineError):
        make_client(hosts=hosts, offline=True).tags(where)
    assert len(registry.calls) == 1


def test_the_hub_is_asked_under_its_own_rules(make_client: MakeClient, registry: StandIn) -> None:
    registry.add_manifest("library/it", b"{}", media_type=OCI_MANIFEST, tag="x")
    hosts = {"docker.io": HostConfiguration(location=registry.host)}
    assert make_client(hosts=hosts).tags(Reference.parse("it")) == ("x",)
    assert registry.asked() == ["GET /v2/library/it/tags/list"]


@pytest.mark.skipif(
    shutil.which("docker-registry") is None, reason="docker-registry is not installed"
)
def test_a_real_registry_lists_all_behind_a_login(
    make_client: MakeClient, docker_config: DockerLogin, tmp_path: Path
) -> None:
    """In one answer: distribution 2.8 has no pages of tags."""
    (tmp_path / "registry").mkdir()
    names = tuple(f"nightly-{number}" for number in range(8))
    with running_registry(tmp_path / "registry", password=True) as running:
        client = make_client(docker_config=docker_config({running.host: f"alice:{PASSWORD}"}))
        target = Reference.parse(f"{running.host}/team/app:{names[0]}")
        client.push_blob(target, IMAGE.manifest.config, io.BytesIO(IMAGE.config))
        client.push_blob(target, IMAGE.manifest.layers[0], io.BytesIO(IMAGE.layer))
        for name in names:
            client.push_manifest(
                Reference(registry=target.registry, repository="team/app", tag=name), IMAGE.manifest
            )
        assert client.tags(target) == names
        with pytest.raises(GoneError, match="NAME_UNKNOWN: "):
            client.tags(Reference.parse(f"{running.host}/team/none"))
        with pytest.raises(AuthError):
            make_client().tags(target)


def test_one_page_may_be_too_long_as_well(
    client: RegistryClient, registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.adapters.registry.tags.TAGS_LIMIT", 2)
    registry.on("GET", LIST, page(["a", "b", "c"]))
    with pytest.raises(NetworkError) as caught:
        client.tags(app(registry))
    assert "has 3 tags, the limits are" in caught.value.message
