"""The group of commands: loaded one at a time, errors turned into exit statuses in one place."""

import errno
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from builder import __version__
from builder.cli import forget_stdout
from builder.cli.settings import DONE, shared_options
from builder.errors import BuilderError, EnvironmentFault, PatchError, UsageError
from builder.quoting import harmless

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "init": "Make a new project that bakes at once.",
    "variants": "List the variants of the project.",
    "plan": "Show the steps of a variant and what is cached.",
    "build": "Bake variants into images in the store.",
    "accept": "Record what a variant bakes to as expected.",
    "push": "Publish a built variant to a registry.",
    "load": "Load a built variant into the local Docker Engine.",
    "key": "Make and keep the keys that images are signed with.",
    "lock": "Complete pins: fill in what a lock could say and does not.",
    "add": "Pin something new.",
    "bump": "Move a pin, after everything that depends on it was tried.",
    "nightly": "Try every pin that follows something, and build what passes.",
    "matrix": "List the variants as jobs for a CI.",
    "escrow": "Keep what variants need from outside in a place of ours.",
    "check": "Say everything that can be said without building.",
    "compose": "Pin the images of compose files by digest, or check them.",
    "trust": "Say whose signatures count, and hold others to it.",
    "sign": "Sign a built variant where it was published.",
    "verify": "Say whether an image is what somebody we trust says it is.",
    "image-verifier": "Answer containerd whether an image may be pulled.",
    "waive": "Let a variant build on a base that is not on a list.",
    "patches": "Show what became of each patch of a patch set.",
    "why": "Say which step and pin is responsible for a file.",
    "explain": "Say why two builds differ.",
    "manifest": "Print the manifest, provenance or SBOM of an image.",
    "graph": "Draw a variant as DOT, Mermaid or SVG.",
    "models": "Fetch weights, and hold those on a disk to the lock.",
    "store": "Verify, collect or measure the store.",
}
"""Each command and its one line of help, in the order of the flow: known without loading it. A
test compares the lines with the commands' own."""


_NO_BUG = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG, errno.ENOMEM}
    | {errno.EMFILE, errno.ENFILE, errno.EACCES, errno.EPERM}
    | {errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP}
)
"""What the machine refuses whatever a program does: a full disk is no bug, wherever it is met, nor
is a path that cannot be."""


class ReaderGone(Exception):
    """Whoever read our output has enough of it."""


class Commands(click.Group):
    """A group that says which command may have been meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not ctx.resilient_parsing:
            from builder.node import did_you_mean, nearest

            raise UsageError(
                f"no command {args[0]!r} in {ctx.command_path}",
                hint=did_you_mean(nearest(args[0], known))
                or f"{ctx.command_path} --help lists them",
            )
        return super().resolve_command(ctx, args)


class App(Commands):
    """A group whose commands are modules of :mod:`builder.cli`, imported when they are named."""

    def invoke(self, ctx: click.Context) -> Any:
        # Inside of click's own rule for a broken pipe, which is the exit status of a bug.
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error
        except OSError as error:
            if error.errno not in _NO_BUG:
                raise
            where = "stdout, or a file under way" if error.filename is None else error.filename
            raise EnvironmentFault(f"{where}: {error.strerror}") from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        # click's would import every command for its line of help.
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=line)
            for name, line in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"builder.cli.{cmd_name.replace('-', '_')}")
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
        status = app.main(list(arguments), prog_name="builder", standalone_mode=False, obj=shared)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except (click.ClickException, BuilderError) as error:
        refusal = error if isinstance(error, BuilderError) else usage_error(error)
        # An option that is wrong hides those after it from click.
        as_json = bool(shared.get("json")) or "--json" in arguments
        try:
            report(refusal, document=shared.get(DONE, {}) if as_json else None)
            sys.stdout.flush()
        except OSError:  # nobody can be told; the status still says what it was
            forget_stdout()
        return refusal.exit_status
    except (click.Abort, KeyboardInterrupt):
        click.echo("builder: interrupted", err=True)
        return 130
    except ReaderGone:
        forget_stdout()
        return 141
    return int(status or 0)  # what a command gave to its context's exit


def usage_error(error: click.ClickException) -> UsageError:
    """What click refuses, said as we say things."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} --help says what it takes" if context else None
    if isinstance(error, click.NoSuchOption):
        near = error.possibilities or ()
        return UsageError(
            f"no such option {error.option_name!r}",
            hint=f"did you mean {' or '.join(map(repr, near))}?" if near else hint,
        )
    text = " ".join(error.format_message().split()).removesuffix(".")
    text = text.replace("is not a valid integer range", "is not a number")
    return UsageError(text[:1].lower() + text[1:], hint=hint)


def report(error: BuilderError, *, document: Mapping[str, Any] | None) -> None:
    """Tell the user: on stderr for people, and with ``--json`` on stdout as the one document, to
    which ``document`` has what was done before."""
    lines = [f"builder: error: {error.message}"]
    if isinstance(error, PatchError):
        # With several findings each has its verdict.
        lines += [f"  {finding}" for finding in error.findings or (f"verdict: {error.verdict}",)]
        if error.difference:
            lines += ["", error.difference, ""]
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    click.echo(harmless("\n".join(lines)), err=True)
    if document is not None:
        click.echo(json.dumps({**document, "error": error.record()}, indent=2))
