"""What GitHub's API says of a pull request, and every way in which it can say something else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.adapters.forge import ForgeClient
from builder.adapters.forge_hosts import locate, token_for
from builder.cli.settings import Settings
from builder.cli.world import open_project, open_world
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
from builder.upstream import PullFacts
from tests.fakes import FakeForge
from tests.registry.conftest import Clock
from tests.standin.github import JSON, GitHub, github, pull_document, told
from tests.standin.registry import Reply, stand_in

URL = "https://github.com/acme/vllm"
AT = f"{URL}: pull request 7"
HEAD, MERGE = "a" * 40, "b" * 40


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with github() as server:
        server.pulls["acme/vllm", 7] = pull_document(7, head=HEAD)
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def client(
    hub: GitHub | str, clock: Clock, *, token: str | None = None, **others: str
) -> ForgeClient:
    api = hub if isinstance(hub, str) else hub.api
    apis = {"github.com": api, **{host.replace("_", "."): at for host, at in others.items()}}
    return ForgeClient(apis, token=token, offline=False, sleep=clock.sleep, now=clock.now)


@pytest.mark.parametrize(
    "fields, state, merge",
    [
        pytest.param({}, "open", None, id="open"),
        pytest.param({"state": "closed"}, "closed", None, id="closed"),
        pytest.param(
            {"state": "closed", "merged": True, "merge_commit_sha": MERGE},
            "merged",
            MERGE,
            id="merged",
        ),
        pytest.param({"merge_commit_sha": None}, "open", None, id="open with conflicts"),
        pytest.param({"draft": True, "score": 1.5}, "open", None, id="fields that nobody reads"),
    ],
)
def test_what_the_api_says_is_taken_over(
    hub: GitHub, clock: Clock, fields: dict[str, Any], state: str, merge: str | None
) -> None:
    hub.pulls["acme/vllm", 7] = pull_document(7, head=HEAD, **fields)
    assert client(hub, clock).pull(URL, 7) == PullFacts(
        title="Fix it", state=state, base_ref="main", head=HEAD, merge_commit=merge
    )
    assert hub.server.asked() == ["GET /repos/acme/vllm/pulls/7"]
    (call,) = hub.server.calls
    assert call.headers["accept"] == "application/vnd.github+json"
    assert call.headers["user-agent"].startswith("builder/")


def test_nobody_is_asked_about_a_host_without_an_api(hub: GitHub, clock: Clock) -> None:
    assert client(hub, clock).pull("https://git.example/acme/vllm", 7) is None
    assert hub.server.calls == []


def test_offline_asks_nobody(hub: GitHub) -> None:
    with pytest.raises(OfflineError):
        ForgeClient({"github.com": hub.api}, token=None, offline=True).pull(URL, 7)
    assert hub.server.calls == []


def test_a_repository_that_was_renamed_is_followed_with_the_token(
    hub: GitHub, clock: Clock
) -> None:
    hub.moved["acme/vllm"], hub.ids[12] = 12, "other/vllm-next"
    hub.pulls["other/vllm-next", 7] = pull_document(7, head=MERGE)
    hub.tokens.add("secret")
    facts = client(hub, clock, token="secret").pull(URL, 7)
    assert facts is not None
    assert facts.head == MERGE
    assert hub.sent_tokens == ["Bearer secret"] * 2


def test_a_redirect_to_another_host_gets_no_token(hub: GitHub, clock: Clock) -> None:
    with github() as other:
        other.pulls["acme/vllm", 7] = pull_document(7, head=MERGE)
        place = f"{other.api}/repos/acme/vllm/pulls/7"
        hub.first(Reply(status=301, headers={"Location": place}))
        facts = client(hub, clock, token="secret").pull(URL, 7)
        assert facts is not None
        assert facts.head == MERGE
        assert (hub.sent_tokens, other.sent_tokens) == (["Bearer secret"], [None])


@pytest.mark.parametrize(
    "repository, apis, sent",
    [
        pytest.param(URL, ["github.com"], True, id="the only one, which is github.com"),
        pytest.param("https://ghe.example/a/b", ["ghe.example"], True, id="the only one"),
        pytest.param("https://ghe.example/a/b", ["ghe.example", "x.example"], False, id="of two"),
        pytest.param(URL, ["github.com", "ghe.example"], True, id="github.com of two"),
    ],
)
def test_the_token_goes_to_one_host_alone(
    hub: GitHub, clock: Clock, repository: str, apis: list[str], sent: bool
) -> None:
    hub.pulls["a/b", 7] = pull_document(7, head=HEAD)
    hub.tokens.add("secret")
    asker = ForgeClient(
        dict.fromkeys(apis, hub.api),
        token="secret\n",
        offline=False,
        sleep=clock.sleep,
        now=clock.now,
    )
    assert asker.pull(repository, 7)
    assert hub.sent_tokens == ["Bearer secret" if sent else None]


def test_a_token_for_a_host_of_ours_does_not_go_to_github() -> None:
    place = locate(URL, {})
    assert place is not None
    assert token_for(place, {"ghe.example": "https://ghe.example/api/v3"}, "s", at="x") is None
    assert token_for(place, {}, "s", at="x") == "s"
    assert token_for(place, {}, "", at="x") is None


def test_a_server_error_that_passes_is_not_noticed(hub: GitHub, clock: Clock) -> None:
    hub.first(told(502, "Server Error"))
    assert client(hub, clock).pull(URL, 7)
    assert clock.naps == [0.5]


def test_a_server_error_that_stays_is_a_network_error(hub: GitHub, clock: Clock) -> None:
    hub.first(*[told(503, "Unavailable")] * 9)
    with pytest.raises(NetworkError) as caught:
        client(hub, clock).pull(URL, 7)
    assert not isinstance(caught.value, AuthError | RateLimitError | OfflineError)
    assert caught.value.message == (
        f"{AT}: {hub.server.host} answered 503 Service Unavailable: Unavailable"
    )


@pytest.mark.parametrize(
    "answer, nap",
    [
        pytest.param(
            told(
                403, "API rate limit exceeded", X_RateLimit_Remaining="0", X_RateLimit_Reset="1009"
            ),
            10.0,
            id="nothing remains",
        ),
        pytest.param(told(429, "Too many", Retry_After="20"), 20.0, id="a wait in seconds"),
        pytest.param(
            told(403, "You have exceeded a secondary rate limit", Retry_After="3"),
            3.0,
            id="the secondary limit",
        ),
        pytest.param(
            told(429, "x", X_RateLimit_Remaining="0", X_RateLimit_Reset="5"), 1.0, id="long past"
        ),
    ],
)
def test_a_short_wait_is_waited(hub: GitHub, clock: Clock, answer: Reply, nap: float) -> None:
    hub.first(answer)
    assert client(hub, clock).pull(URL, 7)
    assert clock.naps == [nap]


@pytest.mark.parametrize(
    "answer, until",
    [
        pytest.param(
            told(403, "x", X_RateLimit_Remaining="0", X_RateLimit_Reset="1799999999"),
            "2027-01-15T08:00:00Z",
            id="the time of the reset",
        ),
        pytest.param(told(429, "x", Retry_After="7200"), "1970-01-01T02:16:40Z", id="two hours"),
        pytest.param(told(429, "x"), "1970-01-01T00:17:41Z", id="no time"),
        pytest.param(
            told(403, "x", X_RateLimit_Remaining="0", X_RateLimit_Reset="soon"),
            "1970-01-01T00:17:41Z",
            id="a time that is none",
        ),
        pytest.param(told(403, "x", Retry_After="9" * 40), "3000-01-01T00:00:00Z", id="for ever"),
    ],
)
def test_a_long_wait_is_an_error_with_the_time(
    hub: GitHub, clock: Clock, answer: Reply, until: str
) -> None:
    hub.first(answer)
    with pytest.raises(RateLimitError) as caught:
        client(hub, clock).pull(URL, 7)
    assert caught.value.message.endswith(f": x; it wants to be asked again at {until}")
    assert caught.value.hint == "wait until then, or set GITHUB_TOKEN: known users may ask more"
    assert clock.naps == []
    hub.tokens.add("t")
    hub.first(answer)
    with pytest.raises(RateLimitError) as caught:
        client(hub, clock, token="t").pull(URL, 7)
    assert caught.value.hint == "wait until then"


def test_waits_that_never_end_are_given_up(hub: GitHub, clock: Clock) -> None:
    hub.first(*[told(429, "x", Retry_After="1")] * 9)
    with pytest.raises(RateLimitError):
        client(hub, clock).pull(URL, 7)
    assert clock.naps == [1.0] * 3


def test_a_pull_request_that_is_not_there_is_gone(hub: GitHub, clock: Clock) -> None:
    with pytest.raises(GoneError) as caught:
        client(hub, clock).pull(URL, 8)
    assert caught.value.message == (
        f"{URL}: pull request 8: {hub.server.host} answered 404 Not Found: Not Found"
    )
    assert caught.value.hint == (
        "there is none of this number, or it is not for everybody to see: set GITHUB_TOKEN"
    )


@pytest.mark.parametrize(
    "status, message", [(401, "Bad credentials"), (403, "Resource not accessible")]
)
def test_a_refusal_is_about_the_token(hub: GitHub, clock: Clock, status: int, message: str) -> None:
    hub.first(told(status, message))
    with pytest.raises(AuthError) as caught:
        client(hub, clock, token="wrong-token").pull(URL, 7)
    assert caught.value.message.endswith(f": {message}")
    assert caught.value.hint == "GITHUB_TOKEN is not accepted, or may not see it: set another"
    assert "wrong-token" not in str(vars(caught.value))


@pytest.mark.parametrize("token", ["two words", "gh\r\nX-Evil: 1", "gh\u00e9", "a\x00b"])
def test_a_token_that_is_none_is_not_sent(hub: GitHub, clock: Clock, token: str) -> None:
    with pytest.raises(AuthError, match="GITHUB_TOKEN holds blanks") as caught:
        client(hub, clock, token=token).pull(URL, 7)
    assert token not in caught.value.message
    assert hub.server.calls == []


@pytest.mark.parametrize(
    "answer, kind, message",
    [
        pytest.param(
            Reply(headers={"Content-Type": "text/html"}, body=b"<html>log in</html>"),
            NetworkError,
            "answered 200 OK with 'text/html', wanted JSON",
            id="HTML",
        ),
        pytest.param(Reply(body=b"{}"), NetworkError, "with 'no type', wanted JSON", id="no type"),
        pytest.param(
            Reply(headers=JSON, body=b'{"number": 7'), IntegrityError, "not JSON", id="cut"
        ),
        pytest.param(Reply(headers=JSON, body=b""), IntegrityError, "not JSON", id="empty"),
        pytest.param(
            Reply(headers=JSON, body=b"[]"),
            IntegrityError,
            "number 'None', expected int",
            id="list",
        ),
        pytest.param(Reply(headers=JSON, body=b"\xff"), IntegrityError, "not JSON", id="not UTF-8"),
        pytest.param(
            Reply(headers=JSON, body=b"[" * 100_000), IntegrityError, "not JSON", id="nested"
        ),
        pytest.param(
            Reply(headers=JSON, body=b" " * (5 << 20)), IntegrityError, "more than the", id="huge"
        ),
        pytest.param(
            Reply(status=302, headers={"Location": "ftp://x/"}),
            NetworkError,
            "cannot be followed",
            id="elsewhere",
        ),
    ],
)
def test_an_answer_that_is_none_is_an_error_and_no_crash(
    hub: GitHub, clock: Clock, answer: Reply, kind: type[BuilderError], message: str
) -> None:
    hub.first(answer)
    with pytest.raises(kind) as caught:
        client(hub, clock).pull(URL, 7)
    assert caught.value.message.startswith(AT)
    assert message in caught.value.message


def test_an_answer_that_breaks_off_is_asked_for_again(hub: GitHub, clock: Clock) -> None:
    hub.first(Reply(headers=JSON, body=b'{"number": 7}', announce=500))
    assert client(hub, clock).pull(URL, 7)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"number": 8}, "the API answers about number 8"),
        ({"number": True}, "number 'True', expected int"),
        ({"state": "odd"}, "the API answers with state 'odd'"),
        ({"merged": "yes"}, "merged 'yes', expected bool"),
        ({"merged": True, "merge_commit_sha": None}, "merge_commit_sha 'None', expected str"),
        ({"head": {"sha": "abc"}}, "the API answers with 'abc' for a commit"),
        ({"head": None}, "head.sha 'None', expected str"),
        ({"base": {"ref": 3}}, "base.ref '3', expected str"),
        ({"title": None}, "title 'None', expected str"),
    ],
)
def test_a_document_of_another_form_is_refused(
    hub: GitHub, clock: Clock, fields: dict[str, Any], message: str
) -> None:
    hub.pulls["acme/vllm", 7] = pull_document(7, head=HEAD) | fields
    with pytest.raises(IntegrityError) as caught:
        client(hub, clock).pull(URL, 7)
    assert caught.value.message.endswith(message)


def test_a_title_has_no_control_characters(hub: GitHub, clock: Clock) -> None:
    hub.pulls["acme/vllm", 7] = pull_document(7, head=HEAD, title="\x1b[31mred\n" + "x" * 900)
    facts = client(hub, clock).pull(URL, 7)
    assert facts is not None
    assert facts.title.startswith("[31mred xxx")
    assert len(facts.title) < 501


def test_a_server_that_is_not_there_is_a_network_error(clock: Clock) -> None:
    with stand_in() as server:
        api = f"http://{server.host}"
    with pytest.raises(NetworkError, match="connection refused"):
        client(api, clock).pull(URL, 7)


@pytest.mark.parametrize(
    "repository",
    [
        *("https://github.com/acme/vllm", "https://github.com/acme/vllm.git"),
        *("https://github.com/acme/vllm/", "https://GitHub.com/acme/vllm"),
        *("https://user@github.com/acme/vllm", "https://github.com:443/acme/vllm.git"),
        *("ssh://git@github.com/acme/vllm", "ssh://git@github.com:22/acme/vllm.git"),
        *("git@github.com:acme/vllm", "git@github.com:acme/vllm.git", "github.com:acme/vllm"),
    ],
)
def test_each_form_of_a_url_is_known(repository: str) -> None:
    found = locate(repository, {})
    assert found is not None
    assert (found.owner, found.name, found.api) == ("acme", "vllm", "https://api.github.com")


@pytest.mark.parametrize(
    "repository",
    [
        *("https://github.com/acme", "https://github.com/acme/vllm/tree/main", "/srv/acme/vllm"),
        *("https://github.com.evil.example/acme/vllm", "https://evil.example/github.com/x"),
        *("https://github.com@evil.example/acme/vllm", "https://github.com/../vllm"),
        *("https://github.com/acme/vllm?x=1", "https://github.com/ac%2fme/vllm", "", ".git"),
        *("https://github.com/acme/..", "https://github.com/acme/.git", "http://github.com/a/b"),
    ],
)
def test_other_urls_have_no_api(repository: str) -> None:
    assert locate(repository, {}) is None


@settings(max_examples=30)
@given(st.text(max_size=40))
def test_no_url_is_a_crash(text: str) -> None:
    for repository in (text, f"https://github.com/{text}", f"git@github.com:{text}"):
        found = locate(repository, {})
        assert found is None or found.api == "https://api.github.com"


@pytest.mark.parametrize(
    "api, message",
    [
        (
            "http://api.example",
            "'http://api.example' is without TLS, which is for this machine only",
        ),
        ("api.github.com", "expected the address of an API, got 'api.github.com'"),
        ("https://", "expected the address of an API, got 'https://'"),
        ("https://x:99999/", "expected the address of an API, got 'https://x:99999/'"),
        ("https://x/?a=1", "expected the address of an API, got 'https://x/?a=1'"),
        ("https://x/a b", "expected the address of an API, got 'https://x/a b'"),
        ("ftp://x", "expected the address of an API, got 'ftp://x'"),
        ("https://u:secret@x", "holds credentials"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(clock: Clock, api: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        client(api, clock, token="t").pull(URL, 7)
    assert caught.value.message == f"builder.yaml: forges.github.com.api: {message}"


def test_builder_yaml_says_where_the_api_is(hub: GitHub, tmp_path: Path) -> None:
    (tmp_path / "variants").mkdir()
    (tmp_path / "builder.yaml").write_text(
        f"version: 1\nforges: {{github.com: {{api: '{hub.api}'}}}}\n"
    )
    hub.tokens.add("secret")
    settings = Settings(
        directory=tmp_path, store=tmp_path / "store", environment={"GITHUB_TOKEN": "secret"}
    )
    world = open_world(settings, open_project(settings).settings)
    facts = world.forge.pull("git@github.com:acme/vllm.git", 7)
    assert facts is not None
    assert facts.head == HEAD
    assert hub.sent_tokens == ["Bearer secret"]


def test_the_fake_answers_as_the_real_one(hub: GitHub, clock: Clock) -> None:
    real = client(hub, clock)
    facts = real.pull(URL, 7)
    assert facts is not None
    for forge in (real, FakeForge({7: facts})):
        assert forge.pull(URL, 7) == facts
        with pytest.raises(GoneError, match=r"pull request 8: .*404 Not Found"):
            forge.pull(URL, 8)
    for forge in (real, FakeForge(None)):
        assert forge.pull("https://git.example/acme/vllm", 7) is None
