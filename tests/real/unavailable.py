"""How a run of ``make real`` is told what its machine does not have.

A claim that cannot be checked is printed and counted, always. For people that is all; CI states how
many it accepts (``--unavailable``) and which things it goes without (``--without``), and fails on
one more.
"""

import argparse
from collections.abc import Sequence

from tests.real.debian_tool import LATEST
from tests.real.genesis_facts import DEPLOYMENTS, PATCH_SET
from tests.real.kyverno import SOURCE as KYVERNO

NPM, PODMAN = "npm", "podman"
NAMES = (DEPLOYMENTS, PATCH_SET, KYVERNO, LATEST, NPM, PODMAN)
"""What a machine may go without: a copy of a repository, the suite of Debian that moves, a tool
that costs more to install than CI can spend."""


def stated(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the run: ``unavailable``, and ``without`` as a list of :data:`NAMES`."""
    parser = argparse.ArgumentParser(prog="make real", description="See tests/real/__main__.py.")
    parser.add_argument(
        "--unavailable",
        type=_count,
        metavar="N",
        help="fail when more claims than this could not be checked (default: no limit)",
    )
    parser.add_argument(
        "--without",
        action="append",
        choices=NAMES,
        default=[],
        help="do not count claims that want this",
    )
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"not a number of claims: {text!r}")
    return int(text)
