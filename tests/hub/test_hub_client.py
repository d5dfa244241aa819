"""The hub's API as the client asks it, and what its refusals mean (cases 15, 17, 46)."""

import json
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from builder.adapters.hub import HubClient
from builder.digest import Digest
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
from builder.upstream import WantedFile
from tests.hub.conftest import NAME, MakeClient
from tests.standin.hub import StandInHub, blob_id, pointer
from tests.standin.registry import Call, Reply, stand_in

FILES = {
    "sub/ä b%20.txt": b"text\n",
    "model.safetensors": b"weights" * 1000,
    "config.json": b"{}\n",
}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(autouse=True)
def commit(hub: StandInHub) -> str:
    return hub.model(NAME, FILES).refs["main"]


def test_a_branch_stands_for_a_commit(hub: StandInHub, client: HubClient, commit: str) -> None:
    hub.models[NAME].refs["feature/x y"] = commit
    assert client.revision(NAME, "feature/x y").commit == commit
    assert client.revision(NAME, commit).commit == commit
    assert hub.calls[0].path == f"/api/models/{NAME}/revision/feature%2Fx%20y"


def test_a_sha256_is_known_of_lfs_objects_and_a_blob_id_is_kept_apart(
    client: HubClient, commit: str
) -> None:
    files = {file.path: file for file in client.files(NAME, commit)}
    assert list(files) == sorted(FILES)
    weights = files["model.safetensors"]
    digest = Digest.of(FILES["model.safetensors"])
    assert weights.digest == digest
    assert weights.blob.hex == blob_id(pointer(digest.hex, 7000))
    assert weights.size == 7000
    assert files["config.json"].digest is None
    assert files["config.json"].blob.hex == blob_id(b"{}\n")


@pytest.mark.parametrize("page", [1, 2, 3, 4, 5])
def test_a_listing_is_whole_however_many_pages_it_has(
    hub: StandInHub, client: HubClient, commit: str, page: int
) -> None:
    hub.page = page
    assert [file.path for file in client.files(NAME, commit)] == sorted(FILES)


def test_files_are_read_by_commit_whatever_their_names_have_in_them(
    client: HubClient, commit: str
) -> None:
    for path, data in FILES.items():
        assert client.read(NAME, commit, path, limit=7000) == data


def test_a_token_does_not_go_to_the_storage(
    hub: StandInHub, make_client: MakeClient, commit: str
) -> None:
    hub.tokens["hf_good"] = set()
    client = make_client(HF_TOKEN="hf_good")
    assert client.read(NAME, commit, "model.safetensors", limit=7000)
    assert hub.calls[-1].headers["authorization"] == "Bearer hf_good"
    assert "authorization" not in hub.storage.calls[-1].headers


def test_a_file_over_the_limit_is_refused(client: HubClient, commit: str) -> None:
    with pytest.raises(IntegrityError, match="expected at most 6999 bytes, got 7000"):
        client.read(NAME, commit, "model.safetensors", limit=6999)


def test_a_file_without_end_is_not_read_to_its_end(
    hub: StandInHub, client: HubClient, commit: str
) -> None:
    hub.on("GET", ".*/resolve/.*", Reply(body=bytes(256 << 10)))
    with pytest.raises(IntegrityError, match="more than the 65536 bytes"):
        client.read(NAME, commit, "config.json", limit=3)


def test_a_bad_token_is_named_and_public_models_are_asked_for_without_it(
    hub: StandInHub, make_client: MakeClient, commit: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = make_client(HF_TOKEN="hf_stale")
    with caplog.at_level(logging.WARNING, "builder"):
        assert client.revision(NAME, "main").commit == commit
        client.files(NAME, commit)
    assert caplog.messages == [
        f"{hub.endpoint} does not accept the token in HF_TOKEN; asked without it"
    ]
    assert "hf_stale" not in caplog.text
    assert ["authorization" in call.headers for call in hub.calls] == [True, False, False]


def test_a_bad_token_on_a_private_model_is_to_blame(
    hub: StandInHub, make_client: MakeClient
) -> None:
    hub.models[NAME].private = True
    with pytest.raises(AuthError) as caught:
        make_client(HF_TOKEN="hf_stale").revision(NAME, "main")
    assert caught.value.message == (
        f"model {NAME}: {hub.host} answered 401 Unauthorized: Repository not found; neither with"
        " the token in HF_TOKEN nor without one"
    )


def test_a_private_model_is_there_for_who_may_see_it(
    hub: StandInHub, make_client: MakeClient, commit: str
) -> None:
    hub.models[NAME].private = True
    hub.tokens["hf_good"] = set()
    assert make_client(HF_TOKEN="hf_good").revision(NAME, "main").commit == commit
    with pytest.raises(GoneError, match="no such model, or none that you may see"):
        make_client().revision(NAME, "main")


@pytest.mark.parametrize("token", ["", "hf_good"], ids=["nobody", "somebody who has not asked"])
def test_a_gated_model_says_where_its_conditions_are(
    hub: StandInHub, make_client: MakeClient, commit: str, token: str
) -> None:
    hub.models[NAME].gated = True
    hub.tokens["hf_good"] = set()
    client = make_client(HF_TOKEN=token)
    assert client.files(NAME, commit)
    with pytest.raises(AuthError, match="it is gated") as caught:
        client.read(NAME, commit, "config.json", limit=100)
    assert f"{hub.endpoint}/{NAME}" in str(caught.value.hint)


def test_a_gate_says_nothing_against_the_token(hub: StandInHub, make_client: MakeClient) -> None:
    hub.on("GET", "/api/.*", Reply(status=401, headers={"X-Error-Code": "GatedRepo"}))
    with pytest.raises(AuthError, match="it is gated: "):
        make_client(HF_TOKEN="hf_good").revision(NAME, "main")
    assert len(hub.calls) == 1


def test_a_granted_gate_is_open(hub: StandInHub, make_client: MakeClient, commit: str) -> None:
    hub.models[NAME].gated = True
    hub.tokens["hf_good"] = {NAME}
    assert make_client(HF_TOKEN="hf_good").read(NAME, commit, "config.json", limit=9) == b"{}\n"


def test_what_is_not_there_is_gone(hub: StandInHub, make_client: MakeClient, commit: str) -> None:
    hub.tokens["hf_good"] = set()
    client = make_client(HF_TOKEN="hf_good")
    squashed = "0" * 40
    with pytest.raises(GoneError) as caught:
        client.revision(NAME, squashed)
    assert caught.value.message == f"model {NAME}: the hub has no revision {squashed!r}"
    assert "squashed" in str(caught.value.hint)
    with pytest.raises(GoneError) as caught:
        client.revision(NAME, "mian")
    assert caught.value.message == f"model {NAME}: the hub has no revision 'mian'"
    assert caught.value.hint == (
        "the page of the model lists its branches and tags; a commit is 40 hex digits"
    )
    with pytest.raises(GoneError, match="no revision"):
        client.files(NAME, squashed)
    with pytest.raises(GoneError, match=r"README\.md: the hub has no such file"):
        client.read(NAME, commit, "README.md", limit=9)
    with pytest.raises(GoneError, match="no such model"):
        client.revision("Team/Other", "main")


def test_what_another_host_does_not_have_is_not_gone_from_the_hub(
    hub: StandInHub, client: HubClient, commit: str
) -> None:
    with stand_in() as storage:
        elsewhere = {"Location": f"http://{storage.host}/lost"}
        hub.on("GET", ".*/resolve/.*", Reply(status=302, headers=elsewhere))
        with pytest.raises(NetworkError) as caught:
            client.read(NAME, commit, "config.json", limit=9)
        assert caught.value.message == (
            f"model {NAME}: config.json: {storage.host} answered 404 Not Found"
        )
        assert caught.value.hint == "try again; HF_ENDPOINT can name another hub to ask"


def test_a_renamed_model_is_found_and_its_name_told(
    hub: StandInHub, client: HubClient, commit: str
) -> None:
    hub.renamed["Team/Old"] = NAME
    found = client.revision("Team/Old", "main")
    assert (found.repository, found.commit) == (NAME, commit)
    assert len(client.files("Team/Old", commit)) == 3
    assert client.read("Team/Old", commit, "config.json", limit=9) == b"{}\n"


def test_too_many_questions_are_waited_for_as_the_hub_says_and_no_longer(
    hub: StandInHub, client: HubClient, commit: str, naps: list[float]
) -> None:
    hub.on("GET", "/api/.*", Reply(status=429, headers={"Retry-After": "3"}))
    assert client.revision(NAME, "main").commit == commit
    assert naps == [3.0]
    hub.on("GET", "/api/.*", Reply(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(RateLimitError, match="it wants a wait of 3600 s") as caught:
        client.revision(NAME, "main")
    assert "HF_TOKEN" in str(caught.value.hint)
    assert naps == [3.0]


def test_server_errors_are_tried_again_and_then_are_the_networks(
    hub: StandInHub, client: HubClient, commit: str, naps: list[float]
) -> None:
    hub.on("GET", "/api/.*", Reply(status=503), Reply(status=500, body=b"<html>"))
    assert client.revision(NAME, "main").commit == commit
    hub.on("GET", "/api/.*", Reply(status=502), forever=True)
    with pytest.raises(NetworkError, match="answered 502 Bad Gateway"):
        client.revision(NAME, "main")


def test_a_cut_answer_is_asked_for_again(hub: StandInHub, client: HubClient, commit: str) -> None:
    body = b"weights" * 1000
    hub.storage.on("GET", "/objects/.*", Reply(body=body, cut=100))
    assert client.read(NAME, commit, "model.safetensors", limit=7000) == body


def test_a_login_page_is_no_answer(hub: StandInHub, client: HubClient) -> None:
    page = Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=b"<html>Log in</html>")
    hub.on("GET", "/api/.*", page)
    with pytest.raises(NetworkError) as caught:
        client.revision(NAME, "main")
    assert caught.value.message == (
        f"model {NAME}: {hub.endpoint}/api/models/{NAME}/revision/main answers with 'text/html',"
        " wanted JSON"
    )


def test_an_answer_of_no_type_is_none(hub: StandInHub, client: HubClient) -> None:
    hub.on("GET", "/api/.*", Reply(body=b"{}"))
    with pytest.raises(NetworkError, match="answers with 'no type', wanted JSON"):
        client.revision(NAME, "main")


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_asks_nothing(hub: StandInHub, make_client: MakeClient, variable: str) -> None:
    with pytest.raises(OfflineError, match=f"{variable} forbids to ask") as caught:
        make_client(**{variable: "yes"}).revision(NAME, "main")
    assert caught.value.hint == f"run it once without {variable}"
    assert hub.calls == []


def test_offline_nothing_is_downloaded(
    hub: StandInHub, make_client: MakeClient, commit: str, tmp_path: Path
) -> None:
    data = FILES["config.json"]
    file = WantedFile(
        path="config.json",
        digest=Digest.of(data),
        size=len(data),
        target=tmp_path / "config.json",
        part=tmp_path / "part",
    )
    with pytest.raises(OfflineError, match=r"config\.json: HF_HUB_OFFLINE forbids to ask"):
        make_client(HF_HUB_OFFLINE="1").download(NAME, commit, file, lambda _: None)
    assert hub.calls == []


@pytest.mark.parametrize(
    "name",
    ["gpt2", "a/b/c", "../x", "a/..", "a/b..c", "", "a b/c", "a/b?x=1", "-a/b", "a/b\n", "ä/b"],
)
def test_a_name_that_is_none_is_not_asked_for(
    hub: StandInHub, client: HubClient, name: str
) -> None:
    with pytest.raises(ProjectError, match="expected owner/name"):
        client.revision(name, "main")
    assert hub.calls == []


@pytest.mark.parametrize(
    "body, message",
    [
        pytest.param([], "answers with something else", id="a list"),
        pytest.param({"id": NAME}, "gives no object id, but None", id="no sha"),
        pytest.param({"id": NAME, "sha": "main"}, "gives no object id", id="sha is a name"),
        pytest.param({"id": NAME, "sha": "0" * 64}, "gives no object id", id="sha of 64 digits"),
        pytest.param({"id": 7, "sha": "0" * 40}, "gives no name", id="a number"),
        pytest.param({"id": "x", "sha": "0" * 40}, "gives no name", id="no owner"),
        pytest.param({"id": "x/" + "y" * 97, "sha": "0" * 40}, "gives no name", id="no end"),
    ],
)
def test_an_odd_answer_about_a_revision_is_refused(
    hub: StandInHub, client: HubClient, body: object, message: str
) -> None:
    hub.on("GET", "/api/.*", Reply(headers=JSON, body=json.dumps(body).encode()))
    with pytest.raises(IntegrityError, match=message):
        client.revision(NAME, "main")


def test_another_commit_than_the_one_asked_for_is_refused(
    hub: StandInHub, client: HubClient, commit: str
) -> None:
    body = json.dumps({"id": NAME, "sha": "0" * 40}).encode()
    hub.on("GET", "/api/.*", Reply(headers=JSON, body=body))
    with pytest.raises(IntegrityError, match=f"commit {commit} is {'0' * 40} to the hub"):
        client.revision(NAME, commit)


FILE = {"type": "file", "path": "a", "size": 1, "oid": "0" * 40}
LFS = {"oid": "0" * 64, "size": 1, "pointerSize": 1}


@pytest.mark.parametrize(
    "entries, message",
    [
        pytest.param({}, "something else", id="no list"),
        pytest.param(["a"], "something else", id="a text"),
        pytest.param([FILE | {"type": "symlink"}], "something else", id="another type"),
        pytest.param([FILE | {"type": ["file"]}], "something else", id="types"),
        pytest.param([{"path": "a"}], "something else", id="no type"),
        pytest.param([FILE | {"path": 7}], "something else", id="a number for a path"),
        pytest.param([FILE | {"path": "../a"}], "leaves", id="path that leaves"),
        pytest.param([FILE | {"path": "/a"}], "not a plain relative path", id="absolute"),
        pytest.param([FILE | {"path": "a//b"}], "not a plain", id="another spelling"),
        pytest.param([FILE | {"path": "a\nb"}], "not a plain", id="two lines"),
        pytest.param([FILE | {"path": "a\\b"}], "not a plain", id="backslash"),
        pytest.param([FILE | {"size": -1}], "gives no size", id="negative size"),
        pytest.param([FILE | {"size": True}], "gives no size", id="bool size"),
        pytest.param([FILE | {"size": "1"}], "gives no size", id="text size"),
        pytest.param([FILE | {"oid": "x"}], "gives no object id", id="odd blob id"),
        pytest.param([FILE, FILE], "twice", id="twice"),
        pytest.param(
            [FILE | {"path": "a/b/c"}, FILE], r"'a/b/c' below 'a', a file", id="file in a file"
        ),
        pytest.param([FILE | {"lfs": LFS | {"size": 2}}], "two sizes", id="two sizes"),
        pytest.param([FILE | {"lfs": LFS | {"oid": "0" * 40}}], "64 hex", id="blob id as sha256"),
        pytest.param([FILE | {"lfs": "x"}], "two sizes", id="lfs is no object"),
    ],
)
def test_an_odd_listing_is_refused(
    hub: StandInHub, client: HubClient, commit: str, entries: object, message: str
) -> None:
    hub.on("GET", "/api/.*", Reply(headers=JSON, body=json.dumps(entries).encode()))
    with pytest.raises(IntegrityError, match=message):
        client.files(NAME, commit)


@pytest.mark.parametrize(
    "link, kind, message",
    [
        pytest.param("?cursor=0", IntegrityError, "in a circle", id="circle"),
        pytest.param(
            "http://other.invalid/", NetworkError, "goes on at another host", id="another host"
        ),
        pytest.param("http://[", NetworkError, "cannot be followed", id="no address"),
        pytest.param("http://h:x/", NetworkError, "cannot be followed", id="no port"),
    ],
)
def test_a_listing_goes_on_at_the_hub_and_comes_to_an_end(
    hub: StandInHub,
    client: HubClient,
    commit: str,
    link: str,
    kind: type[BuilderError],
    message: str,
) -> None:
    headers = JSON | {"Link": f'<{link}>; rel="next"'}
    hub.on("GET", "/api/.*", Reply(headers=headers, body=b"[]"), forever=True)
    with pytest.raises(kind, match=message):
        client.files(NAME, commit)


def test_a_listing_of_more_files_than_any_model_has_is_refused(
    hub: StandInHub, client: HubClient, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.adapters.hub._FILE_LIMIT", len(FILES))
    assert len(client.files(NAME, commit)) == len(FILES)
    monkeypatch.setattr("builder.adapters.hub._FILE_LIMIT", len(FILES) - 1)
    with pytest.raises(IntegrityError) as caught:
        client.files(NAME, commit)
    assert caught.value.message == f"model {NAME}: over {len(FILES) - 1} files"


def test_a_listing_of_ever_more_pages_is_not_read_to_its_end(
    hub: StandInHub, client: HubClient, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.adapters.hub._PAGES_LIMIT", 20)
    pages = count(1)

    def page(_: Call) -> Reply:
        if (number := next(pages)) > 30:
            return Reply(status=500)
        body = json.dumps([{"type": "directory", "path": f"d{number}"}]).encode()
        return Reply(headers=JSON | {"Link": f'<?cursor={number}>; rel="next"'}, body=body)

    hub.on("GET", "/api/.*", page, forever=True)
    with pytest.raises(IntegrityError) as caught:
        client.files(NAME, commit)
    assert caught.value.message == f"model {NAME}: the hub's listing has over 20 pages"
    assert next(pages) == 21


def test_a_mirror_may_name_the_hub_itself_in_its_pages(
    hub: StandInHub, client: HubClient, commit: str
) -> None:
    link = f"https://huggingface.co/api/models/{NAME}/tree/{commit}?recursive=true&cursor=0"
    hub.on(
        "GET",
        "/api/.*",
        Reply(headers=JSON | {"Link": f'<{link}>; rel="next"'}, body=b"[]"),
    )
    assert len(client.files(NAME, commit)) == 3


def test_a_file_of_another_commit_is_refused(
    hub: StandInHub, client: HubClient, commit: str
) -> None:
    hub.on("GET", ".*/resolve/.*", Reply(headers={"X-Repo-Commit": "0" * 40}, body=b"{}\n"))
    with pytest.raises(IntegrityError, match=f"wanted it of commit {commit}, got it of"):
        client.read(NAME, commit, "config.json", limit=9)


def test_a_hub_that_cannot_be_reached_has_a_next_step_of_its_own(make_client: MakeClient) -> None:
    """Settings of registries do not move it."""
    client = make_client(HF_ENDPOINT="http://127.0.0.1:1")
    with pytest.raises(NetworkError) as caught:
        client.revision(NAME, "main")
    assert caught.value.hint == "try again; HF_ENDPOINT can name another hub to ask"


def test_a_client_that_is_closed_leaves_no_connection(make_client: MakeClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        server.settimeout(10)
        client = make_client(HF_ENDPOINT=f"http://127.0.0.1:{server.getsockname()[1]}")
        asking = pool.submit(client.revision, NAME, "main")
        connection, _ = server.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            assert isinstance(asking.exception(), GoneError)
            client.close()
            assert connection.recv(1) == b""


def test_a_file_that_is_gone_has_no_mirror(client: HubClient, commit: str) -> None:
    with pytest.raises(GoneError) as caught:
        client.read(NAME, commit, "nothing.json", limit=10)
    assert caught.value.hint is not None
    assert "builder.yaml" not in caught.value.hint
