"""Which base a patch set may be laid into: refused, excepted until a day, and refused again,
whatever is cached by then."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builder import pipeline
from builder.errors import PolicyError
from tests.flow.images import MadeImage, Node, image, serve
from tests.flow.worlds import AMD64, BASE, REGISTRY, Done, Tiny, at_packages
from tests.patch_world import GUARDS, PatchWorld, patch_world
from tests.standin.registry import StandIn

pytestmark = pytest.mark.requires("git", "unshare")

COMMIT = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"
APPLY = """\
import logging, pathlib, vllm
config = pathlib.Path(vllm.__file__).with_name("config.py")
config.write_text("# [Genesis wiring marker: Genesis P1 v1]\\n" + config.read_text())
logging.getLogger("genesis.apply_all").info("[Genesis] applied: %s — %s", "P1", "done")
"""
STEP = {"name": "set", "genesis": "v1", "platform": "cuda-8.6"}
AT = "variants/it.yaml:7: steps[0]"
RECORD = (
    "take a base that it lists, or record an exception: builder waive it --reason TEXT --until DATE"
)


def day(days: int) -> str:
    """So many days from now, in UTC."""
    return str(datetime.now(UTC).date() + timedelta(days=days))


def installed(version: str, commit: str | None = None) -> dict[str, Node]:
    """A base with this vLLM in it."""
    found = dict(BASE)
    found[at_packages("vllm-0.dist-info/METADATA")] = f"Version: {version}\n".encode()
    if commit is not None:
        text = f"__version__ = version = {version!r}\n__commit_id__ = commit_id = 'g{commit}'\n"
        found[at_packages("vllm/_version.py")] = text.encode()
    return found


@dataclass(frozen=True, kw_only=True)
class Night:
    """A project with one variant: the patch set on a base."""

    tiny: Tiny
    patches: PatchWorld
    registry: StandIn

    def on(self, made: MadeImage, **pin: Any) -> None:
        """Let the variant have another base."""
        serve(self.registry, made)
        self.tiny.pin(made, **pin)

    def run(self, *arguments: str) -> Done:
        return self.tiny.run(*arguments, BUILDER_MIRRORS=self.patches.mirrors)

    def waive(self, until: str = "") -> None:
        done = self.run(
            *("waive", "it", "--reason", "tried", "--author", "Ada", "--until", until or day(30))
        )
        assert done.status == 0, done.err

    def end_waiver(self) -> None:
        """Yesterday was the last day of the one that there is."""
        file = self.tiny.root / "lockfiles/waivers.yaml"
        file.write_text(file.read_text().replace(day(30), day(-1)))

    @property
    def message(self) -> str:
        return f"{AT}: allowlist: Genesis {self.patches.commit[:12]} does not list vLLM 0.20.2"


@pytest.fixture
def night(tmp_path: Path, registry: StandIn) -> Night:
    """On vLLM 0.20.2, by its pin; the patch set lists 0.20.1."""
    tiny = Tiny.make(tmp_path, registries={REGISTRY: {"location": registry.host}})
    more = {"patches/__init__.py": "", "patches/apply_all.py": APPLY}
    patches = patch_world(tmp_path, more=more)
    night = Night(tiny=tiny, patches=patches, registry=registry)
    night.on(image(installed("0.20.2")), vllm={"version": "0.20.2"})
    (tiny.root / "lockfiles/genesis.yaml").write_text(patches.lock())
    tiny.variant("it", STEP)
    return night


def test_a_base_that_is_not_listed_is_refused_before_anything_runs(night: Night) -> None:
    done = night.run("build", "it")
    assert (done.status, done.out) == (5, "")
    assert done.err == (
        f"builder: error: {night.message}\n  hint: the nearest that it lists: '0.20.1'; {RECORD}\n"
    )
    assert night.tiny.references() == {}
    assert done.err == night.run("build", "it").err


def test_check_refuses_what_build_refuses(night: Night) -> None:
    assert night.run("check", "it").status == 0  # nothing is fetched, and nothing is at hand
    assert night.run("build", "it").status == 5
    done = night.run("check", "it", "--json")
    assert done.status == 5
    (finding,) = [item for item in done.json["findings"] if item["severity"] == "error"]
    assert f"{finding['where']}: {finding['message']}" == night.message
    assert finding["hint"] == f"the nearest that it lists: '0.20.1'; {RECORD}"
    night.waive()
    done = night.run("check", "it", "--json")
    assert done.status == 0
    messages = [item["message"] for item in done.json["findings"]]
    assert any("lets it pass until" in message for message in messages)


def test_a_waiver_lets_it_pass_and_says_so(night: Night) -> None:
    night.waive()
    done = night.run("build", "it", "--json")
    assert done.status == 0, done.err
    name = f"genesis-{night.patches.commit[:12]}-vllm-0.20.2"
    assert done.first == (
        f"builder: {night.message}; waiver {name!r} lets it pass until {day(30)}: tried (Ada)"
    )
    assert done.json["images"][0]["layers"][0]["patches"] == [
        {
            "name": "P1",
            "state": "applied",
            "reason": "done",
            "files": [at_packages("vllm/config.py")],
        }
    ]


def test_a_waiver_that_ended_refuses_again_though_every_layer_is_there(night: Night) -> None:
    night.waive()
    assert night.run("build", "it").status == 0
    before = night.tiny.references()
    assert night.run("build", "it").status == 0
    night.end_waiver()
    for _ in range(2):
        done = night.run("build", "it")
        assert done.status == 5
        name = f"genesis-{night.patches.commit[:12]}-vllm-0.20.2"
        assert done.first == (
            f"builder: error: {night.message}, and waiver {name!r} ended on {day(-1)}"
        )
    assert night.tiny.references() == before


def test_the_day_alone_ends_a_waiver(night: Night) -> None:
    """No file is different: the clock went on."""
    night.waive()
    assert night.run("build", "it").status == 0
    project, world = night.tiny.world(BUILDER_MIRRORS=night.patches.mirrors)
    last = date.fromisoformat(day(30))
    with world.store.lease():
        made = pipeline.build(project, "it", world=replace(world, today=last), platform=AMD64)
        assert all(step.cached for step in made.steps)
        with pytest.raises(PolicyError, match="ended on"):
            pipeline.build(
                project,
                "it",
                world=replace(world, today=last + timedelta(days=1)),
                platform=AMD64,
            )


def test_the_remembered_answer_holds_no_longer_than_the_waiver(night: Night) -> None:
    night.waive(day(3))
    night.run("build", "it")
    (answer,) = (night.tiny.store_path / "notes" / "answer").iterdir()
    head, _, _ = answer.read_text().partition("\n\n")
    assert f"\nuntil {day(3)} -\n" in head
    answer.write_text(f"{head}\n\nfrom memory\n")
    assert night.run("build", "it").out == "from memory\n"
    # As on the day after its last one.
    over = head.replace(f"until {day(3)}", f"until {day(-1)}")
    answer.write_text(f"{over}\n\nfrom memory\n")
    assert "cached" in night.run("build", "it").out


def test_a_base_that_is_listed_leaves_an_answer_without_an_end(night: Night) -> None:
    night.on(image(installed("0.20.1")), vllm={"version": "0.20.1"})
    assert "allowlist" not in night.run("build", "it").err
    (answer,) = (night.tiny.store_path / "notes" / "answer").iterdir()
    assert "until " not in answer.read_text().partition("\n\n")[0]


# --- a pin that does not say which vLLM its base has ---------------------------------------------


@pytest.mark.parametrize(
    ("base", "guards", "status", "said"),
    [
        pytest.param(installed("0.20.1"), GUARDS, 0, "", id="listed"),
        pytest.param(installed("0.20.2"), GUARDS, 5, "does not list vLLM 0.20.2", id="not listed"),
        pytest.param(
            installed(f"0.20.2rc1.dev9+g{COMMIT[:9]}", COMMIT),
            f'KNOWN_GOOD_VLLM_PINS: tuple[str, ...] = ("nightly-{COMMIT}",)\n',
            0,
            "",
            id="listed by its commit",
        ),
        pytest.param(
            dict(BASE),
            GUARDS,
            5,
            "nothing says which vLLM the patch set would be laid into",
            id="no vLLM",
        ),
    ],
)
def test_it_is_read_from_the_files_of_the_base(
    tmp_path: Path,
    registry: StandIn,
    night: Night,
    base: Mapping[str, Node],
    guards: str,
    status: int,
    said: str,
) -> None:
    more = {"patches/__init__.py": "", "patches/apply_all.py": APPLY}
    (tmp_path / "other").mkdir()
    other = replace(night, patches=patch_world(tmp_path / "other", guards=guards, more=more))
    (other.tiny.root / "lockfiles/genesis.yaml").write_text(other.patches.lock())
    other.on(image(base))
    done = other.run("build", "it")
    assert (done.status, said in done.first) == (status, True), done.err


# --- what it says of the environment -------------------------------------------------------------


def test_an_environment_that_it_does_not_take_is_an_error_or_a_warning_by_policy(
    night: Night,
) -> None:
    night.on(image(installed("0.20.1")), vllm={"version": "0.20.1"})
    night.tiny.variant("it", STEP, image={"env": {"GENESIS_ENABLE_P11": "1"}})
    done = night.run("build", "it")
    assert done.status == 3
    assert done.first.startswith(f"builder: error: {AT}: unknown-flag: ")
    assert "hint: did you mean 'GENESIS_ENABLE_P1'?" in done.err
    settings = {"policy": {"genesis": {"unknown-flag": "warning"}}}
    registries = {REGISTRY: {"location": night.registry.host}}
    night.tiny.document("builder.yaml", {"version": 1, "registries": registries, **settings})
    done = night.run("build", "it")
    assert done.status == 0
    assert done.first.startswith(f"builder: {AT}: unknown-flag: ")
    assert done.first.endswith("; did you mean 'GENESIS_ENABLE_P1'?")
