"""Docker's config.json and its helpers."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from builder.adapters.registry import credentials
from builder.adapters.registry.credentials import Credentials, DockerConfig
from builder.errors import AuthError, BuilderError, EnvironmentFault, ProjectError


def pair(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(directory: Path, document: Any) -> DockerConfig:
    path = directory / "config.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return DockerConfig(path)


def known(found: Credentials | None) -> tuple[str, str, str] | None:
    if found is None:
        return None
    return found.username, found.password, found.identity_token


@pytest.mark.parametrize(
    ("host", "key", "entry", "wanted"),
    [
        pytest.param("ghcr.io", "ghcr.io", {"auth": pair("a:b:c")}, ("a", "b:c", ""), id="plain"),
        pytest.param(
            "ghcr.io", "https://ghcr.io/v1/", {"auth": pair("a:b")}, ("a", "b", ""), id="a URL"
        ),
        pytest.param(
            "registry-1.docker.io",
            "https://index.docker.io/v1/",
            {"auth": pair("a:b")},
            ("a", "b", ""),
            id="the hub's old name",
        ),
        pytest.param(
            "registry-1.docker.io", "docker.io", {"auth": pair("a:b")}, ("a", "b", ""), id="podman"
        ),
        pytest.param(
            "ghcr.io", "ghcr.io", {"username": "a", "password": "ü"}, ("a", "ü", ""), id="in clear"
        ),
        pytest.param(
            "ghcr.io",
            "ghcr.io",
            {"auth": pair("<token>:"), "identitytoken": "t"},
            ("<token>", "", "t"),
            id="an identity token",
        ),
        pytest.param("ghcr.io", "ghcr.io", {}, None, id="an entry without content"),
        pytest.param("ghcr.io", "ghcr.io:443", {"auth": pair("a:b")}, None, id="another port"),
    ],
)
def test_inline_credentials(
    tmp_path: Path, host: str, key: str, entry: dict[str, str], wanted: tuple[str, str, str] | None
) -> None:
    assert known(config(tmp_path, {"auths": {key: entry}}).get(host)) == wanted


def test_no_file_and_no_path_are_no_credentials(tmp_path: Path) -> None:
    assert DockerConfig(tmp_path / "missing").get("ghcr.io") is None
    assert DockerConfig(None).get("ghcr.io") is None


def test_credentials_do_not_show_their_secrets() -> None:
    shown = repr(Credentials(username="alice", password="s3cret", identity_token="t0ken"))
    assert shown == "Credentials(username='alice', source='')"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param("[]", ": expected an object, got list", id="a list"),
        pytest.param('{"auths": []}', None, id="empty sections count as none"),
        pytest.param('{"auths": [1]}', ": auths: expected an object, got list", id="auths"),
        pytest.param(
            '{"auths": {"ghcr.io": "x"}}',
            ": auths['ghcr.io']: expected an object, got str",
            id="an entry",
        ),
        pytest.param(
            '{"auths": {"ghcr.io": {"auth": "s3cret!"}}}',
            ": auths['ghcr.io'].auth: expected 'user:password' in base64",
            id="not base64",
        ),
        pytest.param(
            '{"credsStore": "../evil"}',
            ": expected the name of a credential helper, got '../evil'",
            id="a path as helper",
        ),
    ],
)
def test_a_file_that_docker_does_not_write(
    tmp_path: Path, document: str, message: str | None
) -> None:
    docker = config(tmp_path, document)
    if message is None:
        assert docker.get("ghcr.io") is None
        return
    with pytest.raises(ProjectError) as caught:
        docker.get("ghcr.io")
    assert caught.value.message == f"{tmp_path}/config.json{message}"


class TestHelper:
    """docker-credential-NAME."""

    @pytest.fixture(autouse=True)
    def _helpers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = tmp_path
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def install(self, name: str, script: str) -> None:
        path = self.directory / f"docker-credential-{name}"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def config(self, **document: Any) -> DockerConfig:
        return config(self.directory, document)

    def test_a_helper_that_may_not_be_run_is_named(self) -> None:
        (self.directory / "docker-credential-keys").write_text("#!/bin/sh\n")
        with pytest.raises(EnvironmentFault) as caught:
            self.config(credsStore="keys").get("ghcr.io")
        assert caught.value.message == (
            f"{self.directory}/config.json: the credential helper 'docker-credential-keys' cannot"
            " be run: Permission denied"
        )

    def test_the_helper_of_the_host_wins_and_is_asked_once(self) -> None:
        self.install(
            "one",
            f'echo "$1 $(cat)" >> {self.directory}/asked\n'
            'echo \'{"ServerURL":"x","Username":"alice","Secret":"s"}\'',
        )
        docker = self.config(
            credHelpers={"ghcr.io": "one"}, credsStore="none", auths={"ghcr.io": {}}
        )
        assert known(docker.get("ghcr.io")) == ("alice", "s", "")
        assert known(docker.get("ghcr.io")) == ("alice", "s", "")
        assert (self.directory / "asked").read_text() == "get ghcr.io\n"

    def test_the_store_is_asked_for_the_hub_under_its_old_name(self) -> None:
        self.install("keys", 'read u; echo "{\\"Username\\":\\"<token>\\",\\"Secret\\":\\"$u\\"}"')
        docker = self.config(credsStore="keys")
        assert known(docker.get("registry-1.docker.io")) == ("", "", "https://index.docker.io/v1/")

    def test_a_helper_without_a_secret_has_none(self) -> None:
        self.install("keys", 'echo "{\\"Username\\":\\"alice\\",\\"Secret\\":\\"\\"}"')
        assert self.config(credsStore="keys").get("ghcr.io") is None

    def test_where_the_helper_has_none_the_file_is_looked_at(self) -> None:
        self.install("keys", "echo credentials not found in native keychain; exit 1")
        docker = self.config(credsStore="keys", auths={"ghcr.io": {"auth": pair("a:b")}})
        assert known(docker.get("ghcr.io")) == ("a", "b", "")
        assert docker.get("quay.io") is None

    @pytest.mark.parametrize(
        ("script", "kind", "message"),
        [
            pytest.param(
                None,
                EnvironmentFault,
                "{path}: the credential helper 'docker-credential-keys' is not installed",
                id="not installed",
            ),
            pytest.param(
                "echo s3cret; exit 3",
                AuthError,
                "docker-credential-keys: status 3 for 'ghcr.io'",
                id="failing",
            ),
            pytest.param(
                "echo s3cret",
                AuthError,
                "docker-credential-keys: expected a JSON object with Username and Secret",
                id="babbling",
            ),
            pytest.param(
                "exec sleep 5",
                AuthError,
                "docker-credential-keys: no answer for 'ghcr.io' after 0 s",
                id="hanging",
            ),
        ],
    )
    def test_a_helper_that_does_not_help(
        self,
        monkeypatch: pytest.MonkeyPatch,
        script: str | None,
        kind: type[BuilderError],
        message: str,
    ) -> None:
        if script is not None:
            self.install("keys", script)
        if script == "exec sleep 5":
            monkeypatch.setattr(credentials, "_HELPER_TIMEOUT", 0.2)
        with pytest.raises(kind) as caught:
            self.config(credsStore="keys").get("ghcr.io")
        assert caught.value.message == message.format(path=self.directory / "config.json")
        assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"
