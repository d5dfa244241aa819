"""README.md: what it shows is what happens, and what it pins can be read."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from builder.cli.app import app
from builder.lock.model import ImagePin
from builder.project import Project
from builder.variant import PinnedBase, PullStep
from tests.docs.conftest import Compare
from tests.docs.pages import ROOT, Terminal, copy_project
from tests.standin.registry import stand_in

PAGE = ROOT / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
_PROJECT = re.compile(r"^<!-- project: (\S+) -->\n```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with stand_in() as registry:
        yield Terminal(
            directory=copy_project(tmp_path / "here"),
            home=tmp_path / "home",
            environment={"BUILDER_MIRRORS": f"registry.example={registry.host}"},
        )


@pytest.mark.golden
@pytest.mark.requires("git")
def test_the_first_screen_shows_what_the_commands_print(
    terminal: Terminal, compare: Compare
) -> None:
    compare(PAGE, terminal.replay(PAGE.read_text(encoding="utf-8")))


def test_the_recipe_for_a_real_image_can_be_read(tmp_path: Path) -> None:
    for file, text in _PROJECT.findall(TEXT):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = Project(tmp_path)
    variant = project.variant("mine")
    assert isinstance(variant.base, PinnedBase)
    (step,) = variant.steps
    assert isinstance(step, PullStep)
    lock = project.lock_for(variant)
    assert isinstance(lock.images[variant.base.pin], ImagePin)
    assert step.pull in lock.pulls


def test_every_command_of_make_on_the_page_is_a_target() -> None:
    targets = set(
        re.findall(r"^\.PHONY: ([a-z-]+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )
    named = set(re.findall(r"^make ([a-z-]+)", TEXT, re.MULTILINE)) | set(
        re.findall(r"`make ([a-z-]+)", TEXT)
    )
    assert named
    assert named <= targets


def test_every_command_on_the_page_is_one_with_its_options() -> None:
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
    lines = re.findall(r"^builder .*", blocks, re.MULTILINE) + re.findall(r"`(builder .*?)`", TEXT)
    assert len(lines) > 20
    for line in lines:
        _, *words = shlex.split(line, comments=True)
        found: click.Command = app
        while isinstance(found, click.Group) and words and not words[0].startswith("-"):
            found = found.get_command(click.Context(found), word := words.pop(0)) or pytest.fail(
                f"{line}: no command {word}"
            )
        known = {name for item in found.params for name in item.opts}
        assert {word for word in words if word.startswith("--")} <= known | {"--help"}, line


def test_make_image_is_shown_for_variants_of_this_repository_alone() -> None:
    for name in re.findall(r"make image VARIANT=(\S+?)[`\s]", TEXT):
        assert (ROOT / "variants" / f"{name}.yaml").is_file()


def test_every_block_is_run_read_or_plainly_an_illustration() -> None:
    kinds = re.findall(r"^```(\w+)$", TEXT, re.MULTILINE)
    assert kinds.count("yaml") == len(_PROJECT.findall(TEXT))
    assert set(kinds) <= {"console", "sh", "yaml"}
