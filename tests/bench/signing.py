"""What it costs to sign an image of twenty layers, and to verify it, beside cosign.

The key has no password: scrypt takes a third of a second on purpose.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.access_log import Request
from tests.bench.measure import Row, Run, alternate
from tests.bench.workshop import Workshop
from tests.claims import Claims
from tests.commands import Builder, CommandError
from tests.real.debian_tool import STABLE, debian_tool
from tests.real.signature_tools import Cosign
from tests.signers import p256

_LAYERS = 20
_COSIGN = "usr/bin/cosign"
_PYTHON = {"version": "3.12", "packages": "usr/local/lib/python3.12/dist-packages"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signing:
    """A project whose variant ``it`` has two layers of the base and eighteen of ours."""

    shop: Workshop
    builder: Builder
    private: Path
    public: Path

    @classmethod
    def make(cls, shop: Workshop) -> "_Signing":
        project = shop.scratch / "signing"
        base = shop.bases["large"]
        pin = {
            "follows": {"image": f"{shop.registry.host}/bench/base", "tag": "large"},
            "platforms": {"linux/amd64": {"manifest": str(base.manifest.digest)}},
        }
        _put(project / "lockfiles/vllm.yaml", {"version": 1, "vllm": {"base": pin}})
        names = [f"o{number}" for number in range(_LAYERS - len(base.layers))]
        steps = [{"overlay": name} for name in names]
        recipe = {"version": 1, "base": {"pin": "base"}, "python": _PYTHON, "steps": steps}
        _put(project / "variants/it.yaml", recipe)
        for name in names:
            file = {"path": f"vllm/{name}.py", "file": "it.py", "replaces": "nothing"}
            _put(project / f"overlays/{name}/overlay.yaml", {"version": 1, "files": [file]})
            (project / f"overlays/{name}/it.py").write_text(f"NAME = {name!r}\n")
        private, public = project / "key.pem", project / "key.pub"
        private.write_bytes(p256().pem)
        private.chmod(0o600)
        public.write_bytes(p256().public.pem)
        builder = Builder(store=shop.builder.store, project=project)
        return cls(shop=shop, builder=builder, private=private, public=public)

    def sign(self, reference: str) -> float:
        key = ("--key", self.private, "--allow-plaintext")
        return self.builder.run("sign", "it", reference, *key).seconds

    def verify(self, reference: str) -> float:
        return self.builder.run("verify", reference, "--key", self.public).seconds


def _put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def signing(shop: Workshop, claims: Claims, times: int) -> list[Row]:
    """``builder sign`` and ``verify`` in a registry; ``verify`` beside cosign, which verifies two
    of the four statements that we do; ``verify`` of a layout, without network."""
    it = _Signing.make(shop)
    requests: list[Request] = []
    references: list[str] = []

    def both(number: int) -> float:
        reference = f"{shop.registry.host}/bench/signing-{number}:t"
        it.builder.run("build", "it", "--push", reference)
        references.append(reference)
        shop.log.requests()
        seconds = it.sign(reference) + it.verify(reference)
        requests.extend(shop.log.requests())
        return seconds

    medians = alternate({"both": both}, times)
    _nothing_read(requests, it, claims)
    runs: dict[str, Run] = {"ours": lambda _: it.verify(references[-1])}
    if (cosign := _cosign(shop.scratch, claims)) is not None:
        runs["cosign verify, verify-attestation"] = lambda _: _timed(
            lambda: cosign.verify(references[-1], it.public),
            lambda: cosign.verify_attestation(references[-1], it.public),
        )
    verified = alternate(runs, times)
    layout = shop.scratch / "signed"
    it.builder.run("build", "it", "--out", layout)
    it.sign(f"oci:{layout}")
    offline = alternate({"ours": lambda _: it.verify(f"oci:{layout}")}, times)
    what = f"verify an image of {_LAYERS} layers"
    return [
        Row(what=f"sign and {what}", ours=medians["both"], peers={}, limit=1.0),
        Row(what=what, ours=verified.pop("ours"), peers=verified),
        Row(what=f"{what}, in a layout", ours=offline["ours"], peers={}, limit=0.5),
    ]


def _nothing_read(requests: list[Request], it: _Signing, claims: Claims) -> None:
    """Neither needs a layer: not of the base, not of ours."""
    image = json.loads(it.builder.run("build", "it", "--json").stdout)["images"][0]
    layers = {layer["digest"] for layer in image["layers"]}
    layers |= {str(layer.digest) for _, layer in it.shop.bases["large"].layers}
    read = [item.path for item in requests if item.path.rpartition("/")[2] in layers]
    claims.holds(
        "signing and verifying ask for no layer",
        len(layers) == _LAYERS and bool(requests) and not read,
        f"{len(requests)} requests, {len(read)} of them for one of {len(layers)} layers",
    )


def _cosign(scratch: Path, claims: Claims) -> Cosign | None:
    home = scratch / "cosign"
    home.mkdir()
    try:
        return Cosign(name="cosign 2", program=debian_tool("cosign", STABLE, _COSIGN), home=home)
    except CommandError as error:
        claims.not_run("cosign", error.said or str(error))
        return None


def _timed(*steps: Callable[[], None]) -> float:
    start = time.perf_counter()
    for step in steps:
        step()
    return time.perf_counter() - start
