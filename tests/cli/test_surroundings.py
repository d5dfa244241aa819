"""Shared options, wherever they stand, and the environment."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Builder
from tests.standin.registry import Reply, StandIn, stand_in


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with stand_in() as server:
        yield server


@pytest.mark.parametrize("where", ["before", "after"])
def test_shared_options_stand_before_or_after_the_command(
    where: str, builder: Builder, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["-C", str(project), "--store", str(tmp_path / "other"), "--json", "--offline", "-q"]
    command = ["build", "hello"]
    ran = builder(*(options + command if where == "before" else command + options))
    assert (ran.status, list(ran.json)) == (0, ["images"])
    assert (tmp_path / "other/index.json").exists()


def test_the_option_nearest_to_the_command_wins(builder: Builder, tmp_path: Path) -> None:
    builder("--store", tmp_path / "far", "build", "hello", "--store", tmp_path / "near")
    assert [(tmp_path / name).exists() for name in ("far", "near")] == [False, True]


def test_verbose_says_what_runs_and_twice_why(builder: Builder) -> None:
    assert builder("-v", "build", "hello").err == (
        "builder: running step wheels\nbuilder: running step greeting\n"
    )
    assert builder("build", "hello", "-vv", "--check").err.count("builder: running step") == 2


def test_quiet_keeps_results_and_errors_only(builder: Builder, tmp_path: Path) -> None:
    ran = builder("-q", "init", tmp_path / "new")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out != ""
    assert builder("-q", "plan", "helo").err.startswith("builder: error: no variant 'helo'")


STORES = {
    "builder_store": ({"BUILDER_STORE": "by-name"}, "by-name"),
    "cache": ({"XDG_CACHE_HOME": "cache"}, "cache/builder"),
    "home": ({"HOME": "home"}, "home/.cache/builder"),
    "relative cache": ({"XDG_CACHE_HOME": ".", "HOME": "home"}, "home/.cache/builder"),
    "name over cache": ({"BUILDER_STORE": "by-name", "XDG_CACHE_HOME": "cache"}, "by-name"),
}


@pytest.mark.parametrize(("extra", "wanted"), STORES.values(), ids=STORES)
def test_the_store_is_where_the_environment_says(
    extra: dict[str, str],
    wanted: str,
    builder: Builder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("BUILDER_STORE")
    for name, value in extra.items():
        monkeypatch.setenv(name, value if value == "." else str(tmp_path / value))
    assert builder("build", "hello").status == 0
    assert (tmp_path / wanted / "index.json").exists()


def test_the_store_of_the_project_stands_over_the_environment_and_under_the_option(
    builder: Builder, project: Path, store: Path, tmp_path: Path
) -> None:
    (project / "builder.yaml").write_text("version: 1\nstore: .builder\n")
    builder("build", "hello")
    builder("--store", tmp_path / "other", "build", "hello")
    places = (project / ".builder", tmp_path / "other", store)
    assert [place.exists() for place in places] == [True, True, False]


def test_mirrors_of_the_environment_redirect_git(
    builder: Builder, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = builder("-C", demo, "--offline", "build", "demo")
    assert ran.status == 8

    acme = "https://git.example.invalid/acme"
    upstream, patches = f"{demo}/demo/upstream.fast-export", f"{demo}/demo/patches.fast-export"
    mirrors = f"{acme}/vllm={upstream} {acme}/vllm-patches={patches}"
    monkeypatch.setenv("BUILDER_MIRRORS", mirrors)
    assert builder("-C", demo, "--offline", "build", "demo").status == 0


@pytest.mark.parametrize("value", ["nonsense", "=target", "prefix="])
def test_a_mirror_that_is_none_is_a_usage_error(
    value: str, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDER_MIRRORS", value)
    ran = builder("push", "hello", "registry.example/a:1")
    assert ran.status == 2
    assert ran.err == (
        f"builder: error: BUILDER_MIRRORS: expected PREFIX=TARGET, got {value!r}\n"
        "  hint: pairs are separated by blanks\n"
    )


def test_mirrors_redirect_registries_and_docker_config_has_the_password(
    builder: Builder, registry: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = base64.b64encode(b"alice:secret").decode()

    def guard(call: object) -> Reply | None:
        given = getattr(call, "headers", {}).get("authorization")
        if given == f"Basic {password}":
            return None
        return Reply(status=401, headers={"WWW-Authenticate": 'Basic realm="test"'}, body=b"")

    for method in ("GET", "HEAD", "POST", "PUT", "PATCH"):
        registry.on(method, "/v2/.*", guard, forever=True)
    monkeypatch.setenv("BUILDER_MIRRORS", f"registry.example={registry.host}")
    ran = builder("push", "hello", "registry.example/acme/hello:1")
    assert (ran.status, ran.out) == (14, "")

    (tmp_path / "docker").mkdir()
    (tmp_path / "docker/config.json").write_text(
        json.dumps({"auths": {registry.host: {"auth": password}}})
    )
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    ran = builder("push", "hello", "registry.example/acme/hello:1")
    digest = builder("build", "hello", "--json").json["images"][0]["digest"]
    assert (ran.status, ran.out) == (0, f"registry.example/acme/hello:1@{digest}\n")
    assert ran.err.startswith("blobs: 0 there already, 0 mounted, 3 uploaded (")
    assert ("acme/hello", "1") in registry.manifests

    again = builder("push", "hello", "registry.example/acme/hello:1", "--json")
    assert again.json == {
        "variant": "hello",
        "digest": digest,
        "reference": f"registry.example/acme/hello:1@{digest}",
        "blobs": {"present": 3, "mounted": 0, "uploaded": 0},
        "uploaded_bytes": 0,
    }
    built = builder("build", "hello", "--push", "registry.example/acme/hello:2")
    assert built.out.endswith(f"\nat    registry.example/acme/hello:2@{digest}\n")


def test_offline_never_asks_a_registry(
    builder: Builder, registry: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDER_MIRRORS", f"registry.example={registry.host}")
    assert builder("--offline", "push", "hello", "registry.example/a:1").status == 8
    assert registry.connections == 0
