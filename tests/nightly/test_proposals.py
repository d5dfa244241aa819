"""Pull requests at a git host: one a branch, and only what changed is written."""

import json
from collections.abc import Callable

import pytest

from builder.adapters.forge_proposals import ForgeProposals
from builder.adapters.registry.transport import Transport
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
    RateLimitError,
)
from builder.upstream import Proposal
from tests.nightly.forge import TOKEN, Forge, serve
from tests.standin.registry import Reply, stand_in

HEAD = "builder/bump/genesis/patches"
PULLS = "/repos/acme/images/pulls"


def propose(forge: Forge, *, title: str = "bump", body: str = "report\n") -> Proposal:
    client = ForgeProposals(forge.place, token=TOKEN, sleep=lambda _: None)
    return client.open_or_update(head=HEAD, base="main", title=title, body=body)


def test_nothing_stays_open_behind_a_proposal(
    forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Transport] = []

    def close(transport: Transport) -> None:
        closed.append(transport)

    monkeypatch.setattr(Transport, "close", close)
    forge.server.on("GET", PULLS, Reply(status=404))
    serve(forge)
    with pytest.raises(GoneError):
        propose(forge)
    assert len(closed) == 1
    propose(forge)
    assert len(closed) == 2


def test_the_first_time_it_is_opened(forge: Forge) -> None:
    serve(forge)
    assert propose(forge) == Proposal(url="https://forge.test/acme/images/pull/1", state="opened")
    assert forge.writes == [
        ("POST", {"title": "bump", "head": HEAD, "base": "main", "body": "report\n"})
    ]
    call = forge.server.calls[-1]
    assert call.headers["authorization"] == f"Bearer {TOKEN}"
    assert call.headers["x-github-api-version"] == "2022-11-28"


def test_the_same_again_writes_nothing(forge: Forge) -> None:
    serve(forge)
    propose(forge, body="a\nb\n")
    forge.pulls[0]["body"] = "a\r\nb"  # as a person who saved it in a browser leaves it
    assert propose(forge, body="a\nb\n").state == "unchanged"
    assert len(forge.writes) == 1


@pytest.mark.parametrize("change", [{"title": "other"}, {"body": "other\n"}])
def test_another_report_updates_it(change: dict[str, str], forge: Forge) -> None:
    serve(forge)
    propose(forge)
    assert propose(forge, **change).state == "updated"
    fields = {"title": "bump", "body": "report\n"} | change
    assert forge.writes[1:] == [("PATCH", fields)]
    assert len(forge.pulls) == 1


def test_one_that_a_person_closed_is_not_opened_again(forge: Forge) -> None:
    serve(forge)
    forge.add(HEAD, "bump", state="closed")
    assert propose(forge) == Proposal(url=forge.pulls[0]["html_url"], state="closed")
    assert forge.writes == []
    assert propose(forge, title="bump further").state == "opened"


def test_one_that_was_merged_is_done_with(forge: Forge) -> None:
    serve(forge)
    forge.add(HEAD, "bump", state="closed", merged_at="2026-01-01T00:00:00Z")
    assert propose(forge).state == "opened"


def test_of_several_that_for_the_base_is_meant(forge: Forge) -> None:
    serve(forge)
    forge.add(HEAD, "old", base={"ref": "release"})
    forge.add(HEAD, "old")
    forge.add(HEAD, "old", base={"ref": "other"})
    assert propose(forge).url.endswith("/2")


def test_those_of_other_branches_are_not_ours_whatever_the_host_lists(forge: Forge) -> None:
    other = forge.add("builder/bump/genesis/patches-2", "bump")
    forge.server.on("GET", PULLS, Reply(body=json.dumps([other]).encode()))
    serve(forge)
    assert propose(forge).state == "opened"


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (Reply(status=401, body=b'{"message": "Bad credentials"}'), AuthError, "Bad credentials"),
        (
            Reply(status=403, body=b'{"message": "Resource not accessible by integration"}'),
            AuthError,
            "not accessible",
        ),
        (
            Reply(status=403, headers={"X-RateLimit-Remaining": "0"}, body=b"{}"),
            RateLimitError,
            "403",
        ),
        (
            Reply(status=403, body=b'{"message": "You have exceeded a secondary rate limit"}'),
            RateLimitError,
            "secondary",
        ),
        (Reply(status=429), RateLimitError, "429"),
        (Reply(status=404, body=b'{"message": "Not Found"}'), GoneError, "Not Found"),
        (Reply(status=502), NetworkError, "502"),
        (Reply(status=200, body=b"<html>"), IntegrityError, ""),
        (Reply(status=200, body=b"{}"), IntegrityError, "dict, wanted a list"),
        (Reply(status=200, body=b'[{"number": 1}]'), IntegrityError, "no pull request"),
        (Reply(status=200, body=b"[", announce=100), NetworkError, ""),
    ],
    ids=str,
)
def test_what_the_host_refuses_is_of_its_kind(
    reply: Reply, kind: type[BuilderError], said: str, forge: Forge
) -> None:
    forge.server.on("GET", PULLS, reply, forever=True)
    with pytest.raises(kind) as caught:
        propose(forge)
    assert type(caught.value) is kind or issubclass(type(caught.value), kind)
    assert said in caught.value.message
    assert TOKEN not in caught.value.message
    assert [call.method for call in forge.server.calls if call.method != "GET"] == []


def test_fields_that_the_host_refuses_are_named(forge: Forge) -> None:
    body = {"message": "Validation Failed", "errors": [{"message": "No commits between a and b"}]}
    forge.server.on("GET", PULLS, Reply(body=b"[]"))
    forge.server.on("POST", PULLS, Reply(status=422, body=json.dumps(body).encode()))
    with pytest.raises(ProjectError) as caught:
        propose(forge)
    assert caught.value.hint == "No commits between a and b"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"errors": "no"}', b'{"errors": [{"message": 1}]}'])
def test_a_refusal_without_reasons_has_no_hint(body: bytes, forge: Forge) -> None:
    forge.server.on("GET", PULLS, Reply(body=b"[]"))
    forge.server.on("POST", PULLS, Reply(status=422, body=body))
    with pytest.raises(ProjectError) as caught:
        propose(forge)
    assert caught.value.hint is None


def test_an_answer_that_was_lost_opens_no_second_one(forge: Forge) -> None:
    forge.server.on("GET", PULLS, Reply(body=b"[]"))
    forge.server.on("POST", PULLS, Reply(status=502), forever=True)
    with pytest.raises(NetworkError):
        propose(forge)
    assert [call.method for call in forge.server.calls] == ["GET", "POST"]


def redirect(url: str) -> Callable[..., Reply]:
    return lambda _: Reply(status=307, headers={"Location": url})


def test_the_token_stays_where_it_belongs(forge: Forge) -> None:
    with stand_in() as other:
        other.on("GET", ".*", Reply(body=b"[]"), forever=True)
        forge.server.on("GET", PULLS, redirect(f"http://{other.host}/elsewhere"))
        forge.server.on("POST", PULLS, redirect(f"http://{other.host}/elsewhere"))
        with pytest.raises(GoneError) as caught:
            propose(forge)
        assert "the repository has moved" in caught.value.message
        assert [str(call) for call in other.calls] == ["GET /elsewhere"]
        assert "authorization" not in other.calls[0].headers


def test_offline_asks_nobody(forge: Forge) -> None:
    client = ForgeProposals(forge.place, token=TOKEN, offline=True)
    with pytest.raises(OfflineError):
        client.open_or_update(head=HEAD, base="main", title="t", body="b")
    assert forge.server.calls == []


def test_any_text_arrives_as_it_is(forge: Forge) -> None:
    serve(forge)
    body = "| `a\\|b` | → 🎉 |\n```\n```` \u202e\n```\n"
    propose(forge, body=body)
    assert forge.pulls[0]["body"] == body
    assert propose(forge, body=body).state == "unchanged"
