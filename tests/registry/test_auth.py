"""Logging in: what is sent to whom, and what is said when it is refused (case 46)."""

import base64
import io
import json
import logging
import threading
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from builder.adapters.registry.auth import Challenge, parse_challenges
from builder.adapters.registry.client import RegistryClient
from builder.errors import AuthError, NetworkError
from builder.oci import OCI_MANIFEST
from builder.reference import Reference
from tests.registry.conftest import Clock, DockerLogin, MakeClient
from tests.registry.images import tiny_image
from tests.standin.registry import Call, Reply, StandIn

IMAGE = tiny_image()
DIGEST = IMAGE.manifest.digest


class TokenService:
    """A registry that wants tokens, and the service that gives them."""

    def __init__(self, registry: StandIn, service: StandIn, *, users: str | None = None) -> None:
        self.registry, self.service = registry, service
        self.users = users
        self.given: list[str] = []
        self.valid: dict[str, str] = {}
        self.lifetime: int | None = 300
        registry.add_manifest("team/app", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag="t")
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH"):
            registry.on(method, "/v2/.*", self.guard, forever=True)
        service.on("GET", "/token", self.give, forever=True)
        service.on("POST", "/token", self.give, forever=True)

    def guard(self, call: Call) -> Reply | None:
        name = call.path.split("/manifests/")[0].split("/blobs/")[0].removeprefix("/v2/")
        actions = "pull" if call.method in ("GET", "HEAD") else "pull,push"
        scope = f"repository:{name}:{actions}"
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        if scope.removesuffix("pull").rstrip(",") in self.valid.get(token, "-"):
            return None
        realm = f"http://{self.service.host}/token"
        return Reply(
            status=401,
            headers={"WWW-Authenticate": f'Bearer realm="{realm}",service="reg",scope="{scope}"'},
            body=b'{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}',
        )

    def give(self, call: Call) -> Reply:
        query = parse_qs(call.body.decode()) if call.method == "POST" else call.query
        if self.users is not None and call.headers.get("authorization") != self.users:
            return Reply(status=401, body=b'{"details":"incorrect username or password"}')
        token = f"token-{len(self.given) + 1}"
        self.given.append(" ".join(query["scope"]))
        self.valid[token] = self.given[-1]
        answer: dict[str, object] = {"token": token}
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
        return Reply(body=json.dumps(answer).encode())


@pytest.fixture
def tokens(registry: StandIn, other: StandIn) -> TokenService:
    return TokenService(registry, other)


def tag(server: StandIn) -> Reference:
    return Reference.parse(f"{server.host}/team/app:t")


def basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


@pytest.mark.parametrize(
    ("header", "challenges"),
    [
        pytest.param(
            'Bearer realm="https://auth.example/token",service="r",scope="repository:a:pull,push"',
            [
                (
                    "bearer",
                    {
                        "realm": "https://auth.example/token",
                        "service": "r",
                        "scope": "repository:a:pull,push",
                    },
                )
            ],
            id="a comma within a quoted string",
        ),
        pytest.param(
            'BEARER Realm = "a\\"b" , service=x, Basic realm="y"',
            [("bearer", {"realm": 'a"b', "service": "x"}), ("basic", {"realm": "y"})],
            id="two challenges, escapes, blanks, bare values",
        ),
        pytest.param(
            'Bearer realm="a",realm="b"', [("bearer", {"realm": "a"})], id="a name twice: the first"
        ),
        pytest.param("Negotiate, Basic", [("negotiate", {}), ("basic", {})], id="bare schemes"),
        pytest.param('Bearer realm="unclosed', [("bearer", {})], id="an open string"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_challenges_are_read(header: str, challenges: list[tuple[str, dict[str, str]]]) -> None:
    assert parse_challenges(header) == tuple(Challenge(*challenge) for challenge in challenges)


def test_one_token_serves_all_reads_of_a_repository(
    client: RegistryClient, registry: StandIn, other: StandIn, tokens: TokenService
) -> None:
    client.resolve(tag(registry))
    client.manifest(tag(registry))
    client.has_blob(tag(registry), IMAGE.manifest.config)
    assert tokens.given == ["repository:team/app:pull"]
    assert other.calls[0].query == {"service": ["reg"], "scope": ["repository:team/app:pull"]}
    assert "authorization" not in other.calls[0].headers
    assert [call.headers.get("authorization") for call in registry.calls] == [
        None,
        "Bearer token-1",
        "Bearer token-1",
        "Bearer token-1",
    ]


def test_a_token_that_expires_is_fetched_anew_before_it_is_refused(
    client: RegistryClient, registry: StandIn, tokens: TokenService, clock: Clock
) -> None:
    client.resolve(tag(registry))
    clock.seconds += 294
    client.resolve(tag(registry))
    assert len(tokens.given) == 1
    clock.seconds += 1
    client.resolve(tag(registry))
    assert len(tokens.given) == 2
    assert registry.calls[-1].headers["authorization"] == "Bearer token-2"


def test_a_token_without_a_lifetime_lives_for_a_minute(
    client: RegistryClient, registry: StandIn, tokens: TokenService, clock: Clock
) -> None:
    tokens.lifetime = None
    client.resolve(tag(registry))
    clock.seconds += 60
    client.resolve(tag(registry))
    assert len(tokens.given) == 2


def test_a_token_for_ever_lives_for_a_day(
    client: RegistryClient, registry: StandIn, tokens: TokenService, clock: Clock
) -> None:
    tokens.lifetime = 10**400
    for _ in range(2):
        client.resolve(tag(registry))
        assert len(tokens.given) == 1
        clock.seconds += 24 * 60 * 60 - 6
    client.resolve(tag(registry))
    assert len(tokens.given) == 2


def test_a_token_that_is_refused_is_replaced_once(
    client: RegistryClient, registry: StandIn, tokens: TokenService
) -> None:
    client.resolve(tag(registry))
    tokens.valid.clear()
    assert client.resolve(tag(registry)).digest == DIGEST
    assert len(tokens.given) == 2


def test_a_token_that_never_helps_is_an_error_and_no_loop(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    other.on("GET", "/token", Reply(body=b'{"access_token":"useless"}'), forever=True)
    TokenService(registry, other)
    with pytest.raises(AuthError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} answered 401 Unauthorized: UNAUTHORIZED:"
        " authentication required"
    )
    assert caught.value.hint == (
        f"no credentials for {registry.host} in docker's config.json (none was given): run"
        f" 'docker login {registry.host}'; registries also answer so where the repository does"
        " not exist"
    )
    assert len(registry.calls) == 2


def test_threads_share_one_token(
    client: RegistryClient, registry: StandIn, tokens: TokenService
) -> None:
    threads = [threading.Thread(target=client.resolve, args=(tag(registry),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tokens.given == ["repository:team/app:pull"]
    assert len(registry.calls) <= 12


def test_a_mount_asks_for_both_repositories(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    blob = registry.add_blob("base/image", b"layer")
    source = Reference.parse(f"{registry.host}/base/image")
    registry.on(
        "POST",
        ".*",
        Reply(
            status=401,
            headers={"WWW-Authenticate": f'Bearer realm="http://{other.host}/token"'},
        ),
    )
    tokens = TokenService(registry, other)
    assert client.mount(tag(registry), blob, source=source)
    assert tokens.given == ["repository:team/app:pull,push repository:base/image:pull"]


def test_a_push_takes_one_token_from_its_first_question_on(
    client: RegistryClient, registry: StandIn, tokens: TokenService
) -> None:
    client.push_blob(tag(registry), IMAGE.manifest.config, io.BytesIO(IMAGE.config))
    client.push_manifest(tag(registry), IMAGE.manifest)
    assert tokens.given == ["repository:team/app:pull,push"]
    assert [call.method for call in registry.calls] == ["HEAD", "HEAD", "POST", "PUT", "PUT"]


def test_credentials_go_to_the_token_service_and_not_to_the_registry(
    make_client: MakeClient,
    registry: StandIn,
    other: StandIn,
    tokens: TokenService,
    docker_config: DockerLogin,
) -> None:
    tokens.users = basic("alice:secret")
    client = make_client(docker_config=docker_config({registry.host: "alice:secret"}))
    client.resolve(tag(registry))
    assert other.calls[0].query["account"] == ["alice"]
    assert {call.headers.get("authorization") for call in registry.calls} == {
        None,
        "Bearer token-1",
    }


def test_credentials_that_are_refused_are_an_error_also_for_a_public_repository(
    make_client: MakeClient, registry: StandIn, tokens: TokenService, docker_config: DockerLogin
) -> None:
    tokens.users = basic("alice:secret")
    path = docker_config({registry.host: "alice:wrong"})
    with pytest.raises(AuthError) as caught:
        make_client(docker_config=path).resolve(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: the credentials of 'alice' from {path} are not accepted:"
        f" {tokens.service.host} answered 401 Unauthorized: incorrect username or password"
    )
    assert caught.value.hint == (
        f"run 'docker login {registry.host}' again; 'docker logout {registry.host}' where the"
        " repository is public"
    )
    assert len(registry.calls) == 1


def test_an_identity_token_is_exchanged_by_post(
    make_client: MakeClient, registry: StandIn, other: StandIn, tmp_path: Path, tokens: TokenService
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"auths": {registry.host: {"identitytoken": "refresh"}}}))
    make_client(docker_config=path).resolve(tag(registry))
    assert other.calls[0].method == "POST"
    assert parse_qs(other.calls[0].body.decode()) == {
        "grant_type": ["refresh_token"],
        "service": ["reg"],
        "client_id": ["builder"],
        "scope": ["repository:team/app:pull"],
        "refresh_token": ["refresh"],
    }


@pytest.mark.parametrize(
    ("realm", "message"),
    [
        pytest.param(
            "http://auth.example/token?x=1",
            "the token service http://auth.example/token is not reached over TLS, refused",
            id="elsewhere without TLS",
        ),
        pytest.param("", "the challenge names no token service", id="nowhere"),
        pytest.param("ftp://a/b", "the challenge names no token service", id="another scheme"),
    ],
)
def test_a_token_service_that_is_not_asked(
    client: RegistryClient, registry: StandIn, realm: str, message: str
) -> None:
    challenge = {"WWW-Authenticate": f'Bearer realm="{realm}"'}
    registry.on("GET", ".*", Reply(status=401, headers=challenge))
    with pytest.raises(AuthError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == f"{tag(registry)}: {message}"


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"{}", b'{"token":""}', b'{"token":"a\\r\\nX: y"}', b'{"token":7}'],
    ids=["a page", "no token", "an empty token", "a header in it", "a number"],
)
def test_a_token_that_is_none(
    client: RegistryClient, registry: StandIn, other: StandIn, body: bytes
) -> None:
    other.on("GET", "/token", Reply(body=body))
    TokenService(registry, other)
    with pytest.raises(AuthError) as caught:
        client.resolve(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: the token of {other.host}: expected a JSON object with 'token' or"
        " 'access_token'"
    )


class TestBasic:
    """Registries without a token service."""

    @pytest.fixture(autouse=True)
    def _wants_alice(self, registry: StandIn) -> None:
        registry.add_manifest("team/app", IMAGE.manifest.raw, media_type=OCI_MANIFEST, tag="t")

        def guard(call: Call) -> Reply | None:
            if call.headers.get("authorization") == basic("alice:secret"):
                return None
            return Reply(status=401, headers={"WWW-Authenticate": 'Basic realm="here"'})

        registry.on("HEAD", ".*", guard, forever=True)

    def test_the_password_is_sent_once_it_is_asked_for(
        self, make_client: MakeClient, registry: StandIn, docker_config: DockerLogin
    ) -> None:
        client = make_client(docker_config=docker_config({registry.host: "alice:secret"}))
        client.resolve(tag(registry))
        client.resolve(tag(registry))
        assert [call.headers.get("authorization") for call in registry.calls] == [
            None,
            basic("alice:secret"),
            basic("alice:secret"),
        ]

    def test_a_wrong_password_is_said_to_be_one(
        self, make_client: MakeClient, registry: StandIn, docker_config: DockerLogin
    ) -> None:
        path = docker_config({registry.host: "alice:wrong"})
        with pytest.raises(AuthError) as caught:
            make_client(docker_config=path).resolve(tag(registry))
        assert caught.value.message == (
            f"{tag(registry)}: the credentials of 'alice' from {path} are not accepted:"
            f" {registry.host} refused"
        )
        assert len(registry.calls) == 2

    def test_a_password_that_was_refused_is_not_sent_unasked(
        self, make_client: MakeClient, registry: StandIn, docker_config: DockerLogin
    ) -> None:
        client = make_client(docker_config=docker_config({registry.host: "alice:wrong"}))
        with pytest.raises(AuthError):
            client.resolve(tag(registry))
        client.manifest(tag(registry))  # a GET, which asks for nothing
        assert "authorization" not in registry.calls[-1].headers

    def test_without_credentials_the_hint_says_where_they_were_looked_for(
        self, make_client: MakeClient, registry: StandIn, docker_config: DockerLogin
    ) -> None:
        path = docker_config({"ghcr.io": "alice:secret"})
        with pytest.raises(AuthError) as caught:
            make_client(docker_config=path).resolve(tag(registry))
        assert caught.value.message == (
            f"{tag(registry)}: {registry.host} wants a user name and a password"
        )
        assert caught.value.hint == (
            f"no credentials for {registry.host} in {path}: run 'docker login {registry.host}';"
            " registries also answer so where the repository does not exist"
        )

    def test_netrc_is_not_read(
        self,
        client: RegistryClient,
        registry: StandIn,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login alice password secret\n")
        monkeypatch.setenv("NETRC", str(netrc))
        with pytest.raises(AuthError):
            client.resolve(tag(registry))
        assert "authorization" not in registry.calls[0].headers


def test_forbidden_says_whose_credentials_lack_the_right(
    make_client: MakeClient, registry: StandIn, docker_config: DockerLogin
) -> None:
    body = b'{"errors":[{"code":"DENIED","message":"requested access is denied"}]}'
    registry.on("GET", ".*", Reply(status=403, body=body))
    path = docker_config({registry.host: "alice:secret"})
    with pytest.raises(AuthError) as caught:
        make_client(docker_config=path).manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} answered 403 Forbidden: DENIED: requested access is"
        " denied"
    )
    assert caught.value.hint == (
        f"the credentials from {path} lack the right; run 'docker login {registry.host}' as"
        " another user"
    )


def test_of_two_challenges_of_one_scheme_the_first_is_answered(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    first, second = (f'Bearer realm="http://{other.host}/{n}"' for n in ("token", "second"))
    registry.on("HEAD", ".*", Reply(status=401, headers={"WWW-Authenticate": f"{first}, {second}"}))
    TokenService(registry, other)
    client.resolve(tag(registry))
    assert other.asked() == ["GET /token"]


def test_what_storage_asks_for_is_not_answered(
    make_client: MakeClient, registry: StandIn, other: StandIn, docker_config: DockerLogin
) -> None:
    """Whoever a registry redirects to is not the registry: it is told no password of that."""
    blob = registry.add_blob("team/app", b"bytes")
    to_storage = {"Location": f"http://{other.host}/bytes"}
    registry.on("GET", ".*", Reply(status=307, headers=to_storage), forever=True)
    for challenge in ('Basic realm="x"', f'Bearer realm="http://{other.host}/token"'):
        wants = Reply(status=401, headers={"WWW-Authenticate": challenge})
        other.on("GET", "/bytes", wants, wants)
    client = make_client(docker_config=docker_config({registry.host: "alice:secret"}), attempts=2)
    for _ in range(2):
        with pytest.raises(NetworkError, match="401 Unauthorized"):
            list(client.blob(tag(registry), blob))
    assert other.asked() == ["GET /bytes"] * 4
    assert not [call for call in (*registry.calls, *other.calls) if "authorization" in call.headers]


def test_an_unknown_scheme_is_named(client: RegistryClient, registry: StandIn) -> None:
    registry.on("GET", ".*", Reply(status=401, headers={"WWW-Authenticate": "Negotiate"}))
    with pytest.raises(AuthError) as caught:
        client.manifest(tag(registry))
    assert caught.value.message == (
        f"{tag(registry)}: {registry.host} asks for negotiate, known are Bearer and Basic"
    )


def test_nothing_secret_is_logged(
    make_client: MakeClient,
    registry: StandIn,
    tokens: TokenService,
    docker_config: DockerLogin,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="builder")
    tokens.users = basic("alice:s3cret")
    client = make_client(docker_config=docker_config({registry.host: "alice:s3cret"}))
    client.manifest(tag(registry))
    assert "a token for repository:team/app:pull" in caplog.text
    for secret in ("s3cret", basic("alice:s3cret"), "token-1", "account="):
        assert secret not in "".join(
            record.getMessage() for record in caplog.records if record.name.startswith("builder")
        )
