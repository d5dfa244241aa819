"""Trials: every step is told of, also above one that fails; and nothing false is remembered."""

import pytest

from builder.errors import GoneError
from builder.project import Project
from builder.trial import VariantTrial, try_variant
from tests.flow.conftest import Log
from tests.flow.images import PACKAGES, MadeImage, image, serve
from tests.flow.worlds import AMD64, BASE, CONFIG, MODULE, Tiny, base_image
from tests.standin.registry import StandIn

pytestmark = pytest.mark.usefixtures("registry")


def tried(tiny: Tiny) -> VariantTrial:
    project, world = tiny.world()
    return try_variant(project, "it", world=world, platform=AMD64)


def three_steps(tiny: Tiny, registry: StandIn, base: MadeImage | None = None) -> None:
    """Sizes, then the answer, then what the answer was made from."""
    made = base or base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.edit("sizes", "vllm/config.py", "SIZE = 128", "SIZE = 256")
    tiny.overlay(
        "answer", files={"vllm/sub/module.py": (MODULE, b"def answer():\n    return 42\n")}
    )
    tiny.edit("again", "vllm/config.py", "SIZE = 256", "SIZE = 512")
    tiny.variant("it", "sizes", "answer", "again")


def verdicts(trial: VariantTrial) -> dict[str, str]:
    return {step.step.name: step.verdict for step in trial.steps}


def test_a_trial_says_the_image_that_a_build_gives(tiny: Tiny, registry: StandIn) -> None:
    three_steps(tiny, registry)
    trial = tried(tiny)
    assert trial.passes
    assert verdicts(trial) == dict.fromkeys(("sizes", "answer", "again"), "applied")
    built = tiny.bake("it")
    assert trial.image == built.image.digest
    assert trial.size == sum(layer.size for layer in built.image.manifest.layers)


def test_a_trial_references_nothing(tiny: Tiny, registry: StandIn) -> None:
    three_steps(tiny, registry)
    assert tried(tiny).passes
    assert tiny.references() == {}


def test_a_build_after_a_trial_runs_nothing(tiny: Tiny, registry: StandIn, log: Log) -> None:
    three_steps(tiny, registry)
    tried(tiny)
    assert log.runs() == ["sizes", "answer", "again"]
    tiny.bake("it")
    assert log.runs() == []


def test_steps_above_one_that_fails_are_tried_without_it(tiny: Tiny, registry: StandIn) -> None:
    other = image({"etc/hostname": b"b\n"}, BASE | {f"{PACKAGES}/vllm/config.py": b"SIZE = 64\n"})
    three_steps(tiny, registry, other)
    trial = tried(tiny)
    assert not trial.passes
    assert verdicts(trial) == {
        "sizes": "drift-anchor",
        "answer": "applied",
        "again": "drift-anchor",
    }
    assert [step.below for step in trial.steps] == [None, "sizes", "sizes"]
    assert trial.image is None
    assert [error.exit_status for error in trial.errors] == [6, 6]


def test_what_was_made_above_a_failed_step_is_not_taken_for_the_real_thing(
    tiny: Tiny, registry: StandIn
) -> None:
    """``again`` applies to the base's own text where ``sizes`` fails. Under the derivation of the
    whole chain that must not be remembered: with ``sizes`` there, it does not apply."""
    three_steps(tiny, registry)
    tiny.edit("again", "vllm/config.py", "SIZE = 128", "SIZE = 512")
    fails = {"sizes": "applied", "answer": "applied", "again": "drift-anchor"}
    assert verdicts(tried(tiny)) == fails
    tiny.edit("sizes", "vllm/config.py", "NOT THERE", "SIZE = 256")
    without = tried(tiny)
    assert verdicts(without) == {"sizes": "drift-anchor", "answer": "applied", "again": "applied"}
    chain = {step.step.derivation.id.hex for step in without.steps}
    assert not chain & set(tiny.store.notes("derivation"))


def test_a_variant_whose_base_is_gone_is_told_so(tiny: Tiny) -> None:
    tiny.pin(base_image())
    tiny.edit("sizes", "vllm/config.py", "SIZE = 128", "SIZE = 256")
    tiny.variant("it", "sizes")
    trial = tried(tiny)
    assert not trial.passes
    assert [type(error) for error in trial.errors] == [GoneError]
    assert trial.steps == ()


def test_what_upstream_changed_under_a_step_is_named(tiny: Tiny, registry: StandIn) -> None:
    three_steps(tiny, registry)
    tiny.bake("it")
    newer = image(
        {"etc/hostname": b"base\n"},
        BASE | {f"{PACKAGES}/vllm/config.py": CONFIG + b"MORE = 1\n"},
    )
    serve(registry, newer)
    tiny.pin(newer)
    lock = (tiny.root / "lockfiles/vllm.yaml").read_bytes()
    tiny.pin(base_image())
    project, world = tiny.world()
    after = Project(tiny.root, replaced={"lockfiles/vllm.yaml": lock})
    trial = try_variant(after, "it", world=world, platform=AMD64, before=project)
    assert trial.passes
    sizes, answer, again = trial.steps
    path = f"{PACKAGES}/vllm/config.py"
    assert sizes.changed_below == sizes.changed == (path,)
    assert answer.changed_below == answer.changed == ()
    assert again.changed_below == (path,)
    assert project.images["base"].platforms != after.images["base"].platforms


def test_a_step_left_out_passes_as_already_upstream(tiny: Tiny, registry: StandIn) -> None:
    landed = image({"etc/hostname": b"b\n"}, BASE | {f"{PACKAGES}/vllm/config.py": b"SIZE = 256\n"})
    serve(registry, landed)
    tiny.pin(landed)
    tiny.edit("sizes", "vllm/config.py", "SIZE = 128", "SIZE = 256")
    tiny.variant("it", "sizes")
    assert verdicts(tried(tiny)) == {"sizes": "already-upstream"}
    assert not tried(tiny).passes
    tiny.variant("it", {"overlay": "sizes", "until": "upstream"})
    assert verdicts(tried(tiny)) == {"sizes": "already-upstream"}
    assert tried(tiny).passes


def test_the_accepted_image_is_told(tiny: Tiny, registry: StandIn) -> None:
    three_steps(tiny, registry)
    built = tiny.bake("it")
    assert tried(tiny).accepted is None
    assert tiny.run("accept", "it").status == 0
    assert tried(tiny).accepted == built.image.digest
