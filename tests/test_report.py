"""The report of a bump: what upstream wrote cannot steer it, whoever reads it."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import quoting, report
from builder.bump import Bump, Landed
from builder.derivation import Derivation
from builder.digest import Digest, ObjectId
from builder.errors import GoneError, PatchError, PolicyError
from builder.lock.model import GenesisPin, ImagePin, WheelPin
from builder.moves import Move
from builder.oci import Platform
from builder.outcome import FileOutcome, LayerOutput, Output, PatchOutcome, PatchState
from builder.plan import PlannedStep
from builder.reference import Reference
from builder.resolve.found import Resolved
from builder.steps.wheels import WheelsRequest
from builder.trial import StepTrial, VariantTrial
from builder.upstream import Commit, Distance
from builder.verdict import Verdict

OLD, NEW = ObjectId("a" * 40), ObjectId("b" * 40)
HASHES = [Digest.of(bytes([number])) for number in range(6)]


def genesis(commit: ObjectId) -> GenesisPin:
    return GenesisPin(name="patches", repository="https://x.test/p", commit=commit, tree=commit)


def move(*subjects: str, lost: int = 0, remarks: tuple[str, ...] = ()) -> Move:
    ahead = tuple(Commit(id=f"{n:040x}", time=n * 86400, subject=s) for n, s in enumerate(subjects))
    behind = tuple(Commit(id=f"{n:040x}", time=0, subject="gone") for n in range(lost))
    resolved = Resolved(
        pin=genesis(NEW), remarks=remarks, distance=Distance(ahead=ahead, behind=behind)
    )
    return Move(kind="genesis", before=genesis(OLD), resolved=resolved)


def planned(name: str) -> PlannedStep:
    request = WheelsRequest(wheels=(), platform=Platform("linux", "amd64"), python=None, at="x")
    return PlannedStep(
        name=name,
        request=request,
        derivation=Derivation(kind="wheels", inputs=name.encode(), parent=None),
    )


def output(*files: FileOutcome, patches: tuple[PatchOutcome, ...] = ()) -> Output:
    layer = LayerOutput(
        digest=HASHES[0], size=1, diff_id=HASHES[1], index=HASHES[2], table=HASHES[3]
    )
    return Output(layer=layer, files=files, patches=patches)


def file(path: str, pre: int, post: int, *offsets: int) -> FileOutcome:
    verdict = Verdict.APPLIED_WITH_OFFSET if offsets else Verdict.APPLIED
    return FileOutcome(
        path=path, verdict=verdict, pre=HASHES[pre], post=HASHES[post], offsets=offsets
    )


PASSING = VariantTrial(
    variant="good",
    steps=(
        StepTrial(
            step=planned("diff"),
            output=output(file("a.py", 1, 2, 12, 0), file("b.py", 3, 4)),
            before=output(file("a.py", 0, 2), file("b.py", 3, 5)),
        ),
    ),
    image=HASHES[5],
    size=2_000_000,
)
FAILING = VariantTrial(
    variant="bad",
    refusals=(PolicyError("it does not list vLLM 0.20.2"),),
    warnings=("retired: P1",),
    steps=(
        StepTrial(
            step=planned("first"),
            output=None,
            error=PatchError(
                "first: the anchor is not there",
                verdict=Verdict.DRIFT_ANCHOR,
                path="a.py",
                hint="look",
                findings=("already-upstream: b.py", "refused: c.py"),
            ),
        ),
        StepTrial(
            step=planned("second"),
            output=output(
                file("a.py", 1, 2), patches=(PatchOutcome(name="P67", state=PatchState.FAILED),)
            ),
            before=output(
                file("a.py", 1, 2), patches=(PatchOutcome(name="P67", state=PatchState.APPLIED),)
            ),
            below="first",
        ),
        StepTrial(step=planned("third"), output=None, error=GoneError("third: gone")),
    ),
)


def test_the_text_says_what_moved_and_what_became_of_each_step() -> None:
    bump = Bump(moves=(move("one", "two", remarks=("r",)),), trials=(PASSING, FAILING))
    assert report.text(bump).splitlines() == [
        "bump genesis patches: aaaaaaaaaaaa -> bbbbbbbbbbbb",
        "  2 commits more, 0 lost",
        "    1970-01-01 000000000000 one",
        "    1970-01-02 000000000000 two",
        "  r",
        "",
        f"good: passes, {HASHES[5]}, 2.0 MB in a registry",
        "  diff  applied-with-offset",
        "    a.py: offset +12",
        "    upstream changed: a.py",
        "    comes out differently: b.py",
        "",
        "bad: fails, 2 of 3 steps",
        "  refused: it does not list vLLM 0.20.2",
        "  first   drift-anchor",
        "    first: the anchor is not there",
        "    already-upstream: b.py",
        "    refused: c.py",
        "    hint: look",
        "  second  applied",
        "    tried without first, which failed",
        "    P67: applied -> failed",
        "  third   gone",
        "    third: gone",
        f"    hint: {GoneError.usual_hint}",
        "  warning: retired: P1",
    ]


def test_the_document_has_every_step_with_its_files() -> None:
    landed = Landed(variant="good", step="diff", pull=7, commit=str(NEW))
    bump = Bump(moves=(move("one", lost=1),), trials=(PASSING, FAILING), landed=(landed,))
    value = json.loads(json.dumps(report.document(bump, written=("lockfiles/genesis.yaml",))))
    assert value["moves"][0]["from"] == OLD.short
    assert [item["subject"] for item in value["moves"][0]["commits"]] == ["one"]
    assert len(value["moves"][0]["lost_commits"]) == 1
    good, bad = value["variants"]
    assert (good["passes"], good["image"], good["size"]) == (True, str(HASHES[5]), 2_000_000)
    assert good["steps"][0]["files"][0]["offsets"] == [12, 0]
    assert good["steps"][0]["changed_below"] == ["a.py"]
    assert [step["verdict"] for step in bad["steps"]] == ["drift-anchor", "applied", "gone"]
    assert bad["steps"][0]["error"]["findings"] == ["already-upstream: b.py", "refused: c.py"]
    assert bad["steps"][2]["error"]["exit_status"] == 7
    assert bad["refusals"][0]["exit_status"] == 5
    assert value["landed"] == [{"variant": "good", "step": "diff", "pull": 7, "commit": str(NEW)}]
    assert value["written"] == ["lockfiles/genesis.yaml"]


def test_the_errors_of_a_bump_are_those_of_its_trials_from_the_bottom() -> None:
    assert Bump(moves=(), trials=(PASSING, FAILING)).errors == FAILING.errors
    assert Bump(moves=(), trials=(PASSING, FAILING)).failing == ("bad",)
    assert Bump(moves=(), trials=(PASSING,)).errors == ()


@pytest.mark.parametrize(
    ("pins", "said"),
    [
        (
            (
                WheelPin(name="w", project="p", version="1", filename="f", digest=HASHES[0]),
                WheelPin(name="w", project="p", version="2", filename="f", digest=HASHES[1]),
            ),
            "bump wheel w: 1 -> 2",
        ),
        (
            (
                None,
                ImagePin(name="base", follows=Reference.parse("x.test/vllm:n1"), index=HASHES[0]),
            ),
            f"add wheel base: n1@{HASHES[0].short}",
        ),
    ],
)
def test_the_title_names_pins_by_what_they_are(pins: tuple[Any, Any], said: str) -> None:
    old, new = pins
    moved = Move(kind="wheel", before=old, resolved=Resolved(pin=new))
    assert report.title(Bump(moves=(moved,))) == said


HOSTILE = [
    "fix `x` | closes #1",
    "``` \n# heading",
    "<img src=x onerror=1>",
    "@everyone",
    "\x1b[31mred\x07",
    "</details><!--",
    "a" * 500,
    "`",
    "",
]


def test_subjects_of_commits_stand_in_a_block_that_they_cannot_end() -> None:
    body = report.markdown(Bump(moves=(move(*HOSTILE),)))
    before, fence, rest = re.split(r"^(`{3,})$", body, maxsplit=1, flags=re.MULTILINE)
    inside, _, after = re.split(rf"^({fence})$", rest, maxsplit=1, flags=re.MULTILINE)
    assert "@everyone" in inside
    assert "@everyone" not in before + after
    assert "<img" in inside
    assert "<img" not in before + after
    assert "\x1b" not in body
    assert inside.count("\n+ ") == len(HOSTILE)


@given(st.text(max_size=60))
def test_a_text_in_code_is_one_cell_and_one_span(line: str) -> None:
    cell = quoting.code(line)
    assert "\n" not in cell
    ticks = re.match("`+", cell)
    assert ticks is not None
    assert cell.endswith(ticks[0])
    inside = cell[len(ticks[0]) : -len(ticks[0])]
    assert not re.search(rf"(?<!`){ticks[0]}(?!`)", inside)
    assert not re.search(r"(?<!\\)\|", inside)


def test_a_table_row_stays_one_row_whatever_a_message_says() -> None:
    nasty = VariantTrial(
        variant="v",
        refusals=(PolicyError("a | b\n| c | d |"),),
        warnings=("| x | `y` <b>",),
    )
    rows = report.markdown(Bump(moves=(), trials=(nasty,))).splitlines()
    table = [line for line in rows if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in table)


def test_commits_that_are_not_shown_are_counted_on_both_sides() -> None:
    lines = report.text(Bump(moves=(move(*("new",) * 51, lost=52),))).splitlines()
    assert [line for line in lines if "more" in line] == [
        "  51 commits more, 52 lost",
        "    and 1 more",
        "    lost: and 2 more",
    ]
    assert lines.count(f"    lost: 1970-01-01 {0:012x} gone") == 50, "the ids differ further on"


def test_commits_that_are_not_all_are_said_to_be_more() -> None:
    some = move("one", "two")
    assert some.resolved.distance is not None
    distance = replace(some.resolved.distance, complete=False)
    bump = Bump(moves=(replace(some, resolved=replace(some.resolved, distance=distance)),))
    assert "  at least 2 commits more, 0 lost" in report.text(bump).splitlines()
    assert "<summary>at least 2 commits more, 0 lost</summary>" in report.markdown(bump)
    assert report.document(bump)["moves"][0]["all_commits"] is False
    assert report.document(Bump(moves=(some,)))["moves"][0]["all_commits"] is True


def test_pins_that_only_say_more_are_no_bump() -> None:
    old = genesis(OLD)
    more = Move(
        kind="genesis", before=old, resolved=Resolved(pin=replace(old, reachable=("HEAD",)))
    )
    wheel = WheelPin(name="w", project="w", version="1", filename="w.whl", digest=HASHES[0])
    sized = Move(kind="wheel", before=wheel, resolved=Resolved(pin=replace(wheel, size=3)))
    assert report.title(Bump(moves=(more, sized))) == "lock genesis patches, wheel w"
    same = Move(kind="genesis", before=old, resolved=Resolved(pin=old))
    assert report.title(Bump(moves=(same,))) == "nothing changes"
    assert report.title(Bump(moves=())) == "nothing to lock"
    assert report.text(Bump(moves=(same,))) == "nothing changes\n  patches is what it was"


def test_nothing_that_upstream_names_steers_a_terminal() -> None:
    evil = "\x1b[31m\n\u202e"
    state = PatchOutcome(name=f"P1{evil}", state=PatchState.FAILED)
    trial = VariantTrial(
        variant="v",
        steps=(
            StepTrial(
                step=planned("diff"),
                output=output(file(f"a{evil}.py", 1, 2, 12), patches=(state,)),
                before=output(file(f"a{evil}.py", 0, 3)),
            ),
        ),
        warnings=(evil,),
    )
    wheels = [
        WheelPin(name="w", project="p", version=f"1{evil}", filename="f", digest=HASHES[number])
        for number in (0, 1)
    ]
    moved = Move(kind="wheel", before=wheels[0], resolved=Resolved(pin=wheels[1], remarks=(evil,)))
    text = report.text(Bump(moves=(moved,), trials=(trial,), remarks=(evil,)))
    assert all(line.isprintable() for line in text.split("\n"))


def test_another_file_under_one_version_is_a_bump() -> None:
    wheel = WheelPin(name="w", project="p", version="1", filename="f", digest=HASHES[0])
    moved = Move(
        kind="wheel", before=wheel, resolved=Resolved(pin=replace(wheel, digest=HASHES[1]))
    )
    said = f"bump wheel w: 1 ({HASHES[0].short}) -> 1 ({HASHES[1].short})"
    assert report.title(Bump(moves=(moved,))) == said
