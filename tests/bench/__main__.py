"""``make bench``: what things cost, beside programs that do the same, in one table.

Ends with status 1 if a limit is broken (with ``--report``: one of bytes or memory). Aims are shown
beside the results and not judged.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from dataclasses import replace

from tests.bench import models
from tests.bench import rows as measured
from tests.bench.check import check
from tests.bench.measure import Row, table
from tests.bench.peers import Docker, Umoci, docker_with_buildkit
from tests.bench.signing import signing
from tests.bench.trial import trial
from tests.bench.workshop import MB, Workshop, workshop
from tests.claims import Claims
from tests.plugins.requires import missing
from tests.services_docker import running_dockerd


def main() -> int:
    """Measure everything; returns the exit status."""
    options = _options()
    claims = Claims(
        f"make bench: medians of {options.runs} alternated runs, {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f} before"
    )
    rows = models.verified(claims, max(3, options.runs // 3), size=options.model * MB)
    rows += measured.start_up(options.runs)
    rows += check(claims, max(3, options.runs // 3))
    if why := missing("docker-registry"):
        claims.not_run("everything that needs a registry", why)
    else:
        rows += measured.patch_set(claims, max(3, options.runs // 3))
        with ExitStack() as stack:
            shop = stack.enter_context(workshop(options.base * MB))
            docker = _docker(shop, stack, claims)
            rows += _with_registry(shop, docker, claims, options.runs)
    for row in rows:
        row.judge(claims, times_count=not options.report)
    print(table(rows), flush=True)
    return claims.finish()


def _with_registry(shop: Workshop, docker: Docker | None, claims: Claims, times: int) -> list[Row]:
    umoci = None
    if why := missing("umoci", "skopeo"):
        claims.not_run("skopeo and umoci", why)
    else:
        umoci = Umoci(layout=shop.scratch / "layout", scratch=shop.scratch)
    rows = measured.first_read(shop, claims, max(3, times // 3))
    rows += measured.no_op(shop, docker, times)
    baked = measured.bake(shop, claims, times)
    rows += measured.edit(shop, docker, umoci, times)
    peers = measured.bake_by_peers(shop, docker, umoci, claims)
    rows += signing(shop, claims, times)
    rows += trial(shop, claims, max(3, times // 3))
    rows += [replace(row, peers={**row.peers, **peers}) for row in baked]
    return rows


def _docker(shop: Workshop, stack: ExitStack, claims: Claims) -> Docker | None:
    if why := missing("dockerd", "docker", "root"):
        claims.not_run("docker build", why)
        return None
    place = shop.scratch / "engine"
    place.mkdir()
    host = stack.enter_context(running_dockerd(place))
    docker = docker_with_buildkit(host, place)
    if docker is None:
        claims.not_run("docker build", "no docker command here whose BuildKit works")
    return docker


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench ARGS=...")
    parser.add_argument(
        "--base", type=int, default=300, metavar="MB", help="compressed size of the large base"
    )
    parser.add_argument(
        "--model", type=int, default=1000, metavar="MB", help="size of the model that is verified"
    )
    parser.add_argument("--runs", type=int, default=9, help="how often each is measured")
    parser.add_argument(
        "--report",
        action="store_true",
        help="say how the times stand and let bytes and memory alone decide: for shared machines",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
