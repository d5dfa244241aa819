"""The command line: a shell around functions, one file a command.

Results go to stdout (with ``--json`` one JSON document), everything else to stderr. Only this
package reads the environment and exits.
"""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given in ([], ["--help"], ["-h"]):
        # The text is a constant (make golden writes it, a test compares it with what click would
        # say), so that asking for help costs no more than Python itself.
        with open(f"{__path__[0]}/help.txt", encoding="utf-8") as text:  # noqa: PTH123 - as above
            sys.stdout.write(text.read())
        sys.exit(0)
    # The imports below cost several times what Python itself does. An answer that was given before
    # and still holds is given again without them.
    from builder.cli.unchanged import plain, recall

    if plain(given) and (answer := recall(given, os.environ)) is not None:
        sys.stdout.write(answer)
        sys.exit(0)
    from builder.cli.app import run

    sys.exit(run(given))
