"""The workflows: rules that keep a CI from giving away more than it must, and commands that exist.

The rules are those of GitHub's "Security hardening for GitHub Actions".
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from builder.cli.app import COMMANDS, app
from builder.matrix import Job, document
from builder.oci import Platform
from tests.flow.worlds import ROOT

DIRECTORY = ROOT / ".github/workflows"
FILES = {path.name: path for path in sorted(DIRECTORY.iterdir())}
PINNED = re.compile(r"uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
GRANTS = {
    "ci.yml": {"check": {"contents": "read"}},
    "nightly.yml": {
        "bump": {"contents": "write", "pull-requests": "write"},
        "matrix": {"contents": "read"},
        "build": {"contents": "read", "packages": "write"},
    },
}
"""What each job may do. A new one stands here for a reviewer to see."""


def workflow(name: str) -> dict[str, Any]:
    document = yaml.load(FILES[name].read_text(), Loader=yaml.BaseLoader)
    assert isinstance(document, dict)
    return document


def steps(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for job, value in workflow(name)["jobs"].items():
        yield from ((job, step) for step in value["steps"])


def scripts(name: str) -> Iterator[str]:
    return (step["run"] for _, step in steps(name) if "run" in step)


def test_these_are_all() -> None:
    assert set(FILES) == set(GRANTS)


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_permitted_but_what_a_job_asks_for(name: str) -> None:
    document = workflow(name)
    assert document["permissions"] == {}
    assert {job: value["permissions"] for job, value in document["jobs"].items()} == GRANTS[name]


@pytest.mark.parametrize("name", FILES)
def test_every_action_is_pinned_by_commit_and_says_its_version(name: str) -> None:
    lines = [line for line in FILES[name].read_text().splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert PINNED.fullmatch(line.strip(" -")), line


@pytest.mark.parametrize("name", FILES)
def test_no_script_is_made_of_what_others_write(name: str) -> None:
    assert [script for script in scripts(name) if "${{" in script] == []


@pytest.mark.parametrize("name", FILES)
def test_nothing_of_a_pull_request_is_read_into_a_job(name: str) -> None:
    """Titles, branches and commits are anybody's; their token would not be."""
    text = FILES[name].read_text()
    assert "pull_request_target" not in text
    assert "workflow_run" not in text
    assert "github.event" not in text
    assert "github.head_ref" not in text


@pytest.mark.parametrize("name", FILES)
def test_a_checkout_keeps_no_credentials(name: str) -> None:
    checkouts = [step for _, step in steps(name) if "actions/checkout" in step.get("uses", "")]
    assert checkouts
    for step in checkouts:
        assert step["with"] == {"persist-credentials": "false"}


@pytest.mark.parametrize("name", FILES)
def test_secrets_and_tokens_are_in_the_environment_of_the_step_that_needs_them(name: str) -> None:
    document = workflow(name)
    for job, step in steps(name):
        rest = {key: value for key, value in step.items() if key != "env"}
        assert "secrets." not in str(rest), job
        assert "github.token" not in str(rest), job
    for value in (document, *document["jobs"].values()):
        assert "secrets." not in str(value.get("env", ""))
        assert "github.token" not in str(value.get("env", ""))


@pytest.mark.parametrize("name", FILES)
def test_every_job_ends_and_none_runs_twice_at_once(name: str) -> None:
    document = workflow(name)
    assert document["concurrency"]["group"]
    for job, value in document["jobs"].items():
        assert 0 < int(value["timeout-minutes"]) <= 240, job
        assert re.fullmatch(r"ubuntu-\d\d\.\d\d", value["runs-on"]), job


def commands(script: str) -> Iterator[list[str]]:
    """The words of each command that runs builder, make or a file of ours."""
    joined = script.replace("\\\n", " ")
    for line in joined.splitlines():
        inner = re.search(r"\$\((.*)\)", line)
        words = shlex.split(inner[1] if inner else line)
        while words and (words[0] == "sudo" or words[0].startswith("--")):
            words.pop(0)
        if words and "=" not in words[0] and (words[0] == "make" or "/" in words[0]):
            yield words


@pytest.mark.parametrize("name", FILES)
def test_what_is_run_exists(name: str) -> None:
    targets = re.findall(r"^\.PHONY: ([a-z-]+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    found = [words for script in scripts(name) for words in commands(script)]
    assert found
    for program, *words in found:
        if program == "make":
            assert [word for word in words if "=" not in word and word not in targets] == []
            continue
        if program != ".venv/bin/builder":
            assert (ROOT / program).is_file()
            continue
        assert words[0] in COMMANDS
        command = app.get_command(click.Context(app), words[0])
        assert command is not None
        options = {option for parameter in command.params for option in parameter.opts}
        given = re.findall(r"--[a-z-]+", " ".join(words[1:]))
        assert set(given) <= options


def test_make_passes_what_the_workflow_gives_to_nightly() -> None:
    (script,) = (script for script in scripts("nightly.yml") if "make nightly" in script)
    command = app.get_command(click.Context(app), "nightly")
    assert command is not None
    options = {option for parameter in command.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", script)) <= options
    assert "nightly $(ARGS)" in (ROOT / "Makefile").read_text()


def test_the_fan_out_reads_only_what_the_matrix_has() -> None:
    job = Job(
        variant="it",
        platform=Platform("linux", "amd64"),
        base="b",
        accepted=None,
        sandbox=True,
        tag="it",
        reference=None,
    )
    (entry,) = document([job])["include"]
    text = FILES["nightly.yml"].read_text()
    read = set(re.findall(r"\bmatrix\.(\w+)", text)) - {"outputs"}
    assert read
    assert read <= set(entry)


def test_a_shell_takes_every_script() -> None:
    for name in FILES:
        for script in scripts(name):
            subprocess.run(("bash", "-n"), input=script.encode(), check=True)


def told(script: str, directory: Path, environment: dict[str, str]) -> list[str]:
    """Run a script of the nightly workflow, with a builder that says what it is told."""
    program = directory / ".venv/bin/builder"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    given = {
        "PATH": os.environ["PATH"],
        "VARIANT": "it",
        "PLATFORM": "linux/amd64",
        "GITHUB_ENV": str(directory / "environment"),
    }
    done = subprocess.run(
        ("bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", script),
        cwd=directory,
        env=given | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("environment", "options", "pushed"),
    [
        ({"ACCEPTED": "sha256:1", "REFERENCE": ""}, "--locked ", "ghcr.io/acme/images:it"),
        ({"ACCEPTED": "", "REFERENCE": "registry.test/x:it"}, "", "registry.test/x:it"),
    ],
)
def test_the_build_is_locked_where_somebody_accepted(
    environment: dict[str, str], options: str, pushed: str, tmp_path: Path
) -> None:
    (script,) = (script for script in scripts("nightly.yml") if "--push" in script)
    given = environment | {"TAG": "it", "GITHUB_REPOSITORY": "Acme/Images"}
    said = told(script, tmp_path, given)
    assert said == [f"build it --platform linux/amd64 {options}--push {pushed}"]
    assert (tmp_path / "environment").read_text() == f"PUSHED={pushed}\n"


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("a key", "sign it r.test/x:it --platform linux/amd64 --key env://SIGNING_KEY"),
        ("", "::notice title=not signed::r.test/x:it: there is no secret SIGNING_KEY"),
    ],
)
def test_what_was_pushed_is_signed_where_there_is_a_key(
    key: str, wanted: str, tmp_path: Path
) -> None:
    (script,) = (script for script in scripts("nightly.yml") if "builder sign" in script)
    assert told(script, tmp_path, {"SIGNING_KEY": key, "PUSHED": "r.test/x:it"}) == [wanted]


def test_the_key_is_there_once_all_is_built_and_for_protected_branches_alone() -> None:
    build = [step for job, step in steps("nightly.yml") if job == "build"]
    signing = [number for number, step in enumerate(build) if "SIGNING" in str(step)]
    names = [step.get("name") for step in build]
    assert signing == [names.index("sign")]
    assert names.index("sign") > names.index("build and push")
    assert build[signing[0]]["if"] == "github.ref_protected"
    (unsigned,) = (step for step in build if step.get("if") == "${{ !github.ref_protected }}")
    assert "::notice" in unsigned["run"]
