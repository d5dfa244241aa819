"""A night: every pin by itself, every outcome told, nothing written."""

from dataclasses import replace
from typing import Any

import pytest

from builder.errors import (
    BuilderError,
    GoneError,
    OfflineError,
    PatchError,
    ProjectError,
)
from builder.lock.codec import read_results
from builder.lock.model import Pin
from builder.nightly import State, left_alone, night
from builder.project import Project
from tests.flow.conftest import Log
from tests.flow.images import PACKAGES, MadeImage, image, serve
from tests.flow.worlds import AMD64, BASE, CONFIG, ROOT, Tiny, base_image
from tests.nightly.worlds import as_image, following, means, moved, nights, patch_set, states
from tests.standin.registry import StandIn

pytestmark = pytest.mark.usefixtures("registry")
RESULT = "lockfiles/images/it.yaml"


def newer(config: bytes = CONFIG + b"MORE = 1\n") -> MadeImage:
    return image({"etc/hostname": b"base\n"}, BASE | {f"{PACKAGES}/vllm/config.py": config})


def one_variant(tiny: Tiny, registry: StandIn) -> None:
    serve(registry, base_image())
    following(tiny, base_image())
    tiny.edit("sizes", "vllm/config.py", "SIZE = 128", "SIZE = 256")
    tiny.variant("it", "sizes")


def test_one_that_fails_stops_no_other(tiny: Tiny) -> None:
    for name in ("gone", "moved", "offline", "same"):
        patch_set(tiny, name)

    def upstream(pin: Pin) -> Pin | BuilderError:
        match pin.name:
            case "gone":
                return GoneError("it is gone")
            case "offline":
                return OfflineError("not now")
            case "moved":
                return moved(pin)
            case _:
                return pin

    before = tiny.snapshot()
    outcomes = nights(tiny, upstream)
    assert states(outcomes) == {
        "gone": "unknown",
        "moved": "passes",
        "offline": "unknown",
        "same": "current",
    }
    assert [error.message for item in outcomes for error in item.errors] == [
        "it is gone",
        "not now",
    ]
    assert tiny.snapshot() == before


def test_what_is_current_is_not_tried(tiny: Tiny, registry: StandIn, log: Log) -> None:
    one_variant(tiny, registry)
    assert states(nights(tiny, lambda pin: pin)) == {"base": "current"}
    assert log.runs() == []
    assert registry.calls == []


def test_what_passes_is_built_and_the_store_says_the_same_as_before(
    tiny: Tiny, registry: StandIn
) -> None:
    one_variant(tiny, registry)
    tiny.bake("it")
    made = newer()
    serve(registry, made)
    names, before = tiny.references(), tiny.snapshot()
    (outcome,) = nights(tiny, lambda pin: as_image(pin, made))
    assert outcome.state is State.PASSES
    assert outcome.bump is not None
    (trial,) = outcome.bump.trials
    (baked,) = outcome.baked
    assert (baked.variant, baked.image, baked.accepted) == ("it", trial.image, None)
    assert tiny.store.has(baked.image)
    assert tiny.references() == names
    assert tiny.snapshot() == before
    assert outcome.results == {}


def test_a_result_that_somebody_accepted_is_renewed(tiny: Tiny, registry: StandIn) -> None:
    one_variant(tiny, registry)
    assert tiny.run("accept", "it").status == 0
    made = newer()
    serve(registry, made)
    before = tiny.snapshot()
    (outcome,) = nights(tiny, lambda pin: as_image(pin, made))
    (baked,) = outcome.baked
    assert list(outcome.results) == [RESULT]
    _, (result,) = read_results(outcome.results[RESULT], file=RESULT)
    assert result.digest == baked.image
    assert baked.accepted is not None
    assert str(baked.accepted) in before[RESULT].decode()
    assert tiny.snapshot() == before


def test_the_renewed_result_is_what_locked_asks_for(tiny: Tiny, registry: StandIn) -> None:
    one_variant(tiny, registry)
    assert tiny.run("accept", "it").status == 0
    made = newer()
    serve(registry, made)
    (outcome,) = nights(tiny, lambda pin: as_image(pin, made))
    assert outcome.bump is not None
    for file, data in (outcome.bump.files | outcome.results).items():  # type: ignore[operator]  # dicts
        (tiny.root / file).write_bytes(data)
    assert tiny.run("build", "it", "--locked").status == 0


def test_other_platforms_stay_and_are_told(tiny: Tiny, registry: StandIn) -> None:
    one_variant(tiny, registry)
    assert tiny.run("accept", "it").status == 0
    text = (tiny.root / RESULT).read_text()
    head, _, rest = text.partition("  linux/amd64:")
    (tiny.root / RESULT).write_text(f"{head}  linux/amd64:{rest}  linux/arm64:{rest}")
    made = newer()
    serve(registry, made)
    (outcome,) = nights(tiny, lambda pin: as_image(pin, made))
    assert outcome.remarks == ("it: what is accepted for linux/arm64 was not tried, and stays",)
    _, results = read_results(outcome.results[RESULT], file=RESULT)
    assert len({result.digest for result in results}) == 2


def test_a_dead_patch_fails_its_pin_and_is_not_built(tiny: Tiny, registry: StandIn) -> None:
    one_variant(tiny, registry)
    patch_set(tiny, "other")
    made = newer(b"SIZE = 64\n")
    serve(registry, made)
    outcomes = nights(tiny, lambda pin: as_image(pin, made) if pin.name == "base" else moved(pin))
    assert states(outcomes) == {"base": "fails", "other": "passes"}
    assert outcomes[0].baked == ()
    assert [type(error) for error in outcomes[0].errors] == [PatchError]


def test_a_build_that_fails_after_all_fails_its_pin(tiny: Tiny, registry: StandIn) -> None:
    """The trial passed, and then somebody changed a recipe."""
    one_variant(tiny, registry)
    made = newer()
    serve(registry, made)

    def upstream(pin: Pin) -> Pin:
        return as_image(pin, made)

    project, world = tiny.world()
    usual = means(project, world, upstream)

    def attempt(moves: Any) -> Any:
        bump = usual.attempt(moves)
        tiny.edit("sizes", "vllm/config.py", "NOT THERE", "SIZE = 256")
        return bump

    done = replace(usual, attempt=attempt)
    (outcome,) = night(project, world=world, platform=AMD64, means=done)
    assert outcome.state is State.FAILS
    assert isinstance(outcome.error, PatchError)
    assert outcome.bump is not None
    assert not outcome.bump.failing


def test_a_recipe_that_cannot_be_read_is_told_for_the_pins_that_move(tiny: Tiny) -> None:
    patch_set(tiny, "moved")
    patch_set(tiny, "same")
    tiny.document("variants/broken.yaml", {"version": 1})
    outcomes = nights(tiny, lambda pin: moved(pin) if pin.name == "moved" else pin)
    assert states(outcomes) == {"moved": "unknown", "same": "current"}
    assert isinstance(outcomes[0].error, ProjectError)


def test_an_empty_project_has_an_empty_night(tiny: Tiny) -> None:
    assert nights(tiny, lambda pin: pin) == []


def test_what_follows_nothing_is_left_alone_and_says_why(tiny: Tiny) -> None:
    tiny.pin(base_image())
    tiny.lock(
        "sources",
        "files",
        {
            "follows": {"repository": "https://git.test/x"},
            "commit": "a" * 40,
            "tree": "b" * 40,
            "files": {"a": {"digest": f"sha256:{'c' * 64}", "size": 1}},
        },
    )
    tiny.lock(
        "pulls",
        "pr1",
        {
            "follows": {"repository": "https://git.test/x", "pull": 1},
            "published": {"source": "files", "path": "a"},
            "diff": f"sha256:{'c' * 64}",
        },
    )
    tiny.lock(
        "wheels",
        "w",
        {
            "follows": {"project": "w", "version": "1.0"},
            "filename": "w-1.0-py3-none-any.whl",
            "digest": f"sha256:{'c' * 64}",
        },
    )

    def upstream(pin: Pin) -> Pin:
        raise AssertionError(f"{pin.name} was asked for")

    outcomes = nights(tiny, upstream)
    assert {item.name: item.remarks for item in outcomes} == {
        "base": ("it follows no other tag than 't'",),
        "pr1": ("it moves with the source 'files', which has its diff",),
        "files": ("it follows nothing",),
        "w": ("a wheel stays at its version, 1.0",),
    }
    assert {item.state for item in outcomes} == {State.LEFT}


def test_every_kind_of_pin_of_this_repository_is_decided() -> None:
    project = Project(ROOT)
    followed = [pin.name for pin in project.genesis.values() if left_alone(pin) is None]
    assert "demo-patches" in followed
