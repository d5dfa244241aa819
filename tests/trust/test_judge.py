"""Who signed, held to a policy: each outcome, and the order in which they are said."""

from datetime import timedelta
from itertools import combinations

import pytest

from builder.digest import Digest
from builder.errors import BuilderError, ExpiredError, UntrustedError
from builder.reference import Reference
from builder.trust.codec import read_policy
from builder.trust.judge import (
    Judgement,
    Kind,
    Outcome,
    enough_for,
    judge,
    public_keys,
)
from builder.trust.model import Policy
from tests.trust.keys import NAMES, TODAY, key_entry, policy_text, public

IMAGE = Digest.of(b"image")
OTHER = Digest.of(b"another image")
HERE = Reference.parse("registry.example/acme/vllm:tag")
STRANGER = public("mallory")


def policy(*, threshold: int = 1, more: str = "", **keys: str) -> Policy:
    """Carol and Dan sign images; ``keys`` has entries of other states or days."""
    listed = "".join(keys.get(name) or key_entry(name) for name in NAMES)
    roles = (
        f"  image: {{keys: [carol, dan], threshold: {threshold}}}\n"
        "  model: {keys: [bob], threshold: 1}\n"
    )
    return read_policy(policy_text(keys=listed, roles=roles, more=more).encode())


def held(
    to: Policy,
    *names: str,
    kind: Kind = Kind.IMAGE,
    digest: Digest = IMAGE,
    repository: Reference | None = HERE,
    days: int = 0,
) -> Judgement:
    return judge(
        to,
        kind=kind,
        digest=digest,
        signed_by={public(name) for name in names},
        today=TODAY + timedelta(days=days),
        repository=repository,
    )


def test_a_key_that_is_given_twice_is_one() -> None:
    found = judge(
        policy(threshold=2),
        kind=Kind.IMAGE,
        digest=IMAGE,
        signed_by=[public("carol"), public("carol")],
        today=TODAY,
        repository=HERE,
    )
    assert found.outcome is Outcome.BELOW_THRESHOLD
    assert found.message == "signed by 1 of 2 keys of the role 'image' ('carol')"


REVOKED = key_entry("dan", state="revoked")
RETIRED = key_entry("dan", state="retired")
OVER = key_entry("dan", f"until: {TODAY - timedelta(days=1)}")
LISTED = f"grandfathered: [{IMAGE}]\n"


@pytest.mark.parametrize(
    ("found", "outcome", "message"),
    [
        pytest.param(
            held(policy(), "dan"),
            Outcome.TRUSTED,
            "signed by 1 of 1 keys of the role 'image' ('dan')",
            id="a key of the role",
        ),
        pytest.param(
            held(policy()),
            Outcome.UNTRUSTED,
            "signed by 0 of 1 keys of the role 'image'",
            id="nobody",
        ),
        pytest.param(
            held(policy(), "mallory"),
            Outcome.UNTRUSTED,
            "signed by 0 of 1 keys of the role 'image'; 1 other keys signed, too",
            id="a stranger",
        ),
        pytest.param(
            held(policy(), "ada", "bob"),
            Outcome.UNTRUSTED,
            "signed by 0 of 1 keys of the role 'image'; 2 other keys signed, too",
            id="keys of the root, which are for something else",
        ),
        pytest.param(
            held(policy(threshold=2), "dan", "mallory"),
            Outcome.BELOW_THRESHOLD,
            "signed by 1 of 2 keys of the role 'image' ('dan'); 1 other keys signed, too",
            id="one of two, and a stranger",
        ),
        pytest.param(
            held(policy(dan=REVOKED), "dan"),
            Outcome.REVOKED,
            "signed by 0 of 1 keys of the role 'image'; 'dan' is revoked",
            id="a revoked key",
        ),
        pytest.param(
            held(policy(dan=REVOKED), "dan", "carol"),
            Outcome.TRUSTED,
            "signed by 1 of 1 keys of the role 'image' ('carol'); 'dan' is revoked",
            id="a revoked key beside a good one",
        ),
        pytest.param(
            held(policy(threshold=2, dan=REVOKED), "dan", "carol"),
            Outcome.BELOW_THRESHOLD,
            "signed by 1 of 2 keys of the role 'image' ('carol'); 'dan' is revoked",
            id="a revoked key where two have to sign",
        ),
        pytest.param(
            held(policy(dan=REVOKED, more=LISTED), "dan"),
            Outcome.TRUSTED,
            "signed by 1 of 1 keys of the role 'image' ('dan')",
            id="a revoked key over what is grandfathered",
        ),
        pytest.param(
            held(policy(dan=REVOKED, more=LISTED), "dan", digest=OTHER),
            Outcome.REVOKED,
            "signed by 0 of 1 keys of the role 'image'; 'dan' is revoked",
            id="a revoked key over something else than what is grandfathered",
        ),
        pytest.param(
            held(policy(dan=REVOKED, more=LISTED), "mallory"),
            Outcome.UNTRUSTED,
            "signed by 0 of 1 keys of the role 'image'; 1 other keys signed, too",
            id="a stranger over what is grandfathered",
        ),
        pytest.param(
            held(policy(dan=RETIRED), "dan"),
            Outcome.RETIRED,
            "signed by 0 of 1 keys of the role 'image'; 'dan' is retired",
            id="a retired key",
        ),
        pytest.param(
            held(policy(dan=RETIRED, more=LISTED), "dan"),
            Outcome.TRUSTED,
            "signed by 1 of 1 keys of the role 'image' ('dan')",
            id="a retired key over what is grandfathered",
        ),
        pytest.param(
            held(policy(dan=OVER), "dan"),
            Outcome.KEY_EXPIRED,
            "signed by 0 of 1 keys of the role 'image'; 'dan' is good to 2027-06-14",
            id="a key whose last day was yesterday",
        ),
        pytest.param(
            held(policy(dan=key_entry("dan", f"until: {TODAY}")), "dan"),
            Outcome.TRUSTED,
            "signed by 1 of 1 keys of the role 'image' ('dan')",
            id="a key on its last day",
        ),
        pytest.param(
            held(policy(dan=key_entry("dan", f"since: {TODAY + timedelta(days=1)}")), "dan"),
            Outcome.KEY_EXPIRED,
            "signed by 0 of 1 keys of the role 'image'; 'dan' is good from 2027-06-16 on",
            id="a key whose first day is tomorrow",
        ),
        pytest.param(
            held(policy(), "dan", repository=Reference.parse("registry.example/other/vllm")),
            Outcome.OUT_OF_SCOPE,
            "no scope in trust.yaml has registry.example/other/vllm",
            id="another repository",
        ),
        pytest.param(
            held(policy(), "dan", repository=None),
            Outcome.OUT_OF_SCOPE,
            "no scope in trust.yaml has an image of no repository, as in a layout: '*' would",
            id="no repository",
        ),
        pytest.param(
            held(policy(), "dan", kind=Kind.WAIVER),
            Outcome.OUT_OF_SCOPE,
            "trust.yaml has no role 'waiver'",
            id="something that nobody may sign",
        ),
        pytest.param(
            held(policy(), "dan", kind=Kind.MODEL, repository=None),
            Outcome.UNTRUSTED,
            "signed by 0 of 1 keys of the role 'model'; 1 other keys signed, too",
            id="a model, by those who sign images",
        ),
        pytest.param(
            held(policy(), "bob", kind=Kind.MODEL, repository=None),
            Outcome.TRUSTED,
            "signed by 1 of 1 keys of the role 'model' ('bob')",
            id="a model",
        ),
        pytest.param(
            held(policy(), "dan", days=200),
            Outcome.EXPIRED,
            "trust.yaml: version 1 expired on 2027-12-31, and it is 2028-01-01 in UTC",
            id="a policy that is over",
        ),
        pytest.param(
            held(policy(dan=REVOKED), days=200, repository=None),
            Outcome.EXPIRED,
            "trust.yaml: version 1 expired on 2027-12-31, and it is 2028-01-01 in UTC",
            id="a policy that is over says nothing else",
        ),
        pytest.param(
            held(policy(), "dan", days=199),
            Outcome.TRUSTED,
            "signed by 1 of 1 keys of the role 'image' ('dan')",
            id="a policy on its last day",
        ),
    ],
)
def test_an_outcome_is_said_with_its_reason(
    found: Judgement, outcome: Outcome, message: str
) -> None:
    assert (found.outcome, found.message) == (outcome, message)
    assert found.trusted is (outcome is Outcome.TRUSTED)
    assert found.trusted is (len(found.counted) >= found.threshold > 0)


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_has_an_error_of_its_kind(outcome: Outcome) -> None:
    found = Judgement(outcome=outcome, message="why")
    if outcome is Outcome.TRUSTED:
        found.enforce("x")
        return
    over = {Outcome.EXPIRED, Outcome.KEY_EXPIRED}
    kind: type[BuilderError] = ExpiredError if outcome in over else UntrustedError
    with pytest.raises(kind) as caught:
        found.enforce("registry.example/acme/vllm")
    assert caught.value.message == f"registry.example/acme/vllm: {outcome}: why"
    assert caught.value.hint


def test_so_many_keys_pass_as_the_threshold_says_whichever_they_are() -> None:
    for threshold in (1, 2):
        to = policy(threshold=threshold)
        for count in range(3):
            for names in combinations(("carol", "dan"), count):
                assert held(to, *names, "mallory").trusted is (count >= threshold)


def test_how_long_a_judgement_holds_is_said_by_the_first_of_its_keys_to_end() -> None:
    until = TODAY + timedelta(days=5)
    to = policy(dan=key_entry("dan", f"until: {until}"))
    assert held(to, "carol", "dan").until == until
    assert held(to, "carol").until is None


def test_verification_asks_with_all_keys_and_is_refused_in_the_words_of_the_policy() -> None:
    to = policy(dan=REVOKED)
    assert set(public_keys(to)) == {public(name) for name in NAMES}
    enough = enough_for(to, image=IMAGE, repository=HERE, today=TODAY)
    enough("image", [public("dan"), public("carol")])
    with pytest.raises(UntrustedError) as caught:
        enough("sbom", [public("dan")])
    assert caught.value.message == (
        "sbom: revoked: signed by 0 of 1 keys of the role 'image'; 'dan' is revoked"
    )
