"""The real variants: baked, pushed, pushed elsewhere, and baked once more from nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder.cli import show
from builder.oci import Platform
from builder.project import Project
from tests.access_log import Request, read_from
from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError
from tests.real.genesis_facts import lacking
from tests.real.workshop import FIRST, SECOND, Workshop

BASE = "vllm-0.22.0-wheel"
GUARDS = "vllm-0.22.0-guards"
PR40391 = "vllm-0.22.0-pr40391"
_BASE_REPOSITORY = "builder/vllm-wheel"

HEADERS = ("VARIANT", "DIGEST", "LAYERS", "SIZE", "READ OF BASE", "BUILD AND PUSH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baked:
    """One build: a row of the table at the end."""

    variant: str
    note: str
    digest: str
    repository: str
    blobs: tuple[str, ...]
    """The layers of ours."""
    size: int
    read: int
    seconds: float

    def cells(self) -> tuple[str, ...]:
        """The row for people."""
        return (
            f"{self.variant}{self.note}",
            self.digest,
            str(len(self.blobs)),
            show.size(self.size),
            show.size(self.read),
            f"{self.seconds:.2f} s",
        )


def base(shop: Workshop, builder: Builder, claims: Claims) -> Baked:
    """Make the base image out of the wheel and push it where the lock says that it is."""
    pin = Project(ROOT).wheels["vllm-0.22.0"]
    wheel, seconds = shop.fetch_wheel(pin)
    claims.equal(
        f"{pin.filename} is at hand ({seconds:.0f} s), of size", wheel.stat().st_size, pin.size
    )
    target = f"{FIRST}/{_BASE_REPOSITORY}:v0.22.0"
    document, seconds = builder.ask("build", BASE, "--push", target)
    row = _row(document, seconds, requests=shop.log.requests(), repository=_BASE_REPOSITORY)
    claims.equal(f"{BASE} bakes to the digest in lockfiles/vllm.yaml", row.digest, pinned_base())
    return row


def variants(shop: Workshop, builder: Builder, claims: Claims, *, on: Baked) -> list[Baked]:
    """Bake on that base what can be had here, and push it beside the base."""
    rows: list[Baked] = []
    for name in (GUARDS, PR40391):
        repository = f"builder/{name}"
        arguments = ("build", name, "--push", f"{FIRST}/{repository}:v0.22.0")
        try:
            document, seconds = builder.ask(*arguments)
        except CommandError as error:
            if name == PR40391 and error.status in (7, 8):
                why = f"its source is not to be had: {error.said}"
                claims.not_run(name, why, wants=lacking())
                continue
            raise
        requests = shop.log.requests()
        row = _row(document, seconds, requests=requests, repository=repository)
        _check_traffic(row, requests, claims, on=on, first=not rows)
        rows.append(row)
    return rows


def _check_traffic(
    row: Baked, requests: Sequence[Request], claims: Claims, *, on: Baked, first: bool
) -> None:
    """What the registry says of a build and its push to another repository than the base's."""
    sent = {item.uploaded for item in requests} - {None}
    claims.holds(
        f"{row.variant}: no byte of the base was uploaded, its layer was mounted",
        bool(sent) and sent.isdisjoint(on.blobs),
        f"{len(sent)} blobs sent",
    )
    if first:
        claims.holds(
            f"{row.variant}: the base's layer was read once",
            on.size <= row.read < on.size + 100_000,
            show.size(row.read),
        )
    else:
        claims.equal(f"{row.variant}: bytes read of the indexed base", row.read, 0)


def pushed_again(
    row: Baked, shop: Workshop, builder: Builder, claims: Claims, *, on: Baked
) -> None:
    """Push a build into the base's own repository, and to another registry."""
    shop.log.requests()
    here, _ = builder.ask("push", row.variant, f"{FIRST}/{on.repository}:{row.variant}")
    sent = {item.uploaded for item in shop.log.requests()} - {None}
    blobs = ", ".join(f"{count} {way}" for way, count in here["blobs"].items())
    claims.holds(
        f"{row.variant}: into the base's own repository, where the base stays as it is",
        sent.isdisjoint(on.blobs) and here["blobs"]["mounted"] == 0 < here["blobs"]["present"],
        blobs,
    )
    there, seconds = builder.ask("push", row.variant, f"{SECOND}/team/vllm:{row.variant}")
    claims.holds(
        f"{row.variant}: to a second registry, copying what it lacks",
        there["digest"] == row.digest and there["blobs"]["mounted"] == 0,
        f"{show.size(there['uploaded_bytes'])} in {seconds:.1f} s",
    )


def cold(rows: Sequence[Baked], shop: Workshop, claims: Claims) -> list[Baked]:
    """Bake everything again with an empty store; only downloaded wheels are kept."""
    builder = shop.builder("cold")
    again = []
    for row in rows:
        shop.log.requests()
        target = f"{FIRST}/cold/{row.variant}:v0.22.0"
        document, seconds = builder.ask("build", row.variant, "--push", target)
        requests = shop.log.requests()
        made = _row(document, seconds, requests=requests, repository=f"cold/{row.variant}")
        claims.equal(f"{row.variant}: again, from an empty store", made.digest, row.digest)
        again.append(replace(made, note=" (cold store)"))
    verified, _ = builder.ask("store", "verify")
    claims.equal("store verify: errors", verified["errors"], [])
    shop.drop(builder)
    return again


def pinned_base() -> str:
    """The base's digest in the lock."""
    pin = Project(ROOT).images[BASE].platform(Platform("linux", "amd64"))
    return "" if pin is None else str(pin.manifest)


def _row(
    document: dict[str, Any], seconds: float, *, requests: Sequence[Request], repository: str
) -> Baked:
    image = document["images"][0]
    layers = image["layers"]
    return Baked(
        variant=image["variant"],
        note="",
        digest=image["digest"],
        repository=repository,
        blobs=tuple(layer["digest"] for layer in layers),
        size=sum(layer["size"] for layer in layers),
        read=read_from(tuple(requests), _BASE_REPOSITORY),
        seconds=seconds,
    )
