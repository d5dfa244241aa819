"""From the version that was accepted to the one that is there."""

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import ExpiredError, ProjectError, UntrustedError
from builder.trust.chain import Versions, accepted, begin, check_expiry, follow
from builder.trust.codec import read_policy
from tests.trust.keys import TODAY, policy_text, text, versions

ONE = policy_text()
TWO = policy_text(version=2)
OTHER_ROOT = "{keys: [carol, dan], threshold: 2}"
TAKEN = policy_text(version=2, root=OTHER_ROOT)
"""A version whose root is other people's."""
FIRST = text(ONE, "ada", "bob")


def refused(given_versions: Versions, known: str = ONE) -> str:
    with pytest.raises(UntrustedError) as caught:
        follow(given_versions, known.encode())
    assert caught.value.hint or "after" in caught.value.message
    return caught.value.message


def test_what_was_accepted_stays_accepted() -> None:
    found = follow(versions(text(ONE)), ONE.encode())
    assert (found.policy.version, found.steps) == (1, ())


def test_the_next_version_wants_the_keys_of_the_one_before() -> None:
    found = follow(versions(text(TWO, "ada", "bob")), ONE.encode())
    assert (found.policy.version, found.raw, found.steps) == (2, TWO.encode(), (2,))
    assert refused(versions(text(TWO, "ada"))) == (
        "trust.yaml: signed by 1 of 2 root keys of version 1, which was accepted before it"
    )
    assert refused(versions(text(TWO))) == (
        "trust.yaml: signed by 0 of 2 root keys of version 1, which was accepted before it"
    )


def test_a_new_root_that_only_itself_vouches_for_is_refused() -> None:
    assert refused(versions(text(TAKEN, "carol", "dan"))) == (
        "trust.yaml: signed by 0 of 2 root keys of version 1, which was accepted before it"
    )
    assert refused(versions(text(TAKEN, "carol", "dan", "ada"))) == (
        "trust.yaml: signed by 1 of 2 root keys of version 1, which was accepted before it"
    )


def test_a_new_root_that_does_not_sign_itself_is_refused() -> None:
    """Otherwise a slip in the keys would lock everybody out."""
    assert refused(versions(text(TAKEN, "ada", "bob"))) == (
        "trust.yaml: signed by 0 of 2 root keys of its own"
    )
    found = follow(versions(text(TAKEN, "ada", "bob", "carol", "dan")), ONE.encode())
    assert found.policy.version == 2


def test_a_key_of_both_roots_counts_for_both() -> None:
    shared = policy_text(version=2, root="{keys: [bob, carol], threshold: 1}")
    assert follow(versions(text(shared, "ada", "bob")), ONE.encode()).policy.version == 2


def test_a_threshold_that_was_lowered_needs_the_old_one_once_more() -> None:
    lower = policy_text(version=2, root="{keys: [ada, bob], threshold: 1}")
    assert refused(versions(text(lower, "ada"))).startswith("trust.yaml: signed by 1 of 2")
    assert follow(versions(text(lower, "ada", "bob")), ONE.encode()).policy.version == 2


def test_an_older_version_is_refused_however_it_is_signed() -> None:
    message = refused(versions(FIRST), known=TWO)
    assert message == "trust.yaml: version 1, and version 2 was accepted here"


def test_another_text_of_the_same_version_is_refused_however_it_is_signed() -> None:
    fork = text(ONE + "# \n", "ada", "bob")
    assert refused(versions(fork)) == (
        "trust.yaml: version 1 with another text than the one accepted here"
    )


def test_a_policy_that_is_gone_is_refused() -> None:
    assert refused(versions(None)) == "trust.yaml: gone, and version 1 of it was accepted here"


def test_a_text_that_was_changed_after_it_was_signed_says_so() -> None:
    changed = replace(text(TWO, "ada", "bob"), raw=TWO.replace("2027", "2028").encode())
    assert refused(versions(changed)) == (
        "trust.yaml: signed by 0 of 2 root keys of version 1, which was accepted before it; the"
        " signatures are of another text: it was changed after it was signed"
    )


def test_the_versions_between_are_followed() -> None:
    """Root by root: the keys of version 1 have never signed version 3."""
    second = text(TAKEN, "ada", "bob", "carol", "dan", file="trust/2.yaml")
    third = text(policy_text(version=3, root=OTHER_ROOT), "carol", "dan")
    found = follow(versions(third, FIRST, second), ONE.encode())
    assert (found.policy.version, found.steps) == (3, (2, 3))
    assert refused(versions(third, FIRST)).startswith("trust.yaml: signed by 0 of 2 root keys")


def test_the_versions_between_are_followed_by_number_however_they_are_listed() -> None:
    """Also where the newest is among those that are kept, too."""
    second = text(TAKEN, "ada", "bob", "carol", "dan", file="trust/2.yaml")
    third = text(policy_text(version=3, root=OTHER_ROOT), "carol", "dan", file="trust/3.yaml")
    fourth = text(policy_text(version=4, root=OTHER_ROOT), "carol", "dan")
    kept = {4: replace(fourth, file="trust/4.yaml"), 3: third, 2: second, 1: FIRST}
    found = follow(Versions(latest=fourth, history=kept), ONE.encode())
    assert found.steps == (2, 3, 4)


def test_where_nothing_is_there_nothing_can_be_begun() -> None:
    with pytest.raises(UntrustedError, match="no version of it has the digest"):
        begin(versions(None), Digest.of(ONE.encode()))


def test_who_has_not_signed_is_named() -> None:
    with pytest.raises(UntrustedError) as caught:
        follow(versions(text(TWO, "ada")), ONE.encode())
    assert str(caught.value.hint).startswith("who has not signed: 'bob'; ")


def test_a_version_between_that_does_not_follow_stops_everything() -> None:
    second = text(TAKEN, "carol", "dan", file="trust/2.yaml")
    third = text(policy_text(version=3), "ada", "bob")
    message = refused(versions(third, FIRST, second))
    assert message.startswith("trust/2.yaml: signed by 0 of 2 root keys of version 1")


def test_a_version_between_under_another_number_stops_everything() -> None:
    """Version 1 once more, as if it were 2, to bring its keys back."""
    again = text(ONE, "ada", "bob", file="trust/2.yaml")
    third = text(policy_text(version=3), "ada", "bob")
    assert refused(versions(third, FIRST, again)) == "trust/2.yaml: version 1 after 1"


def test_versions_that_nobody_kept_are_jumped_over_if_the_known_keys_signed() -> None:
    ninth = text(policy_text(version=9), "ada", "bob")
    assert follow(versions(ninth), ONE.encode()).steps == (9,)


def test_a_revoked_key_signs_no_next_version() -> None:
    revoked = ONE.replace("owner: ada\n    state: active", "owner: ada\n    state: revoked")
    known = revoked.replace("threshold: 2", "threshold: 1")
    after = policy_text(version=2, root="{keys: [ada, bob], threshold: 1}")
    assert refused(versions(text(after, "ada")), known=known).startswith(
        "trust.yaml: signed by 0 of 1 root keys of version 1"
    )
    assert follow(versions(text(after, "bob")), known.encode()).policy.version == 2


def test_a_next_version_that_is_no_policy_is_refused() -> None:
    with pytest.raises(ProjectError):
        follow(versions(text(TWO + "more: 1\n", "ada", "bob")), ONE.encode())


def test_a_first_one_is_named_by_its_digest_or_was_accepted_before() -> None:
    with pytest.raises(UntrustedError) as caught:
        accepted(versions(FIRST), known=None, anchor=None)
    assert caught.value.message == "trust.yaml: nobody has accepted this policy on this machine"
    found = accepted(versions(FIRST), known=None, anchor=Digest.of(FIRST.raw))
    assert (found.policy.version, found.steps) == (1, (1,))
    with pytest.raises(UntrustedError, match="no version of it has the digest"):
        begin(versions(FIRST), Digest.of(b"another"))


def test_a_first_one_that_its_own_keys_did_not_sign_is_no_beginning() -> None:
    half = text(ONE, "ada")
    with pytest.raises(UntrustedError, match="signed by 1 of 2 root keys of its own"):
        begin(versions(half), Digest.of(half.raw))


def test_a_digest_of_an_old_version_leads_to_the_newest() -> None:
    second = text(TWO, "ada", "bob")
    first = replace(FIRST, file="trust/1.yaml")
    found = accepted(versions(second, first), known=None, anchor=Digest.of(first.raw))
    assert (found.policy.version, found.steps) == (2, (1, 2))


def test_a_digest_does_not_take_back_what_was_accepted_since() -> None:
    with pytest.raises(UntrustedError, match="version 1, and version 2 was accepted here"):
        accepted(versions(FIRST), known=TWO.encode(), anchor=Digest.of(FIRST.raw))


@pytest.mark.parametrize(("days", "over"), [(-1, False), (0, False), (1, True)])
def test_a_policy_holds_to_the_end_of_its_last_day(days: int, over: bool) -> None:
    policy = read_policy(ONE.encode())
    today = policy.expires + timedelta(days=days)
    if not over:
        check_expiry(policy, today)
        return
    with pytest.raises(ExpiredError) as caught:
        check_expiry(policy, today)
    assert caught.value.message == (
        "trust.yaml: version 1 expired on 2027-12-31, and it is 2028-01-01 in UTC"
    )


def test_who_was_away_follows_versions_that_are_over() -> None:
    old = policy_text(expires="2020-01-01")
    second = text(policy_text(version=2, expires="2021-01-01"), "ada", "bob", file="trust/2.yaml")
    third = text(policy_text(version=3), "ada", "bob")
    found = follow(versions(third, text(old), second), old.encode())
    check_expiry(found.policy, TODAY)
    assert found.policy.expires > date(2027, 1, 1)


@settings(max_examples=60)
@given(
    st.sets(st.sampled_from(["ada", "bob", "carol", "dan"])),
    st.sampled_from([("ada", "bob"), ("bob", "carol"), ("carol", "dan"), ("ada", "carol", "dan")]),
    st.integers(1, 3),
)
def test_whoever_signs_a_version_counts_only_with_both_thresholds(
    who: set[str], root: tuple[str, ...], threshold: int
) -> None:
    threshold = min(threshold, len(root))
    new = policy_text(version=2, root=f"{{keys: [{', '.join(root)}], threshold: {threshold}}}")
    enough = {"ada", "bob"} <= who and len(who & set(root)) >= threshold
    try:
        follow(versions(text(new, *sorted(who))), ONE.encode())
    except UntrustedError:
        assert not enough
    else:
        assert enough
