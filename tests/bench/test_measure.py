"""Judging what was measured."""

import pytest

from tests.bench.measure import Row, alternate, table
from tests.claims import Claims


def test_runs_alternate_and_the_median_counts() -> None:
    turns = []

    def run(name: str, number: int) -> float:
        turns.append((name, number))
        return {0: 9.0, 1: 1.0, 2: 2.0}[number]

    medians = alternate({"a": lambda n: run("a", n), "b": lambda n: run("b", n)}, 3)
    assert medians == {"a": 2.0, "b": 2.0}
    assert turns == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]


@pytest.mark.parametrize(
    "row, status",
    [
        pytest.param(Row(what="x", ours=0.1, peers={}, limit=0.11), 0, id="under the limit"),
        pytest.param(Row(what="x", ours=0.1, peers={}, limit=0.1), 1, id="at the limit"),
        pytest.param(Row(what="x", ours=0.2, peers={}, limit=0.3, aim=0.1), 0, id="over the aim"),
        pytest.param(Row(what="x", ours=0.2, peers={"p": 0.1}), 0, id="slower than a mere peer"),
        pytest.param(
            Row(what="x", ours=0.2, peers={"p": 0.1}, times_peer=2),
            1,
            id="at its multiple of a peer",
        ),
        pytest.param(
            Row(what="x", ours=0.19, peers={"p": 0.1}, times_peer=2), 0, id="below its multiple"
        ),
        pytest.param(
            Row(what="x", ours=9, peers={"p": 9, "q": 1}, times_peer=2, judged=frozenset("p")),
            0,
            id="above that of a peer which is only shown",
        ),
        pytest.param(
            Row(what="x", ours=9, peers={"p": 1, "q": 9}, times_peer=2, judged=frozenset("p")),
            1,
            id="above that of a peer which counts",
        ),
    ],
)
def test_limits_are_judged_and_aims_are_not(row: Row, status: int) -> None:
    claims = Claims("title")
    row.judge(claims)
    assert claims.finish() == status


def test_the_table_has_a_line_for_each_peer() -> None:
    row = Row(what="x", ours=0.2, peers={"p": 0.1, "q": 20.0}, limit=0.4, aim_times_peer=1.2)
    assert table([row]).splitlines() == [
        "WHAT  OURS     LIMIT  AIM    PEER  TAKES    OURS/PEER",
        "x     0.200 s  0.4 s  1.2 x  p     0.100 s  2.00",
        "                             q     20.0 s   0.01",
    ]


def test_times_can_be_told_without_being_judged(capsys: pytest.CaptureFixture[str]) -> None:
    claims = Claims("title")
    Row(what="it", ours=2.0, peers={}, limit=1.0).judge(claims, times_count=False)
    assert claims.finish() == 0
    assert "  (no)  it: under 1.000 s: 2.000 s\n" in capsys.readouterr().out
