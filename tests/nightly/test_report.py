"""The report of a night: every outcome is told, and nothing that upstream wrote steers it."""

import json

import pytest

from builder.bump import Bump
from builder.digest import Digest
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    NetworkError,
    PatchError,
)
from builder.moves import Move
from builder.nightly import Baked, Outcome
from builder.nightly_report import LIMIT, Morning, document, markdown, text
from builder.propose import Proposed
from builder.resolve.found import Resolved
from builder.trial import VariantTrial
from tests.nightly.worlds import NEW
from tests.test_report import genesis

HOSTILE = "@all | `x` </details> \x1b[31m # fixes #1"
IMAGE, OTHER = Digest.of(b"image"), Digest.of(b"other")


def bump(*remarks: str, trials: tuple[VariantTrial, ...] = (), changes: bool = True) -> Bump:
    old = genesis(NEW)
    new = old if not changes else genesis(type(NEW)("c" * 40))
    resolved = Resolved(pin=new, remarks=remarks)
    return Bump(moves=(Move(kind="genesis", before=old, resolved=resolved),), trials=trials)


PASSES = Morning(
    outcome=Outcome(
        kind="genesis",
        name="patches",
        bump=bump(),
        baked=(Baked(variant="it", image=IMAGE, accepted=OTHER),),
        remarks=("it: what is accepted for linux/arm64 was not tried, and stays",),
    ),
    proposed=Proposed(branch="b", pushed="c" * 40, url="https://forge.test/1", state="opened"),
)
FAILS = Morning(
    outcome=Outcome(
        kind="genesis",
        name="dead",
        bump=bump(
            trials=(
                VariantTrial(variant="it", refusals=(PatchError("it is dead", verdict="gone"),)),
            )
        ),
    )
)
CURRENT = Morning(
    outcome=Outcome(kind="pull", name="pr1", bump=bump("it was merged", changes=False))
)
GONE = Morning(
    outcome=Outcome(kind="source", name="files", error=GoneError(f"gone: {HOSTILE}\nmore"))
)
LEFT = Morning(outcome=Outcome(kind="wheel", name="w", remarks=("a wheel stays",)))
REFUSED = Morning(
    outcome=Outcome(kind="genesis", name="refused", bump=bump()),
    error=AuthError("the host says no", hint="another token"),
)
ALL = [PASSES, FAILS, CURRENT, GONE, LEFT, REFUSED]


def test_people_read_what_became_of_each() -> None:
    assert text(PASSES).splitlines() == [
        "genesis patches: passes",
        f"  bump genesis patches: {NEW.short} -> {'c' * 12}",
        f"  built it: another image, {IMAGE}",
        "  it: what is accepted for linux/arm64 was not tried, and stays",
        "  https://forge.test/1 opened, cccccccccccc pushed",
    ]
    assert text(CURRENT).splitlines() == ["pull pr1: current", "  it was merged"]
    assert text(LEFT) == "wheel w: left alone: a wheel stays"
    assert text(GONE).splitlines()[0].startswith("source files: unknown: gone: ")
    assert "\x1b" not in text(GONE)
    assert text(REFUSED).splitlines()[-2:] == [
        "  not proposed: the host says no",
        "  hint: another token",
    ]
    assert "    refused: it is dead" in text(FAILS).splitlines()


def test_the_summary_counts_and_lists_all() -> None:
    lines = markdown(ALL).splitlines()
    assert lines[2] == "**1 left alone, 1 current, 2 passes, 1 fails, 1 unknown**"
    rows = [line for line in lines if line.startswith("| `") and "**" in line][:5]
    assert [row.split("|")[2].strip() for row in rows] == [
        "**passes**",
        "**fails**",
        "**current**",
        "**unknown**",
        "**passes**",
    ]
    assert "`it was merged`" in rows[2]
    assert rows[4].endswith("not proposed: `the host says no` |")
    assert "- `wheel w: left alone: a wheel stays`" in lines


def test_what_others_wrote_stands_in_code() -> None:
    (row,) = (line for line in markdown([GONE]).splitlines() if "unknown**" in line and "|" in line)
    assert "``gone: @all \\| `x` </details> [31m # fixes #1``" in row
    assert "\x1b" not in row


@pytest.mark.parametrize("items", [[], [LEFT], [CURRENT]], ids=["none", "left", "current"])
def test_a_quiet_night_is_told_too(items: list[Morning]) -> None:
    assert markdown(items).startswith("## builder nightly\n\n**")


def test_a_summary_fits_where_it_is_shown() -> None:
    huge = Morning(outcome=Outcome(kind="source", name="files", bump=bump(*(["x" * 999] * 2000))))
    cut = markdown([huge, LEFT])
    assert LIMIT - 3000 < len(cut) <= LIMIT


def test_the_document_is_json_with_everything() -> None:
    found = json.loads(json.dumps(document(ALL, status=4)))
    assert found["status"] == 4
    by = {pin["name"]: pin for pin in found["pins"]}
    assert by["patches"]["images"] == [
        {"variant": "it", "image": str(IMAGE), "accepted": str(OTHER)}
    ]
    assert by["patches"]["proposal"] == {
        "branch": "b",
        "pushed": "c" * 40,
        "url": "https://forge.test/1",
        "state": "opened",
    }
    assert by["files"]["error"]["exit_status"] == 7
    assert by["refused"]["error"]["message"] == "the host says no"
    assert by["dead"]["report"]["variants"][0]["passes"] is False
    assert by["w"]["state"] == "left alone"


def test_what_could_not_be_tried_has_not_failed() -> None:
    lost = NetworkError("no route")
    dead = PatchError("it is dead", verdict="gone")

    def state(*refusals: BuilderError, error: BuilderError | None = None) -> str:
        trials = (VariantTrial(variant="it", refusals=refusals),) if refusals else ()
        made = Outcome(kind="genesis", name="x", bump=bump(trials=trials), error=error)
        return str(made.state)

    assert state(lost) == "unknown"
    assert state(error=EnvironmentFault("no space")) == "unknown"
    assert state(lost, dead) == "fails"
    assert state(error=dead) == "fails"
    assert state() == "passes"
