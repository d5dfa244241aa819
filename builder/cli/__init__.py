"""The command line: a shell around functions, one file a command.

Results go to stdout (with ``--json`` one JSON document), everything else to stderr. Only this
package exits, and only it reads settings of ours from the environment; what adapters pass on to
programs and libraries (``PATH``, proxies, ``DOCKER_HOST``) is said there.
"""

import gc
import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _open_streams()
    try:
        status = _answer(given)
    except KeyboardInterrupt:  # while modules were imported; app.run sees to the rest
        print("builder: interrupted", file=sys.stderr)
        status = 130
    if arguments is None:
        _leave(status)
    sys.exit(status)


def _leave(status: int) -> None:
    """End the process at once. Python would take its modules apart first, which takes a third of a
    short command's time and is of use to nobody: files are closed, threads are joined, and locks
    and connections go with the process. Returns where the streams cannot be written to: then
    Python says so in its own way."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(status)


def _answer(given: Sequence[str]) -> int:
    # What is imported stays: looking for garbage among it every 700 objects is a twentieth of a
    # short command, and looking once among all of it costs as much. A push comes to 50,000.
    gc.set_threshold(200_000, 20, 20)
    if "_BUILDER_COMPLETE" not in os.environ and (text := _at_once(given)) is not None:
        return _say(text)
    from builder.cli.app import run

    return run(given)


def _open_streams() -> None:
    """Give what was closed before we began a place that leads nowhere: the next file that is opened
    would get its number, and results and messages would go into it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - it stays open, and pathlib costs start-up


def _say(text: str) -> int:
    """Write what is known at once; returns the exit status."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()
        return 141
    except OSError as error:
        forget_stdout()
        print(f"builder: error: stdout: {error.strerror}", file=sys.stderr)
        return 9  # as errors.EnvironmentFault, which would have to be imported
    return 0


def forget_stdout() -> None:
    """Keep Python from complaining again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _at_once(given: Sequence[str]) -> str | None:
    """What can be said without click, YAML and the types, whose imports cost several times what
    Python itself does: the help, and an answer that was given before and still holds."""
    if list(given) in ([], ["--help"], ["-h"]):
        # A constant: make golden writes it, a test compares it with what click would say.
        with open(f"{__path__[0]}/help.txt", encoding="utf-8") as text:  # noqa: PTH123 - as above
            return text.read()
    if given[0] != "build":
        return None
    from builder.cli.unchanged import recall

    return recall(given[1:], os.environ)
