"""Waivers: what they hold for, until when, and how a new one takes its place among them."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import ObjectId
from builder.lock import codec
from builder.lock.model import VllmBuild, Waiver
from builder.waivers import (
    ended,
    identity,
    name_of,
    near_misses,
    recorded,
    shown_build,
    waiver_for,
)

GENESIS = ObjectId("7" * 40)
OTHER = ObjectId("8" * 40)
COMMIT = ObjectId("01d4d1ad375dc5854779c593eee093bcebb0cada")
NIGHTLY = VllmBuild(version="0.20.2rc1.dev9+g01d4d1ad3", commit=COMMIT)
RELEASE = VllmBuild(version="0.20.2")


def waiver(
    name: str = "w",
    *,
    genesis: ObjectId = GENESIS,
    vllm: str = "0.20.2",
    until: str = "2026-12-31",
    reason: str = "tried",
) -> Waiver:
    return Waiver(
        name=name,
        rule="genesis-allowlist",
        genesis=genesis,
        vllm=vllm,
        reason=reason,
        author="Ada",
        until=until,
    )


def by_name(*waivers: Waiver) -> dict[str, Waiver]:
    return {item.name: item for item in waivers}


@pytest.mark.parametrize(
    ("until", "today", "over"),
    [
        pytest.param("2026-12-31", date(2026, 12, 30), False, id="the day before"),
        pytest.param("2026-12-31", date(2026, 12, 31), False, id="the very day"),
        pytest.param("2026-12-31", date(2027, 1, 1), True, id="the day after"),
        pytest.param("2028-02-29", date(2028, 2, 29), False, id="29 February"),
        pytest.param("2028-02-29", date(2028, 3, 1), True, id="the day after 29 February"),
        pytest.param("9999-12-31", date(9999, 12, 31), False, id="the last of all days"),
        pytest.param("2027-02-29", date(2026, 1, 1), True, id="a day that never comes"),
    ],
)
def test_a_waiver_holds_to_the_end_of_its_last_day(until: str, today: date, over: bool) -> None:
    assert ended(waiver(until=until), today) is over


def test_a_build_is_its_commit_and_its_version_only_where_no_commit_is_known() -> None:
    assert identity(NIGHTLY) == str(COMMIT)
    assert identity(RELEASE) == "0.20.2"


def test_a_waiver_for_a_version_is_none_for_a_build_whose_commit_is_known() -> None:
    for_version = waiver(vllm=NIGHTLY.version)
    assert waiver_for([for_version], GENESIS, NIGHTLY) is None
    assert waiver_for([for_version], GENESIS, VllmBuild(version=NIGHTLY.version)) == for_version
    assert near_misses([for_version], GENESIS, NIGHTLY) == (for_version,)


@pytest.mark.parametrize(
    ("item", "near"),
    [
        pytest.param(waiver(genesis=OTHER), True, id="another commit of the patch set"),
        pytest.param(waiver(vllm="0.20.1"), True, id="another build"),
        pytest.param(waiver(vllm="0.20.2.post1"), True, id="a build that begins the same"),
        pytest.param(waiver(genesis=OTHER, vllm="0.20.1"), False, id="something else"),
    ],
)
def test_a_waiver_for_another_thing_does_not_count(item: Waiver, near: bool) -> None:
    assert waiver_for([item], GENESIS, RELEASE) is None
    assert near_misses([item], GENESIS, RELEASE) == ((item,) if near else ())


def test_a_waiver_is_no_near_miss_of_its_own_thing() -> None:
    assert near_misses([waiver()], GENESIS, RELEASE) == ()


def test_of_two_waivers_the_one_that_ends_last_counts() -> None:
    first, last = waiver("a", until="2026-12-31"), waiver("b", until="2027-01-01")
    assert waiver_for([first, last], GENESIS, RELEASE) == last
    assert waiver_for([last, first], GENESIS, RELEASE) == last


def test_a_new_waiver_stands_beside_the_others() -> None:
    other = waiver("other", vllm="0.20.1")
    assert recorded(by_name(other), waiver("new")) == by_name(other, waiver("new"))


def test_a_renewed_waiver_keeps_its_name_and_its_neighbours() -> None:
    other = waiver("other", genesis=OTHER)
    new = waiver("new", until="2027-06-30", reason="tried again")
    assert recorded(by_name(waiver("by-hand"), other), new) == by_name(
        waiver("by-hand", until="2027-06-30", reason="tried again"), other
    )


def test_two_waivers_for_one_thing_become_one() -> None:
    """The longer one would otherwise outlive what was meant to shorten it."""
    both = by_name(waiver("a", until="2027-06-30"), waiver("b", until="2026-12-31"))
    assert recorded(both, waiver("new", until="2026-07-01")) == by_name(
        waiver("a", until="2026-07-01")
    )


def test_a_name_that_another_thing_has_gets_a_number() -> None:
    taken = by_name(waiver("new", vllm="0.20.1"), waiver("new-2", vllm="0.20.0"))
    assert recorded(taken, waiver("new")) == {**taken, "new-3": waiver("new-3")}


versions = st.from_regex(
    r"[0-9]{1,3}(\.[0-9]{1,3}){1,3}([A-Za-z0-9.+_-]{0,80}[a-z0-9])?", fullmatch=True
)


@settings(max_examples=100)
@given(versions | st.just(str(COMMIT)), st.dates(date(2020, 1, 1)))
def test_every_build_has_a_name_that_its_lockfile_takes(vllm: str, until: date) -> None:
    item = waiver(name_of(GENESIS, vllm), vllm=vllm, until=str(until))
    assert codec.read_waivers(codec.write_pins(Waiver, by_name(item))) == by_name(item)
    assert not ended(item, until)
    assert ended(item, until + timedelta(days=1)) or until == date.max


def test_a_commit_is_shown_short_and_a_version_whole() -> None:
    assert shown_build(str(COMMIT)) == "01d4d1ad375d"
    assert shown_build(NIGHTLY.version) == NIGHTLY.version
    assert name_of(GENESIS, str(COMMIT)) == "genesis-777777777777-vllm-01d4d1ad375d"
