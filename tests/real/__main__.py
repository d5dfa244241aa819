"""``make real``: bake, push and read back images of the real vLLM, and move its pins.

Nothing of it is in this repository: wheels come through pip and diffs through git, pinned by
lockfiles/. In this order: what other tools make of keys, signatures, SBOMs, exported policies and
signatures of a model, and what containerd and podman pull by a policy; what the hub's own library
makes of our stand-in for it and of directories that we fill; what real commits of Genesis say of
themselves; compose files that people deploy, and made-up ones that are merged; what Genesis
7b9fd319 does to the real vLLM 0.20.2, and the steps of the main recipe on it; images of vLLM
0.22.0; an upstream of bases made of the wheels 0.20.2, 0.21.0 and 0.22.0, where tags are resolved,
pins are bumped, and a base is deleted. Ends with status 1 if a claim fails, or if more could not be
checked than the options say (:mod:`tests.real.unavailable`).
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.cli import show
from builder.errors import GoneError, NetworkError
from tests.claims import Claims
from tests.plugins.requires import missing
from tests.real import (
    bakery,
    bills,
    bumps,
    composes,
    containers,
    engines,
    following,
    genesis,
    genesis_facts,
    hub_library,
    keys,
    kyverno,
    main_recipe,
    merged,
    model_signing,
    notation,
    printed,
    reading,
    signatures,
    trust,
    weights,
)
from tests.real.unavailable import stated
from tests.real.upstream import RELEASES, fetch_wheel, upstream
from tests.real.workshop import workshop


def main() -> int:
    """Run it all; returns the exit status."""
    options = stated()
    claims = Claims(
        "make real: vLLM 0.20.2 and 0.22.0 of PyPI, through the lockfiles of this project",
        unavailable=options.unavailable,
        without=options.without,
    )
    keys.prove(claims)
    signatures.prove(claims)
    printed.prove(claims)
    notation.prove(claims)
    bills.prove(claims)
    trust.prove(claims)
    kyverno.prove(claims)
    engines.prove(claims)
    model_signing.prove(claims)
    weights.prove(claims)
    hub_library.prove(claims)
    genesis_facts.prove(claims)
    composes.prove(claims)
    containers.prove(claims)
    merged.prove(claims)
    if why := missing("docker-registry"):
        claims.holds("there is a registry to push to", False, why)
        return claims.finish()
    with ExitStack() as stack:
        shop = stack.enter_context(workshop())
        genesis.proofs(shop, claims)
        main_recipe.steps(shop, shop.builder("main-recipe"), claims)
        rows = [bakery.base(shop, shop.builder("first-machine"), claims)]
        warm = shop.builder("second-machine")  # the base is only in the registry
        rows += bakery.variants(shop, warm, claims, on=rows[0])
        wanted = reading.wanted(rows, shop, warm, claims)
        for row in rows[1:]:
            bakery.pushed_again(row, shop, warm, claims, on=rows[0])
        reading.by_skopeo(rows, shop, claims)
        reading.by_engine(wanted, shop, warm, claims, base=rows[0])
        reading.by_umoci(wanted, shop, warm, claims)
        reading.by_podman(wanted, shop, claims)
        rows += bakery.cold(rows, shop, claims)
        print(show.table(bakery.HEADERS, [row.cells() for row in rows]), flush=True)
    following.wheels(claims)
    _upstream(claims)
    return claims.finish()


def _upstream(claims: Claims) -> None:
    """What is asked of an upstream that has bases made of real wheels."""
    try:
        for release in RELEASES:
            fetch_wheel(release)
    except (GoneError, NetworkError) as error:
        claims.not_run("bases made of real wheels", error.message)
        return
    with TemporaryDirectory(prefix="builder-upstream-") as name:
        places = {key: Path(name) / key for key in ("upstream", "following", "bumps")}
        for place in places.values():
            place.mkdir()
        with upstream(places["upstream"]) as there:
            following.images(there, places["following"], claims)
            bumps.prove(there, places["bumps"], claims)


if __name__ == "__main__":
    sys.exit(main())
