"""What the hub's own variables say."""

from pathlib import Path

import pytest

from builder.adapters.hub_settings import OFFICIAL, HubSettings
from builder.errors import EnvironmentFault

NO_FILE = {"HF_TOKEN_PATH": "/nonexistent/token"}


def test_without_any_the_hub_is_asked_as_nobody() -> None:
    assert HubSettings.of(NO_FILE) == HubSettings(endpoint=OFFICIAL)


def test_the_endpoint_is_taken_without_its_last_slash() -> None:
    settings = HubSettings.of(NO_FILE | {"HF_ENDPOINT": "https://hub.example/x/"})
    assert settings.endpoint == "https://hub.example/x"


@pytest.mark.parametrize(
    "text", ["hub.example", "ftp://x", "https://", "https://a b", "https://x?y", "https://x:y"]
)
def test_an_endpoint_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(EnvironmentFault, match="HF_ENDPOINT: expected https://HOST"):
        HubSettings.of(NO_FILE | {"HF_ENDPOINT": text})


def test_credentials_in_the_endpoint_are_refused_and_not_repeated() -> None:
    with pytest.raises(EnvironmentFault) as caught:
        HubSettings.of(NO_FILE | {"HF_ENDPOINT": "https://me:secret@hub.example"})
    assert "secret" not in str(caught.value)


def test_a_token_does_not_go_out_without_tls(tmp_path: Path) -> None:
    plain = {"HF_ENDPOINT": "http://hub.example/x"}
    (tmp_path / "token").write_text("hf_file\n")
    for secret, place in (
        ({"HF_TOKEN": "hf_secret"}, "HF_TOKEN"),
        ({"HF_HOME": str(tmp_path)}, f"{tmp_path}/token"),
    ):
        with pytest.raises(EnvironmentFault) as caught:
            HubSettings.of(plain | secret)
        assert caught.value.message == (
            f"HF_ENDPOINT: 'http://hub.example/x' is without TLS: others could read the token in"
            f" {place}"
        )
        without = plain | secret | {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
        assert HubSettings.of(without).token is None
    assert HubSettings.of(NO_FILE | plain).endpoint == "http://hub.example/x"
    for host in ("127.0.0.1:8080", "localhost", "[::1]"):
        here = {"HF_ENDPOINT": f"http://{host}", "HF_TOKEN": "hf_secret"}
        assert HubSettings.of(here).token == "hf_secret"


def test_a_token_is_found_where_the_hubs_own_program_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hf_file\n")
    (tmp_path / "huggingface").mkdir()
    (tmp_path / "huggingface/token").write_text("hf_cache")
    for environment, token, place in (
        ({"HF_TOKEN": " hf_a\n", "HF_HOME": str(tmp_path)}, "hf_a", "HF_TOKEN"),
        ({"HUGGING_FACE_HUB_TOKEN": "hf_b"}, "hf_b", "HUGGING_FACE_HUB_TOKEN"),
        ({"HF_HOME": str(tmp_path)}, "hf_file", f"{tmp_path}/token"),
        ({"XDG_CACHE_HOME": str(tmp_path)}, "hf_cache", f"{tmp_path}/huggingface/token"),
        ({"HF_TOKEN_PATH": f"{tmp_path}/token", "HF_HOME": "/x"}, "hf_file", f"{tmp_path}/token"),
        ({"HF_TOKEN": "hf_a", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, None, ""),
    ):
        settings = HubSettings.of(environment)
        assert (settings.token, settings.token_place) == (token, place)


@pytest.mark.parametrize("text", ["a b", "a\nb", "hf_ä", "a\x7fb"])
def test_a_token_that_is_none_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(EnvironmentFault, match="HF_TOKEN: no token of the hub") as caught:
        HubSettings.of({"HF_TOKEN": text})
    assert text not in str(caught.value)


def test_a_token_does_not_show() -> None:
    assert "hf_a" not in repr(HubSettings.of({"HF_TOKEN": "hf_a"}))


@pytest.mark.parametrize(
    "environment, offline, said",
    [
        ({}, False, None),
        ({}, True, "--offline"),
        ({"HF_HUB_OFFLINE": "1"}, False, "HF_HUB_OFFLINE"),
        ({"HF_HUB_OFFLINE": "0"}, False, None),
        ({"TRANSFORMERS_OFFLINE": "true"}, False, "TRANSFORMERS_OFFLINE"),
    ],
)
def test_offline_is_said_by_the_option_or_by_the_hubs_variables(
    environment: dict[str, str], offline: bool, said: str | None
) -> None:
    assert HubSettings.of(NO_FILE | environment, offline=offline).offline == said
