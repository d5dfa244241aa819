"""The group of commands: loaded one at a time, errors turned into exit statuses in one place."""

import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from builder import __version__
from builder.cli.settings import shared_options
from builder.errors import BuilderError, PatchError

COMMANDS = {
    "init": "Make a new project that bakes at once.",
    "variants": "List the variants of the project.",
    "plan": "Show the steps of a variant and what is cached.",
    "build": "Bake variants into images in the store.",
    "accept": "Record what a variant bakes to as expected.",
    "push": "Publish a built variant to a registry.",
    "load": "Load a built variant into the local Docker Engine.",
    "check": "Say everything that can be said without building.",
    "why": "Say which step and pin is responsible for a file.",
    "explain": "Say why two builds differ.",
    "graph": "Draw a variant as DOT, Mermaid or SVG.",
    "store": "Verify, collect or measure the store.",
}
"""Each command and its one line of help, in the order of the flow: known without loading it. A
test compares the lines with the commands' own."""


class App(click.Group):
    """A group whose commands are modules of :mod:`builder.cli`, imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"builder.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=App,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@shared_options
@click.version_option(__version__, message="builder %(version)s")
def app() -> None:
    """Reproducible, pinned, patched vLLM images.

    Lockfiles pin every input by content; variants say what is baked from them. The same inputs
    give the same image digest on every machine.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit status. A bug keeps its traceback."""
    shared: dict[str, Any] = {}
    try:
        app.main(list(arguments), prog_name="builder", standalone_mode=False, obj=shared)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show(file=sys.stderr)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("builder: interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader has gone; Python must not complain about it again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except BuilderError as error:
        report(error, as_json=bool(shared.get("json")))
        return error.exit_status
    return 0


def report(error: BuilderError, *, as_json: bool) -> None:
    """Tell the user: on stderr for people, and as the one document on stdout with ``--json``."""
    lines = [f"builder: error: {error.message}"]
    if isinstance(error, PatchError):
        lines += [f"  {finding}" for finding in error.findings]
        if error.difference:
            lines += ["", error.difference, ""]
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    click.echo("\n".join(lines), err=True)
    if as_json:
        document: dict[str, Any] = {
            "message": error.message,
            "hint": error.hint,
            "exit_status": error.exit_status,
        }
        if isinstance(error, PatchError):
            document |= {
                "verdict": str(error.verdict),
                "path": error.path,
                "findings": list(error.findings),
            }
        click.echo(json.dumps({"error": document}, indent=2))
