"""The steps of ``variants/tq3-mtp-genesis.yaml`` on the nearest vLLM that can be had.

Its base is deleted upstream. The wheel of vLLM 0.20.2 was made a few days later from a branch that
was cut then: a base image of nothing but that wheel takes its place here. Genesis does not list it,
which is what the waiver is for.
"""

import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from builder.errors import GoneError, NetworkError, PolicyError
from builder.project import Project
from builder.variant import SourceStep
from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError
from tests.real.genesis_facts import lacking
from tests.real.workshop import Workshop

VARIANT = "tq3-mtp-genesis"
NEAREST = "vllm-0.20.2"
GONE = (GoneError.exit_status, NetworkError.exit_status)

_BASE = "base: {pin: nightly-01d4d1ad}\nsteps:\n"
_NEAREST = f"""base: scratch
python: {{version: "3.12", packages: usr/local/lib/python3.12/dist-packages}}
steps:
  - wheels: [{NEAREST}]
    name: nearest
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """What a step must have come to for one file."""

    step: str
    path: str
    verdict: str


WANTED = (
    Touch(
        step="genesis-v7.72.2",
        path="vllm/v1/attention/backends/turboquant_attn.py",
        verdict="applied",
    ),
    Touch(
        step="genesis-v7.72.2",
        path="vllm/tool_parsers/qwen3coder_tool_parser.py",
        verdict="applied",
    ),
    Touch(
        step="qwen3coder-deferred-commit",
        path="vllm/tool_parsers/qwen3coder_tool_parser.py",
        verdict="applied",
    ),
    Touch(step="pr41800", path="vllm/entrypoints/utils.py", verdict="applied"),
    Touch(step="chat-template", path="/etc/qwen-froggeric-chat-template.jinja", verdict="applied"),
    Touch(step=VARIANT, path="/usr/local/bin/tq3-mtp-genesis", verdict="applied"),
)


def steps(shop: Workshop, builder: Builder, claims: Claims) -> None:
    """Bake the recipe on the nearest vLLM, first without and then with a waiver, and hold every
    step to its verdict."""
    builder = replace(builder, project=trial(shop.scratch / "main-recipe"))
    claim = f"{VARIANT} on {NEAREST}"
    try:
        builder.ask("build", VARIANT)
    except CommandError as error:
        if error.status in GONE:
            why = f"an input is not to be had: {error.said}"
            claims.not_run(claim, why, wants=lacking())
            return
        refused = error.status == PolicyError.exit_status
        claims.holds(f"{claim}, without a waiver: refused", refused, error.said)
    else:
        claims.holds(f"{claim}, without a waiver: refused", False, "it was built")
    with claims.group(claim):
        waive(builder)
        document, seconds = builder.ask("build", VARIANT)
        image = document["images"][0]
        claims.equal(f"{claim} ({seconds:.1f} s): left out", image["left_out"], ["marlin-pad"])
        hold(builder, claims)


def trial(directory: Path) -> Path:
    """Make a project of this one's locks and overlays and the recipe on the other base."""
    for name in ("demo", "lockfiles", "overlays"):
        shutil.copytree(ROOT / name, directory / name)
    shutil.copy(ROOT / "builder.yaml", directory)
    recipe = (ROOT / f"variants/{VARIANT}.yaml").read_text(encoding="utf-8")
    if recipe.count(_BASE) != 1:
        raise ValueError(f"variants/{VARIANT}.yaml has another base than {_BASE!r}")
    (directory / "variants").mkdir()
    moved = directory / f"variants/{VARIANT}.yaml"
    moved.write_text(recipe.replace(_BASE, _NEAREST), encoding="utf-8")
    return directory


def waive(builder: Builder) -> None:
    """Let the nearest vLLM pass, for a day."""
    tomorrow = (datetime.now(tz=UTC) + timedelta(days=1)).date()
    builder.ask(
        *("waive", VARIANT, "--reason", "the listed nightly is deleted upstream"),
        *("--author", "make real", "--until", tomorrow.isoformat()),
    )


def hold(builder: Builder, claims: Claims) -> None:
    """The verdicts of the steps, by the record of the last build."""
    for touch in WANTED:
        got = {step: verdict for step, verdict, _ in touches(builder, touch.path)}
        claims.equal(
            f"{touch.step}: {touch.path}", got.get(touch.step, "not touched"), touch.verdict
        )
    project = Project(builder.project)
    for step in project.variant(VARIANT).steps:
        if isinstance(step, SourceStep) and step.until_upstream:
            for placement in step.files:
                published = project.sources[step.source].file(placement.source)
                (base,) = touches(builder, placement.target)
                claims.equal(
                    f"{step.name}: {placement.target}: already upstream, byte for byte",
                    base,
                    ("nearest", "applied", published and str(published.digest)),
                )


def touches(builder: Builder, path: str) -> list[tuple[str, str, str]]:
    """Step, verdict and post-image, for each step of the last build that wrote a file."""
    document, _ = builder.ask("why", VARIANT, path)
    return [(touch["step"], touch["verdict"], touch["post"]) for touch in document["touched_by"]]
