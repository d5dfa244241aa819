"""A build that has one of everything, made up of values: no file, no store."""

import json
from typing import Any

from builder import canonical
from builder.base import Base
from builder.build_record import Build, Record, describe, parse
from builder.digest import Digest, ObjectId
from builder.genesis.allowlist import Judgement, Listing
from builder.image import assemble
from builder.lock.model import (
    Escrow,
    GenesisPin,
    ImagePin,
    Lock,
    ModelFile,
    ModelPin,
    PlatformPin,
    PullPin,
    SourceDiff,
    SourceFile,
    SourcePin,
    Subtree,
    VllmBuild,
    Waiver,
    WheelPin,
)
from builder.oci import DOCKER_LAYER_GZIP, OCI_CONFIG, OCI_MANIFEST, Manifest, Platform
from builder.outcome import FileOutcome, LayerOutput, Output, PatchOutcome, PatchState
from builder.plan import plan
from builder.policy import Ruling
from builder.realise import Realised
from builder.reference import Reference
from builder.variant import (
    Action,
    Edit,
    EditRule,
    FileRule,
    GenesisStep,
    ImageSettings,
    Overlay,
    OverlayStep,
    PatchRule,
    PinnedBase,
    Placement,
    PullStep,
    Python,
    RemoveRule,
    Script,
    ScriptFile,
    ScriptStep,
    SourceStep,
    Variant,
    WheelsStep,
)
from builder.verdict import Verdict

AMD64 = Platform("linux", "amd64")
PACKAGES = "usr/local/lib/python3.12/dist-packages"
REPOSITORY = "https://github.com/acme/vllm"


def digest(text: str) -> Digest:
    """A digest that is told from others."""
    return Digest.of(text.encode())


def commit(digit: str) -> ObjectId:
    """A commit, or a tree."""
    return ObjectId(digit * 40)


class Nowhere:
    """An origin that has nothing: records must not fetch."""

    def document(self, digest: Digest) -> bytes:
        raise AssertionError(digest)

    def blob(self, descriptor: object) -> Any:
        raise AssertionError(descriptor)


WAIVER = Waiver(
    name="for-a-week",
    rule="genesis-allowlist",
    genesis=commit("4"),
    vllm="0.22.0",
    reason="tried by hand",
    author="Ann",
    until="2026-12-31",
)
LOCK = Lock(
    images={
        "nightly": ImagePin(
            name="nightly",
            follows=Reference.parse("docker.io/vllm/vllm-openai:nightly"),
            tags="nightly-*",
            commits=REPOSITORY,
            index=digest("index"),
            platforms=((AMD64, PlatformPin(manifest=digest("pinned manifest"))),),
            vllm=VllmBuild(version="0.22.0.dev1", commit=commit("c"), package=f"{PACKAGES}/vllm"),
            escrow=(Escrow(layout="escrow", digest=digest("index")),),
            failing=("other",),
            locked="2026-05-11T00:00:00Z",
        )
    },
    pulls={
        "pr-1": PullPin(
            name="pr-1",
            repository=REPOSITORY,
            pull=1,
            base=commit("1"),
            head=commit("2"),
            diff=digest("diff 1"),
            raw=digest("raw 1"),
            root=".",
            strip=1,
        ),
        "pr-2": PullPin(
            name="pr-2",
            repository=REPOSITORY,
            pull=2,
            published=SourceDiff(source="club", path="pr-2.patch"),
            diff=digest("diff 2"),
            raw=digest("raw 2"),
        ),
    },
    sources={
        "club": SourcePin(
            name="club",
            repository="https://github.com/acme/club",
            follows="refs/heads/main",
            commit=commit("3"),
            tree=commit("5"),
            files=(
                SourceFile(path="pr-2.patch", digest=digest("raw 2"), size=7),
                SourceFile(path="template", digest=digest("template"), size=8),
                SourceFile(path="fix.sh", digest=digest("fix.sh"), size=9),
                SourceFile(path="of another variant", digest=digest("unused"), size=9),
            ),
        )
    },
    wheels={
        "pandas": WheelPin(
            name="pandas",
            project="Pandas_X",
            version="2.2.3+local",
            filename="pandas_x-2.2.3+local-py3-none-any.whl",
            digest=digest("pandas"),
            size=10,
        ),
        "ours": WheelPin(
            name="ours",
            project="ours",
            version="1",
            filename="ours-1-py3-none-any.whl",
            digest=digest("ours"),
            path="wheels/ours-1",
        ),
    },
    genesis={
        "gen": GenesisPin(
            name="gen",
            repository="https://github.com/acme/genesis",
            follows="refs/heads/dev",
            commit=commit("4"),
            tree=commit("6"),
            payload=Subtree(path="vllm/_genesis", tree=commit("7")),
            plugin=Subtree(path="tools/plugin", tree=commit("8")),
            reachable=("refs/heads/dev",),
        )
    },
    models={
        "qwen": ModelPin(
            name="qwen",
            repository="Org/Qwen-27B.X",
            follows="main",
            commit=commit("9"),
            files=(
                ModelFile(path="a/b.safetensors", digest=digest("weights"), size=11),
                ModelFile(path="config.json", digest=digest("config.json"), size=12),
            ),
            include=("*",),
            require=("config.json",),
            forbid=("*.bin",),
        )
    },
)
OVERLAY = Overlay(
    name="own",
    files=(FileRule(target="vllm/f.py", file="f.py", data=b"f", replaces=digest("f"), mode=0o755),),
    remove=(RemoveRule(target="vllm/r.py", replaces=digest("r")),),
    edits=(
        EditRule(
            target="vllm/e.py",
            replaces=digest("e"),
            edits=(Edit(anchor=b"a", action=Action.INSERT_AFTER, text=b"b", count=2),),
        ),
    ),
    patch=PatchRule(file="own.patch", data=b"diff", root="/", strip=1, ignore=("x",)),
    scripts=(Script(file="fix.py", data=b"fix"),),
)
VARIANT = Variant(
    name="rich",
    base=PinnedBase(pin="nightly"),
    python=Python(version="3.12", packages=PACKAGES),
    steps=(
        PullStep(name="pr-1", pull="pr-1", ignore=("tests/**",)),
        PullStep(name="pr-2", pull="pr-2", root=".", strip=1, until_upstream=True),
        SourceStep(
            name="template",
            source="club",
            files=(
                Placement(source="template", target="/etc/t", replaces=digest("t"), mode=0o644),
            ),
        ),
        WheelsStep(name="wheels", wheels=("pandas", "ours")),
        OverlayStep(name="own", overlay="own"),
        ScriptStep(
            name="own script",
            script=ScriptFile(overlay="own", path="fix.py"),
            interpreter="python",
            touches=("vllm/s.py",),
            arguments=("-v",),
            environment=(("A", "1"),),
        ),
        ScriptStep(
            name="pinned script",
            script=ScriptFile(source="club", path="fix.sh"),
            interpreter="sh",
            touches=("vllm/t.py",),
        ),
        GenesisStep(name="gen", genesis="gen", platform="cuda-8.6", speculative="mtp"),
    ),
    image=ImageSettings(
        env=(("GENESIS_X", "1"), ("GONE", None), ("PYTHONPYCACHEPREFIX", "/cache")),
        labels=(("a.label", "text"), ("gone", None)),
        entrypoint=("vllm", "serve"),
        command=(),
        workdir="/srv",
        user="1000",
    ),
    models=("qwen",),
)
ASKED: dict[tuple[str, str], Digest | None] = {
    ("read", "variants/rich.yaml"): digest("recipe"),
    ("read", "variants/other.yaml"): digest("another recipe"),
    **{
        ("read", f"lockfiles/{kind}.yaml"): digest(f"lock {kind}")
        for kind in ("vllm", "pulls", "sources", "wheels", "genesis", "models", "waivers")
    },
    ("tree", "overlays/own"): digest("a listing"),
    ("read", "overlays/own/overlay.yaml"): digest("overlay.yaml"),
    ("read", "overlays/own/fix.py"): digest("fix.py"),
    ("read", "overlays/own/gone"): None,
    ("read", "overlays/other/overlay.yaml"): digest("another overlay"),
}


def base() -> Base:
    """A base of two layers."""
    diff_ids = [digest("diff id 0"), digest("diff id 1")]
    config = canonical.encode(
        {
            "architecture": "amd64",
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [str(item) for item in diff_ids]},
        }
    )
    layers = [
        {"mediaType": DOCKER_LAYER_GZIP, "digest": str(digest(f"layer {number}")), "size": number}
        for number in (1, 2)
    ]
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": {
            "mediaType": OCI_CONFIG,
            "digest": str(Digest.of(config)),
            "size": len(config),
        },
        "layers": layers,
    }
    return Base(
        manifest=Manifest.parse(canonical.encode(document)),
        config=config,
        diff_ids=tuple(diff_ids),
        origin=Nowhere(),
        reference=Reference.parse("docker.io/vllm/vllm-openai:nightly"),
        index=digest("index"),
    )


def _layer(name: str) -> LayerOutput:
    return LayerOutput(
        digest=digest(f"{name} blob"),
        size=100,
        diff_id=digest(f"{name} diff id"),
        index=digest(f"{name} index"),
        table=digest(f"{name} table"),
    )


def _output(name: str, **fields: Any) -> Output:
    file = FileOutcome(
        path=f"{PACKAGES}/vllm/{name.replace(' ', '_')}.py",
        verdict=Verdict.APPLIED_WITH_OFFSET,
        pre=digest(f"{name} before"),
        post=digest(f"{name} after"),
        offsets=(0, 3),
    )
    return Output(layer=_layer(name), **{"files": (file,), **fields})


def outputs() -> dict[str, Output]:
    """What the steps came to, by name."""
    etc = FileOutcome(path="etc/t", verdict=Verdict.APPLIED, post=digest("t"))
    patches = (
        PatchOutcome(name="P1", state=PatchState.APPLIED, reason="done", files=("etc/p1",)),
        PatchOutcome(name="P2", state=PatchState.SKIPPED, reason="opt-in:\n  say so"),
        PatchOutcome(name="P3", state=PatchState.RUNTIME_ONLY, reason="hooked at 0x7f00"),
    )
    ran = {"sandbox": "linux-namespaces"}
    return {
        "pr-1": _output("pr-1", ignored=("tests/test_a.py",)),
        "pr-2": Output(layer=None, summary="left out: already upstream"),
        "template": _output("template", files=(etc,)),
        "wheels": _output("wheels", files=(), summary="pandas-x 2.2.3+local: 9 files"),
        "own": _output("own"),
        "own script": _output("own script", **ran),
        "pinned script": _output("pinned script", **ran),
        "gen": _output("gen", patches=patches, summary="2 applied", **ran),
    }


def build(*, lock: Lock = LOCK, on: Base | None = None) -> Build:
    """The build of all that."""
    below = base() if on is None else on
    chain = plan(
        VARIANT,
        lock,
        overlay=lambda _: OVERLAY,
        platform=AMD64,
        base=below.manifest.digest,
        strict=True,
    )
    came_to = outputs()
    steps = tuple(
        Realised(step=step, output=came_to[step.name], cached=False) for step in chain.steps
    )
    layers = [
        (step.step.name, step.output.layer) for step in steps if step.output.layer is not None
    ]
    return Build(
        plan=chain,
        base=below,
        steps=steps,
        image=assemble(below, layers, settings=VARIANT.image, platform=AMD64),
        rulings=(
            Ruling(
                at="variants/rich.yaml:1",
                commit=commit("4"),
                judgement=Judgement(listing=Listing.NOT_LISTED, vllm="0.22.0"),
                waiver=WAIVER,
            ),
        ),
        lock=lock,
        asked=ASKED,
    )


def document(made: Build | None = None) -> dict[str, Any]:
    """The record of a build, as it is read back."""
    value: dict[str, Any] = json.loads(canonical.encode(describe(made or build())))
    return value


def record(value: dict[str, Any] | None = None) -> Record:
    """The record as a value."""
    return parse(canonical.encode(document() if value is None else value), at="a record")
