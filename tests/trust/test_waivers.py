"""Waivers under a policy: an entry counts if the role signed exactly that entry."""

from dataclasses import replace
from datetime import timedelta

import pytest

from builder.digest import Digest, ObjectId
from builder.lock.model import Waiver
from builder.trust.codec import read_policy
from builder.trust.model import Policy
from builder.trust.names import PAYLOAD_TYPE, WAIVER_TYPE
from builder.trust.signatures import read_signatures
from builder.trust.waivers import payload, unvouched
from tests.trust.keys import TODAY, policy_text, signatures

WAIVER = Waiver(
    name="w",
    rule="genesis-allowlist",
    genesis=ObjectId("7" * 40),
    vllm="0.20.2",
    reason="tried",
    author="Ada",
    until=str(TODAY + timedelta(days=20)),
)


def policy(threshold: int = 1, more: str = "") -> Policy:
    roles = (
        "  image: {keys: [dan], threshold: 1}\n"
        f"  waiver: {{keys: [carol, dan], threshold: {threshold}}}\n"
    )
    return read_policy(policy_text(roles=roles, more=more).encode())


def why(
    waiver: Waiver,
    *names: str,
    signed: Waiver = WAIVER,
    to: Policy | None = None,
    kind: str = WAIVER_TYPE,
) -> str | None:
    data = signatures(payload(signed), *names, kind=kind)
    envelopes = read_signatures(data, file="f")
    found = unvouched({waiver.name: waiver}, envelopes, policy=to or policy(), today=TODAY)
    return found.get(waiver.name)


def test_a_waiver_that_the_role_signed_counts() -> None:
    assert why(WAIVER, "carol") is None
    assert why(WAIVER, "carol", "dan", to=policy(threshold=2)) is None
    envelopes = read_signatures(signatures(payload(WAIVER), "carol", kind=WAIVER_TYPE), file="f")
    other = replace(WAIVER, name="other")
    found = unvouched({"w": WAIVER, "other": other}, envelopes, policy=policy(), today=TODAY)
    assert list(found) == ["other"]


def test_a_waiver_that_nobody_of_the_role_signed_does_not() -> None:
    assert why(WAIVER) == "untrusted: signed by 0 of 1 keys of the role 'waiver'"
    assert why(WAIVER, "ada") == "untrusted: signed by 0 of 1 keys of the role 'waiver'"
    assert why(WAIVER, "dan", to=policy(threshold=2)) == (
        "below-threshold: signed by 1 of 2 keys of the role 'waiver' ('dan')"
    )


def test_a_policy_without_the_role_lets_none_count() -> None:
    to = read_policy(policy_text().encode())
    assert why(WAIVER, "carol", to=to) == "out-of-scope: trust.yaml has no role 'waiver'"


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "x"},
        {"genesis": ObjectId("8" * 40)},
        {"vllm": "0.20.3"},
        {"reason": "not tried"},
        {"author": "Eve"},
        {"until": str(TODAY + timedelta(days=21))},
        {"rule": "another"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_field_is_signed(changed: dict[str, str]) -> None:
    other = replace(WAIVER, **changed)  # type: ignore[arg-type]  # one field each
    assert why(other, "carol") == "untrusted: signed by 0 of 1 keys of the role 'waiver'"
    assert set(changed) <= {"name", *(Waiver.__annotations__)} - {"at"}


def test_a_signature_as_something_else_does_not_count() -> None:
    assert why(WAIVER, "carol", kind=PAYLOAD_TYPE) is not None


@pytest.mark.parametrize(("days", "far"), [(30, False), (31, True), (27000, True)])
def test_a_waiver_that_ends_too_far_ahead_does_not_count_however_it_is_signed(
    days: int, far: bool
) -> None:
    to = policy(more="waivers: {days: 30}\n")
    waiver = replace(WAIVER, until=str(TODAY + timedelta(days=days)))
    told = "it ends more than 30 days from now, the most that trust.yaml allows"
    assert why(waiver, "carol", signed=waiver, to=to) == (told if far else None)


def test_a_policy_that_says_nothing_of_it_allows_a_year() -> None:
    waiver = replace(WAIVER, until=str(TODAY + timedelta(days=367)))
    assert "more than 366 days" in (why(waiver, "carol", signed=waiver) or "")


def test_a_waiver_of_a_revoked_key_can_be_grandfathered() -> None:
    text = policy_text(
        roles="  image: {keys: [dan], threshold: 1}\n  waiver: {keys: [dan], threshold: 1}\n"
    ).replace("owner: dan\n    state: active", "owner: dan\n    state: revoked")
    assert why(WAIVER, "dan", to=read_policy(text.encode())) == (
        "revoked: signed by 0 of 1 keys of the role 'waiver'; 'dan' is revoked"
    )
    listed = f"{text}grandfathered: [{Digest.of(payload(WAIVER))}]\n"
    assert why(WAIVER, "dan", to=read_policy(listed.encode())) is None
