"""``make reproduce``: the same variants under other conditions give one digest, and the same is
said of them: manifest, provenance and SBOM, byte by byte.

The demo, offline, under all of them; a variant on the real vLLM wheel under some, where an earlier
``make real`` has left the wheel, or with ``--fetch``. Ends with status 1 if a digest differs, and
names the first file that does.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.claims import Claims
from tests.reproduce.builds import Builds, real_base
from tests.reproduce.conditions import Lacking, conditions
from tests.reproduce.worlds import World


def main() -> int:
    """Run it all; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="make reproduce", description="See tests/reproduce/__main__.py."
    )
    parser.add_argument("--fetch", action="store_true", help="get the wheel where it is not here")
    fetch = parser.parse_args().fetch
    claims = Claims("make reproduce: one digest, whatever the machine is like")
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="builder-reproduce-"))
        Path(scratch).chmod(0o755)
        world = World(scratch=Path(scratch))
        base = stack.enter_context(real_base(world, claims, fetch=fetch))
        demo = Builds(world, "demo", claims=claims)
        guards = None if base is None else Builds(world, base.variant, claims=claims, base=base)
        _row("", *(variant.name for variant in (demo, guards) if variant is not None))
        for condition in conditions(world):
            if isinstance(condition, Lacking):
                claims.not_run(condition.name, condition.why)
                continue
            cells = [demo.build(condition)]
            if guards is not None and condition.real:
                cells.append(guards.build(condition))
            _row(condition.name, *cells)
        for variant in (demo, guards):
            if variant is not None:
                print(f"{variant.name}: {variant.digest}")
    return claims.finish()


def _row(name: str, *cells: str) -> None:
    """A row as soon as it is known: the whole takes a while."""
    print(f"  {name:<46}" + "".join(f"{cell:<20}" for cell in cells).rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
