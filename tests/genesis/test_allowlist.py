"""Allowlists, and the rule of what an entry names."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import ProjectError
from builder.genesis import Allowlist, Judgement, Listing, Presence, judge, read_facts
from tests.genesis.payloads import FIRST, LISTED, V7, V8, guards

OTHER = "a" * 40


def _list(*good: str, pending: tuple[str, ...] = ()) -> Allowlist:
    return Allowlist(presence=Presence.PRESENT, file="guards.py", good=good, pending=pending)


def test_a_list_is_read_from_a_module_that_cannot_be_imported() -> None:
    facts = read_facts(V7, {"guards.py": guards((LISTED, "0.21.0"), pending=("0.21.0",))})
    assert facts.allowlist == _list(LISTED, "0.21.0", pending=("0.21.0",))


@pytest.mark.parametrize(
    "payload, files, presence",
    [
        pytest.param(V7, {"guards.py": guards(None)}, Presence.NONE, id="older than the lists"),
        pytest.param(V7, {"dispatcher.py": b""}, Presence.MISSING, id="no guards"),
        pytest.param(V8, {"guards.py": guards((LISTED,))}, Presence.MISSING, id="guards elsewhere"),
        pytest.param(V8, {"detection/guards.py": b"from other import *"}, Presence.MISSING,
                     id="a list that is imported from elsewhere"),
    ],
)  # fmt: skip
def test_no_list_and_no_module_are_outcomes_of_their_own(
    payload: str, files: dict[str, bytes], presence: Presence
) -> None:
    allowlist = read_facts(payload, files).allowlist
    assert allowlist.presence is presence
    assert judge(allowlist, version="0.21.0", commit=None) == Judgement(
        listing=Listing(str(presence)), vllm="0.21.0"
    )


@pytest.mark.parametrize(
    "entries, message",
    [
        (b"'0.21.0'", ("vllm/_genesis/guards.py: KNOWN_GOOD_VLLM_PINS: "
         "expected a list of versions, got '0.21.0'")),
        (b"('0.21.0', 3)", ("vllm/_genesis/guards.py: KNOWN_GOOD_VLLM_PINS: "
         "expected a version, got 3")),
    ],
)  # fmt: skip
def test_a_list_of_something_else_is_refused(entries: bytes, message: str) -> None:
    with pytest.raises(ProjectError, match=f"^{re.escape(message)}$"):
        read_facts(V7, {"guards.py": b"KNOWN_GOOD_VLLM_PINS = " + entries})


NIGHTLY = "0.20.2rc1.dev9"


@pytest.mark.parametrize(
    "entry, version, commit",
    [
        pytest.param(LISTED, LISTED, FIRST, id="the version itself"),
        pytest.param(f"{NIGHTLY}+g{FIRST}", LISTED, FIRST, id="all digits of the commit"),
        pytest.param(f"{NIGHTLY}+g{FIRST[:12]}", LISTED, FIRST, id="more digits than the version"),
        pytest.param(LISTED, NIGHTLY, FIRST, id="a version without its local part"),
        pytest.param(LISTED, f"{NIGHTLY}+g{FIRST[:12]}.cu129", FIRST, id="a build for a CUDA"),
        pytest.param(f"nightly-{FIRST}", LISTED, FIRST, id="a tag with the commit"),
        pytest.param(f"nightly-{FIRST[:9]}", "7.0", FIRST, id="a tag with nine digits"),
        pytest.param(LISTED, LISTED, None, id="only the digits of the version are known"),
        pytest.param(LISTED, f"{NIGHTLY}+g{FIRST[:12]}", None, id="and more of them than listed"),
        pytest.param("0.21.0", "0.21.0", None, id="a release"),
        pytest.param("0.21.0", "0.21.0", FIRST, id="a release with its commit"),
    ],
)
def test_an_entry_names_the_build_whose_commit_it_begins(
    entry: str, version: str, commit: str | None
) -> None:
    judgement = judge(_list("0.1", entry), version=version, commit=commit)
    assert judgement.listing is Listing.LISTED
    assert judgement.entries == (entry,)
    assert judgement.nearest == ()


@pytest.mark.parametrize(
    "entry, version, commit",
    [
        pytest.param(LISTED, LISTED, OTHER, id="the same version of another commit"),
        pytest.param(LISTED, f"0.20.2+g{FIRST[:9]}", FIRST, id="the commit, another version"),
        pytest.param(f"{NIGHTLY}+g{FIRST[:8]}", LISTED, FIRST, id="eight digits"),
        pytest.param(f"nightly-{FIRST[:8]}", LISTED, FIRST, id="a tag with eight digits"),
        pytest.param(f"{NIGHTLY}+g{FIRST}0", LISTED, FIRST, id="more digits than a commit has"),
        pytest.param(f"nightly-{FIRST[:12]}", LISTED, None, id="more digits than are known"),
        pytest.param(LISTED, f"{LISTED}.d20260505", None, id="a build of changed sources"),
        pytest.param(NIGHTLY, LISTED, FIRST, id="a version without digits"),
        pytest.param("0.20.2", LISTED, FIRST, id="the release that a nightly leads to"),
        pytest.param("0.21.0", "0.21.0+cpu", None, id="another build of a release"),
        pytest.param("0.21.0", "0.21.0.post1", None, id="a release after it"),
        pytest.param(LISTED, "0.20.2", None, id="a release without a commit"),
        pytest.param("nightly-", LISTED, None, id="a tag without digits"),
    ],
)  # fmt: skip
def test_nothing_shorter_and_nothing_compatible_is_the_same_build(
    entry: str, version: str, commit: str | None
) -> None:
    judgement = judge(_list(entry), version=version, commit=commit)
    assert judgement.listing is Listing.NOT_LISTED
    assert judgement.nearest == (entry,)


def test_a_build_can_be_pending_or_in_both_lists() -> None:
    tag = f"nightly-{FIRST}"
    pending = judge(_list("0.1", pending=(LISTED,)), version=LISTED, commit=FIRST)
    assert (pending.listing, pending.entries) == (Listing.PENDING, (LISTED,))
    both = judge(_list(LISTED, tag, pending=(tag,)), version=LISTED, commit=FIRST)
    assert (both.listing, both.entries) == (Listing.BOTH, (LISTED, tag))
    assert both.vllm == f"{LISTED} ({FIRST})"


def test_the_nearest_entries_are_the_same_commit_then_the_closest_versions() -> None:
    entries = (
        "nightly-" + OTHER,
        "0.23.0",
        "0.20.2rc1.dev40+gbbbbbbbbb",
        "0.20.1rc1.dev9+gccccccccc",
        "0.20.2rc1.dev8+gddddddddd",
        f"0.19.0rc1.dev1+g{FIRST[:9]}",
    )
    assert judge(_list(*entries), version=LISTED, commit=FIRST).nearest == (
        f"0.19.0rc1.dev1+g{FIRST[:9]}",
        "0.20.2rc1.dev8+gddddddddd",
        "0.20.2rc1.dev40+gbbbbbbbbb",
    )


def test_a_version_that_is_none_has_nearest_entries_too() -> None:
    assert judge(_list("0.23.0"), version="dev", commit=None).nearest == ("0.23.0",)


HEX = st.text("0123456789abcdef", min_size=40, max_size=40)


@given(commit=HEX, other=HEX, digits=st.integers(9, 40), tag=st.booleans())
def test_an_entry_names_exactly_the_commits_that_it_begins(
    commit: str, other: str, digits: int, tag: bool
) -> None:
    entry = f"nightly-{other[:digits]}" if tag else f"0.20.0+g{other[:digits]}"
    for candidate in (commit, other):
        found = judge(_list(entry), version="0.20.0", commit=candidate).listing
        assert (found is Listing.LISTED) == candidate.startswith(other[:digits])


@given(entries=st.lists(st.text(max_size=40)), version=st.text(max_size=40), commit=st.none() | HEX)
def test_any_entries_are_judged(entries: list[str], version: str, commit: str | None) -> None:
    judgement = judge(_list(*entries), version=version, commit=commit)
    assert bool(judgement.entries) == (judgement.listing is Listing.LISTED)
    assert set(judgement.entries + judgement.nearest) <= set(entries)


def test_an_entry_that_is_no_number_to_python_is_the_farthest() -> None:
    huge = 5000 * "1"
    assert judge(_list(huge, f"0.{huge}", "0.21.0"), version="0.20.0", commit=None).nearest == (
        "0.21.0",
        huge,
        f"0.{huge}",
    )
    assert judge(_list("0.21.0"), version=huge, commit=None).listing is Listing.NOT_LISTED
