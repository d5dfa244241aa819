"""What a patch set did, accepted by a person and held to from then on."""

from dataclasses import replace

import pytest

from builder.build_record import Build
from builder.errors import IntegrityError
from builder.lock import codec
from builder.lock.model import Result, ResultPatch
from builder.outcome import PatchOutcome, PatchState
from builder.results import compare, differences, hold_to, result_of
from tests.flow.conftest import Log
from tests.flow.images import serve
from tests.flow.worlds import Tiny, at_packages, base_image
from tests.standin.registry import StandIn

APPLIED = PatchOutcome(name="P67", state=PatchState.APPLIED, reason="3 files", files=("a",))
AT_RUN_TIME = PatchOutcome(name="P7", state=PatchState.RUNTIME_ONLY, reason="patched in memory")
SKIPPED = PatchOutcome(name="P8", state=PatchState.SKIPPED, reason="opt-in:\n  set  IT=1")


@pytest.fixture
def plain(tiny: Tiny, registry: StandIn) -> Build:
    """A build of one step that is no patch set."""
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.edit("one", "vllm/config.py", "128", "256")
    tiny.variant("it", "one")
    return tiny.bake()


def patched(build: Build, *patches: PatchOutcome) -> Build:
    """The same build, its step having told of these patches."""
    (step,) = build.steps
    output = replace(step.output, patches=patches)
    return replace(build, steps=(replace(step, output=output),))


def accepted(build: Build) -> Result:
    """The result as a lockfile gives it back."""
    file = f"lockfiles/images/{build.variant.name}.yaml"
    written = codec.write_results(build.variant.name, (result_of(build),))
    ((result,),) = (codec.read_results(written, file=file)[1],)
    return result


def refusal(build: Build, result: Result) -> str:
    with pytest.raises(IntegrityError) as caught:
        hold_to(build, (result,))
    assert caught.value.exit_status == 4
    assert caught.value.hint == (
        f"if it is meant: builder accept it; to see why: builder explain {result.digest}"
        f" {build.image.digest}"
    )
    return caught.value.message


def test_every_state_has_its_word_in_the_lockfile(plain: Build) -> None:
    build = patched(
        plain, *(PatchOutcome(name=state.name, state=state, reason="why") for state in PatchState)
    )
    assert {patch.name: (patch.outcome, patch.reason) for patch in accepted(build).patches} == {
        "APPLIED": ("applied", None),
        "RUNTIME_ONLY": ("runtime-only", None),
        "SKIPPED": ("skipped", "why"),
        "FAILED": ("failed", "why"),
    }


def test_patches_are_accepted_by_name_with_the_reasons_of_those_left_out(plain: Build) -> None:
    assert result_of(patched(plain, SKIPPED, AT_RUN_TIME, APPLIED)).patches == (
        ResultPatch(name="P67", outcome="applied"),
        ResultPatch(name="P7", outcome="runtime-only"),
        ResultPatch(name="P8", outcome="skipped", reason="opt-in: set IT=1"),
    )


def test_a_reason_without_end_is_cut_and_one_in_colours_is_made_plain(plain: Build) -> None:
    long = replace(SKIPPED, reason="\x1bx" * 5000)
    (patch,) = accepted(patched(plain, long)).patches
    assert patch.reason == "x" * 200


def test_what_was_accepted_passes(plain: Build) -> None:
    build = patched(plain, APPLIED, SKIPPED)
    hold_to(build, (accepted(build),))
    compare(build, (accepted(build),))


def test_one_other_outcome_is_refused_in_one_sentence(plain: Build) -> None:
    result = accepted(patched(plain, APPLIED, SKIPPED))
    lost = replace(APPLIED, state=PatchState.SKIPPED, reason="no speculative decoding", files=())
    assert refusal(patched(plain, lost, SKIPPED), result) == (
        f"lockfiles/images/it.yaml:4: results.linux/amd64: expected image {result.digest}, the"
        f" build gave {plain.image.digest}; P67: applied -> skipped (no speculative decoding)"
    )


def test_several_differences_have_a_line_each_patches_first(plain: Build) -> None:
    result = accepted(patched(plain, APPLIED, AT_RUN_TIME, SKIPPED))
    result = replace(result, files=())
    new = replace(APPLIED, name="P100")
    other = replace(SKIPPED, reason="anchor is gone")
    assert refusal(patched(plain, new, AT_RUN_TIME, other), result).splitlines()[1:] == [
        "  P100: new, applied",
        "  P67: gone",
        "  P8: skipped (opt-in: set IT=1) -> skipped (anchor is gone)",
        f"  files that differ: {at_packages('vllm/config.py')}",
    ]


def test_long_lists_are_cut(plain: Build) -> None:
    many = [replace(APPLIED, name=f"P{number:03}") for number in range(14)]
    got = result_of(patched(plain, *many))
    (file,) = got.files
    got = replace(got, files=tuple(replace(file, path=f"f{n:02}") for n in range(12)))
    lines = differences(replace(got, patches=(), files=()), got)
    assert lines[:2] == ("P000: new, applied", "P001: new, applied")
    assert lines[9:] == (
        "P009: new, applied",
        "and 4 more patches",
        f"files that differ: {', '.join(f'f{n:02}' for n in range(10))} and 2 more",
    )


def test_a_file_that_differs_is_refused_with_the_same_outcomes(plain: Build) -> None:
    build = patched(plain, APPLIED)
    result = replace(accepted(build), files=())
    assert refusal(build, result).endswith(f"; files that differ: {at_packages('vllm/config.py')}")


def test_another_image_with_the_same_patches_and_files_passes_unless_locked(plain: Build) -> None:
    """Another base, or another label: nothing that the patches have to answer for."""
    build = patched(plain, APPLIED)
    result = replace(accepted(build), digest=accepted(build).diff_ids[0])
    hold_to(build, (result,))
    with pytest.raises(IntegrityError):
        compare(build, (result,))


def test_a_build_without_patches_is_held_to_nothing(plain: Build, log: Log) -> None:
    hold_to(plain, ())
    hold_to(plain, (replace(accepted(plain), files=()),))
    assert log.lines == []


def test_patches_that_nobody_accepted_are_told_of(plain: Build, log: Log) -> None:
    build = patched(plain, APPLIED, SKIPPED)
    other = replace(accepted(build), platform=replace(build.plan.platform, architecture="arm64"))
    hold_to(build, (other,))
    (said,) = log.lines
    assert said == (
        "it: nobody has accepted what its patches do on linux/amd64; look at them: builder"
        " patches it; then: builder accept it"
    )


def test_patches_that_are_gone_altogether_are_refused(plain: Build) -> None:
    result = accepted(patched(plain, APPLIED))
    with pytest.raises(IntegrityError) as caught:
        compare(plain, (result,))
    assert caught.value.message.endswith("; P67: gone")


def test_a_variant_that_lost_its_patch_set_is_held_to_it_too(plain: Build) -> None:
    result = accepted(patched(plain, SKIPPED))

    assert refusal(plain, result).endswith(f"; {SKIPPED.name}: gone")
