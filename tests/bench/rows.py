"""The rows: each measures ours and its peers in the same run, on the same base."""

import json
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.cli import show
from builder.cli.settings import Settings
from builder.errors import GoneError, NetworkError
from tests.access_log import read_from
from tests.bench.measure import Row, Run, alternate
from tests.bench.patch_set import PatchSet
from tests.bench.peers import Buildah, Docker, Umoci
from tests.bench.project import EDITED, edited, patched
from tests.bench.workshop import Workshop
from tests.claims import Claims
from tests.commands import ROOT, clean_environment, run
from tests.plugins.requires import missing
from tests.real import genesis, genesis_facts
from tests.real.workshop import workshop as real_workshop

_READ_LIMIT = 100_000
_PEAK_LIMIT = 150_000_000


def start_up(times: int) -> list[Row]:
    """``builder --help`` beside Python that does nothing."""
    python = Path(sys.executable)
    medians = alternate(
        {
            "ours": lambda _: run((python.with_name("builder"), "--help")).seconds,
            "python -c pass": lambda _: run((python, "-c", "pass")).seconds,
        },
        times,
    )
    return [Row(what="builder --help", times_peer=3, ours=medians.pop("ours"), peers=medians)]


def patch_set(claims: Claims, times: int) -> list[Row]:
    """The demo's patch set, of which starting a sandbox is the greater part, and the real one."""
    if why := missing("git", "unshare"):
        claims.not_run("baking a patch set", why)
        return []
    with TemporaryDirectory(prefix="builder-bench-") as temporary:
        settings = Settings(directory=ROOT, store=Path(temporary), environment=clean_environment())
        demo = PatchSet.make(settings, "demo")
        rows = demo.rows(claims, times, what="the demo's patch set", times_own=None)
    return rows + _genesis(claims, times)


def _genesis(claims: Claims, times: int) -> list[Row]:
    if genesis_facts.copy(genesis_facts.PATCH_SET) is None:
        claims.not_run(
            "baking Genesis", f"BUILDER_MIRRORS has no copy of {genesis_facts.PATCH_SET}"
        )
        return []
    with real_workshop() as shop:
        try:
            trial = genesis.waived(shop)
        except (GoneError, NetworkError) as error:
            claims.not_run("baking Genesis", f"the wheel is not to be had: {error}")
            return []
        return genesis.baked(trial).rows(claims, times, what="Genesis 7b9fd319", times_own=1.5)


def no_op(shop: Workshop, docker: Docker | None, times: int) -> list[Row]:
    """A build that has nothing to do."""
    shop.project.patch(0)
    elsewhere = ("-C", shop.project.root, "build", "three-large")
    shop.builder.run("build", "three-large")
    runs: dict[str, Run] = {
        "ours": lambda _: shop.builder.run("build", "three-large").seconds,
        "ours, with -C": lambda _: shop.builder.run(*elsewhere).seconds,
    }
    if docker is not None:
        layers = (patched(0),)
        docker.build(shop.base("large"), "no-op", layers)
        runs["docker build, cached"] = lambda _: docker.build(shop.base("large"), "no-op", layers)
    medians = alternate(runs, times)
    ours, other = medians.pop("ours"), medians.pop("ours, with -C")
    return [
        Row(what="no-op build", ours=ours, peers=medians, limit=0.12, aim=0.08, times_peer=1),
        # Not what is promised, and not remembered as a whole: the plan is made again.
        Row(what="no-op build, with -C", ours=other, peers=medians),
    ]


def edit(shop: Workshop, docker: Docker | None, umoci: Umoci | None, times: int) -> list[Row]:
    """One of three overlays is edited; build and push, with the base at hand for the peers."""
    target = f"{shop.registry.host}/bench/edit"
    base = shop.base("large")
    top = {"vllm/entrypoints/top.py": b"TOP = True\n"}

    def ours(number: int) -> float:
        shop.project.edit(number + 1)
        return shop.builder.run("build", "stack-large", "--push", f"{target}:ours").seconds

    runs: dict[str, Run] = {"ours": ours}
    if docker is not None:

        def docker_run(number: int) -> float:
            layers = (patched(0), {EDITED: edited(number + 1)}, top)
            tag = f"{target}:docker"
            return docker.build(base, tag, layers) + docker.push(tag)

        runs["docker build + push"] = docker_run
        docker_run(-1)
    if umoci is not None:

        def umoci_run(number: int) -> float:
            made = umoci.insert({EDITED: edited(number + 1)}, onto="base", tag="edit")
            return made + umoci.push("edit", f"{target}:umoci")

        umoci.fetch(base)
        runs["umoci insert + skopeo copy"] = umoci_run
        umoci_run(-1)
    ours(-1)
    medians = alternate(runs, times)
    return [
        Row(
            what="edit one overlay, build, push",
            limit=0.25,
            ours=medians.pop("ours"),
            peers=medians,
        )
    ]


def bake(shop: Workshop, claims: Claims, times: int) -> list[Row]:
    """Three patched files on a base whose files are indexed, pushed to a new repository; on a
    small and on the large base."""
    reads = []

    def ours(name: str, number: int) -> float:
        shop.project.patch(number + 1)
        target = f"{shop.registry.host}/bench/{name}-{number}:t"
        shop.log.requests()
        seconds = shop.builder.run("build", f"three-{name}", "--push", target).seconds
        if number >= 0:
            reads.append(read_from(shop.log.requests(), "bench/base"))
        return seconds

    for name in shop.bases:
        ours(name, -1)
    medians = alternate({name: partial(ours, name) for name in shop.bases}, times)
    most = max(reads)
    claims.holds(
        f"bake + push reads under {show.size(_READ_LIMIT)} of the base",
        most < _READ_LIMIT,
        show.size(most),
    )
    small, large = (show.size(shop.bases[name].size) for name in ("small", "large"))
    return [
        Row(
            what=f"bake + push 3 files, base {large}",
            ours=medians["large"],
            limit=0.4,
            aim=0.25,
            peers={f"ours, base {small}": medians["small"]},
        )
    ]


def bake_by_peers(
    shop: Workshop, docker: Docker | None, umoci: Umoci | None, claims: Claims
) -> dict[str, float]:
    """The same by programs that have no copy of the base, once each: they take long."""
    target = f"{shop.registry.host}/bench"
    base, files = shop.base("large"), patched(0)
    taken: dict[str, float] = {}
    if docker is not None:
        docker.forget()
        tag = f"{target}/docker-cold:t"
        taken["docker build + push"] = docker.build(base, tag, (files,)) + docker.push(tag)
    if why := missing("buildah", "root"):
        claims.not_run("buildah", why)
    else:
        buildah = Buildah(scratch=shop.scratch)
        taken["buildah from, copy, commit"] = buildah.bake(base, f"{target}/buildah:t", files)
    if umoci is not None:
        cold = Umoci(layout=shop.scratch / "cold-layout", scratch=shop.scratch)
        seconds = cold.fetch(base) + cold.insert(files, onto="base", tag="t")
        taken["skopeo copy, umoci insert"] = seconds + cold.push("t", f"{target}/umoci:t")
    return taken


def first_read(shop: Workshop, claims: Claims, times: int) -> list[Row]:
    """A layer, as a build reads it the first time, beside a stream that is hashed and inflated."""
    rows = []
    base = shop.bases["large"]
    for number, (_, layer) in enumerate(base.layers):
        files = show.size(base.inflated[number])
        what = f"first read of a layer, {show.size(layer.size)} ({files} of files)"
        medians, peak = _first_read(shop, number, times)
        ours = medians.pop("ours")
        rows.append(Row(what=what, ours=ours, peers=medians, times_peer=1.5, aim_times_peer=1.2))
        claims.holds(
            f"{what}: peak memory under {show.size(_PEAK_LIMIT)}",
            peak < _PEAK_LIMIT,
            show.size(peak),
        )
    return rows


def _first_read(shop: Workshop, number: int, times: int) -> tuple[dict[str, float], int]:
    """Medians, and our peak of memory."""
    base = shop.bases["large"]
    _, layer = base.layers[number]
    peaks: list[int] = []

    def measured(how: str) -> float:
        store = shop.scratch / "first-read"
        what = (layer.digest, layer.size, base.diff_ids[number], store)
        command = ("-m", "tests.bench.first_read", how, shop.registry.host, "bench/base")
        answer = json.loads(run((sys.executable, *command, *map(str, what)), directory=ROOT).stdout)
        if how == "ours":
            peaks.append(answer["peak"])
            run(("rm", "-rf", store))
        return float(answer["seconds"])

    runs: dict[str, Run] = {
        "ours": lambda _: measured("ours"),
        "stream, 2 x sha256, isal": lambda _: measured("bare"),
    }
    return alternate(runs, times), max(peaks)
