"""What ``--help`` says: a constant for the program, golden files for the commands."""

import inspect
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from builder import cli
from builder.cli.app import COMMANDS, app
from tests.cli.conftest import Builder
from tests.plugins.golden import Golden

GROUPED = (
    *("store verify", "store gc", "store du", "compose pin", "compose check"),
    *(f"key {name}" for name in ("generate", "import", "export", "list", "rotate", "revoke")),
)
"""The commands of groups."""


def help_of(*words: str) -> str:
    """What click says, at the width of the constant."""
    result = CliRunner().invoke(
        app, [*words, "--help"], prog_name="builder", terminal_width=80, obj={}
    )
    assert result.exit_code == 0
    return result.output


def test_the_constant_is_what_click_says(golden: Golden) -> None:
    golden("help.txt", help_of(), root=Path(cli.__file__).parent)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, golden: Golden) -> None:
    golden(f"cli/help/{name}.txt", help_of(name))


@pytest.mark.parametrize("name", GROUPED)
def test_each_command_of_a_group_explains_itself(name: str, golden: Golden) -> None:
    words = name.split()
    golden(f"cli/help/{'-'.join(words)}.txt", help_of(*words))


def test_the_list_of_commands_has_the_first_line_of_each() -> None:
    context = click.Context(app)
    loaded = {name: app.get_command(context, name) for name in app.list_commands(context)}
    lines = {
        name: inspect.cleandoc(command.help or "").partition("\n")[0]
        for name, command in loaded.items()
        if command is not None
    }
    assert lines == COMMANDS


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)], ids=" ".join)
def test_asking_for_help_prints_the_constant(arguments: tuple[str, ...], command: Builder) -> None:
    ran = command(*arguments, COLUMNS="200")
    text = Path(cli.__file__).with_name("help.txt").read_text("utf-8")
    assert (ran.status, ran.out, ran.err) == (0, text, "")


def test_help_behind_other_options_is_the_same_text(command: Builder) -> None:
    assert command("-q", "--help").out == command("--help").out


def test_a_group_without_its_command_is_a_usage_error_that_shows_the_help(
    builder: Builder, golden: Golden
) -> None:
    ran = builder("store")
    assert (ran.status, ran.out) == (2, "")
    golden("cli/help/store.txt", ran.err)


def test_the_version_is_one_line(builder: Builder) -> None:
    from builder import __version__

    ran = builder("--version")
    assert (ran.status, ran.out, ran.err) == (0, f"builder {__version__}\n", "")
