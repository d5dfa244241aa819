"""What real pins follow: wheels of the index that pip asks, and images of :mod:`upstream`."""

import time
from pathlib import Path

from builder.adapters.wheelhouse import Wheelhouse
from builder.cli import show
from builder.cli.settings import Settings
from builder.cli.world import open_world
from builder.errors import NetworkError, ProjectError
from builder.lock.model import ImagePin
from builder.oci import Platform
from builder.project import Project
from builder.reference import Reference
from builder.resolve.images import newest_tag, resolve_image
from builder.resolve.wheels import resolve_wheel
from builder.world import World
from tests.claims import Claims
from tests.commands import ROOT, download_cache
from tests.real.upstream import IMAGE, RELEASES, REPOSITORY, Upstream

AMD64 = Platform("linux", "amd64")
NOW = "2026-06-01T00:00:00Z"


def wheels(claims: Claims) -> None:
    """Look for wheels of the lock in the index."""
    house = Wheelhouse(ROOT, cache=download_cache() / "wheels", offline=False)
    pins = Project(ROOT).wheels
    for name in ("vllm-0.22.0", "vllm-0.20.2", "pandas-2.2.3"):
        pin = pins[name]
        try:
            start = time.perf_counter()
            found = resolve_wheel(pin.project, pin.version, name=name, wheels=house, now=NOW).pin
        except NetworkError as error:
            claims.not_run(f"{name} in the index", error.message)
            continue
        seconds = time.perf_counter() - start
        claims.equal(
            f"{pin.project}=={pin.version} is found in {seconds:.1f} s, as the lock has it",
            (found.filename, str(found.digest)),
            (pin.filename, str(pin.digest)),
        )


def images(there: Upstream, scratch: Path, claims: Claims) -> None:
    """Resolve each nightly, and look for the newest."""
    _nightlies(there, _machine(there, scratch), claims)
    _newest(there, _machine(there, scratch), claims)


def _machine(there: Upstream, scratch: Path) -> World:
    settings = Settings(
        directory=ROOT, store=scratch / "store", environment={"BUILDER_MIRRORS": there.mirrors}
    )
    return open_world(settings, Project(ROOT).settings)


def _nightlies(there: Upstream, machine: World, claims: Claims) -> None:
    for release in RELEASES:
        follows = Reference.parse(f"{IMAGE}:{release.nightly}")
        there.log.requests()
        start = time.perf_counter()
        resolved = resolve_image(
            ImagePin(name=f"vllm-{release.version}", follows=follows),
            platforms=(AMD64,),
            registry=machine.registry,
            store=machine.store,
            progress=machine.progress,
            now=NOW,
        )
        seconds = time.perf_counter() - start
        pin, vllm = resolved.pin, resolved.pin.vllm
        platform = pin.platform(AMD64)
        assert platform is not None
        for remark in resolved.remarks:
            print(f"   {remark}")
        for layer in platform.layers:
            print(f"   layer {layer.digest} {show.size(layer.size)}, files {layer.files}")
        claims.equal(
            f"{release.nightly[:24]} is resolved in {seconds:.1f} s, to what was pushed",
            (pin.index, platform.manifest),
            (there.manifests[release.version].digest,) * 2,
        )
        right = None if release.version == "0.20.2" else release.commit
        claims.equal(
            f"{release.nightly[:24]} holds vLLM, by its own account",
            vllm and (vllm.version, vllm.commit and vllm.commit.hex),
            (release.version, right),
        )


def _newest(there: Upstream, machine: World, claims: Claims) -> None:
    pin = ImagePin(name="vllm", follows=Reference.parse(IMAGE), tags="nightly-*")
    try:
        said = str(_newest_of(pin, machine))
        refused = False
    except ProjectError as error:
        said, refused = error.message, True
    claims.holds("the newest of images that were all made in 1980 is not guessed", refused, said)
    by_commit = ImagePin(
        name="vllm", follows=Reference.parse(IMAGE), tags="commit-*", commits=REPOSITORY
    )
    there.log.requests()
    newest = _newest_of(by_commit, machine)
    claims.equal(
        "the newest by the commits that name the tags",
        newest.tag,
        f"commit-{there.commits['0.22.0']}",
    )
    paths = [f"{item.method} {item.path}" for item in there.log.requests()]
    gets = [path for path in paths if path.startswith("GET ") and "/manifests/" in path]
    claims.equal("manifests that were fetched for it again", gets, [])


def _newest_of(pin: ImagePin, machine: World) -> Reference:
    return newest_tag(
        pin,
        platform=AMD64,
        registry=machine.registry,
        store=machine.store,
        history=machine.history,
    )
