"""docs/commands.md: every command with what it really prints."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder import errors
from builder.cli.app import COMMANDS, app
from tests.docs.conftest import Compare
from tests.docs.pages import ROOT, Terminal, copy_project
from tests.services_docker import running_dockerd
from tests.standin.registry import stand_in

PAGE = ROOT / "docs" / "commands.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def mirrors() -> Iterator[dict[str, str]]:
    """A registry behind the name that the pages use."""
    with stand_in() as registry:
        yield {"BUILDER_MIRRORS": f"registry.example={registry.host}"}


@pytest.mark.golden
@pytest.mark.requires("git")
def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, mirrors: dict[str, str], compare: Compare
) -> None:
    terminal = Terminal(
        directory=copy_project(tmp_path / "here"), home=tmp_path / "home", environment=mirrors
    )
    compare(PAGE, terminal.replay(PAGE.read_text(encoding="utf-8")))


@pytest.mark.golden
@pytest.mark.requires("git", "docker", "dockerd", "root")
def test_the_engine_gets_what_the_page_shows(tmp_path: Path, compare: Compare) -> None:
    with running_dockerd(tmp_path) as host:
        terminal = Terminal(
            directory=copy_project(tmp_path / "here"),
            home=tmp_path / "home",
            environment={"DOCKER_HOST": host},
        )
        compare(PAGE, terminal.replay(PAGE.read_text(encoding="utf-8"), when="with dockerd"))


@pytest.mark.golden
@pytest.mark.requires("git", "skopeo")
def test_skopeo_reads_what_the_page_shows(tmp_path: Path, compare: Compare) -> None:
    terminal = Terminal(directory=copy_project(tmp_path / "here"), home=tmp_path / "home")
    compare(PAGE, terminal.replay(PAGE.read_text(encoding="utf-8"), when="with skopeo"))


ON_A_BASE = "-C docs/examples --store store-of-examples"
"""The project that has a variant on a base of its own, which the demo does not. Its store is
another: it has a demo, too."""
JSON = {
    "init": ["init my-images"],
    "variants": ["variants"],
    "plan": ["plan demo"],
    "graph": ["graph demo"],
    "check": [f"check {ON_A_BASE}"],
    "compose": ["compose pin composes/demo.yml", "compose check composes/demo.yml"],
    "waive": [f"waive {ON_A_BASE} --list"],
    "bump": ["bump genesis demo-patches --dry-run"],
    "accept": ["accept demo"],
    "patches": ["patches demo"],
    "why": ["why demo vllm/spec_decode/mtp.py", f"why {ON_A_BASE} demo vllm/config.py"],
    "explain": [f"explain {ON_A_BASE} tiny demo"],
    "push": ["push demo registry.example/acme/vllm:demo"],
    "nightly": ["nightly --offline"],
    "matrix": ["matrix"],
    "escrow": ["escrow demo --to registry.example/acme/escrow"],
    "key": [
        "key generate ci --allow-plaintext",
        "key export ci",
        "key rotate ci --allow-plaintext",
        "key list",
        "key certificate ci --subject CN=ci,O=Acme,ST=Berlin,C=DE --allow-plaintext",
        "key revoke ci",
    ],
    "sign": [
        "key generate signer",
        "key certificate signer --subject CN=ci,O=Acme,ST=Berlin,C=DE --out signer.crt",
        "build demo --out signed",
        "sign demo oci:signed --key signer --notation signer.crt",
    ],
    "verify": ["verify oci:signed --key signer"],
    "image-verifier": ["image-verifier -name registry.example/acme/vllm:1 -digest latest"],
    "trust": [
        f"{ON_A_BASE} trust new --key signer --repository registry.example/acme/vllm",
        f"{ON_A_BASE} trust sign --key signer",
        f"{ON_A_BASE} trust init --accept-first",
        f"{ON_A_BASE} trust show",
        f"{ON_A_BASE} trust sign --key signer --waiver v7.72.2-on-0.20.2",
        f"{ON_A_BASE} trust export --format cosign --out policy",
        f"{ON_A_BASE} trust new",
        f"{ON_A_BASE} trust sign --key signer",
        f"{ON_A_BASE} trust forget",
    ],
    "store": ["store verify", "store gc --dry-run", "store du"],
}


@pytest.mark.requires("git")
def test_the_keys_of_json_that_the_page_names_are_there(
    tmp_path: Path, mirrors: dict[str, str]
) -> None:
    terminal = Terminal(
        directory=copy_project(tmp_path / "here"),
        home=tmp_path / "home",
        environment=mirrors | {"BUILDER_KEY_PASSWORD": "of-no-worth"},
    )
    terminal.play(
        "$ builder build demo\n"
        f"$ builder {ON_A_BASE} build tiny --out docs/examples/bases/tiny\n"
        f"$ builder {ON_A_BASE} build demo\n"
    )
    for section, commands in JSON.items():
        _, _, rest = TEXT.partition(f"### {section}\n")
        _, _, told = rest.partition("\n#")[0].rpartition("`--json`")
        named = set(re.findall(r'"(\w+)"', told.partition("\n\n")[0]))
        given: set[str] = set()
        for command in commands:
            output = terminal.play(f"$ builder {command} --json 2>/dev/null || true\n")
            given |= set(_keys(json.loads(output.partition("\n")[2])))
        assert named
        assert named <= given, section


def _keys(value: object) -> Iterator[str]:
    """The keys of a document, at every depth."""
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


def test_every_command_has_its_section() -> None:
    sections = re.findall(r"^### ([\w-]+)$", TEXT, re.MULTILINE)
    assert sorted(sections) == sorted(COMMANDS)


def test_every_shared_option_is_on_the_page() -> None:
    _, _, section = TEXT.partition("## Shared options")
    options = [parameter.opts[0] for parameter in app.params if parameter.name != "version"]
    assert {"-C", "--store", "--json"} <= set(options)
    for option in options:
        assert f"| `{option}" in section


def test_every_variable_that_the_command_line_reads_is_on_the_page() -> None:
    read: set[str] = set()
    for path in (ROOT / "builder" / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=owner, attr="get"),
                    args=[ast.Constant(value=str(name)), *_],
                ) if "environment" in ast.unparse(owner):
                    read.add(name)
                case _:
                    pass
    _, _, section = TEXT.partition("## Environment")
    assert read >= {"BUILDER_STORE", "BUILDER_MIRRORS"}
    for name in read - {"HOME"}:
        assert f"| `{name}` |" in section


def test_every_exit_status_is_on_the_page() -> None:
    statuses = {
        kind.exit_status
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, errors.BuilderError)
        and kind is not errors.BuilderError
    }
    _, _, section = TEXT.partition("## Exit status")
    shown = {int(number) for number in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert shown == statuses | {0, 1, 130, 141}
