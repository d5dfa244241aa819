"""The command line: a shell around functions, one file a command.

Results go to stdout (with ``--json`` one JSON document), everything else to stderr. Only this
package reads the environment and exits.
"""

import os
import sys
from collections.abc import Sequence
from importlib.resources import files


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given in ([], ["--help"], ["-h"]) and "_BUILDER_COMPLETE" not in os.environ:
        # The text is a constant (make golden writes it, a test compares it with what click would
        # say), so that asking for help costs no more than Python itself.
        try:
            sys.stdout.write(files(__package__).joinpath("help.txt").read_text("utf-8"))
            sys.stdout.flush()
        except BrokenPipeError:
            # The reader has gone; Python must not complain again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        sys.exit(0)
    from builder.cli.app import run  # after the fast path: click costs as much as Python itself

    sys.exit(run(given))
