"""The policy for notation. What notation makes of it is in tests/real."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from builder.digest import Digest
from builder.errors import PolicyError
from builder.notation.certificate import Chain, read_chain
from builder.notation.self_signed import self_signed
from builder.trust.codec import read_policy
from builder.trust.export.chosen import Export
from builder.trust.export.notation import notation
from builder.trust.model import Policy
from tests.notation.authorities import issued
from tests.signers import MemorySigner
from tests.trust.keys import NAMES, TODAY, key_entry, policy_text, signer

NOW = datetime(TODAY.year, TODAY.month, TODAY.day, 9, tzinfo=UTC)
APP = "registry.example/acme/app"


def chain(name: str, *, days: int = 30, now: datetime = NOW) -> Chain:
    return self_signed(signer(name), f"CN={name},O=Acme,ST=Berlin,C=DE", now=now, days=days)


def policy(
    scopes: str = f"  - {{repositories: [{APP}], role: image}}\n",
    roles: str = "  image: {keys: [dan, carol], threshold: 1}\n",
    **entries: str,
) -> Policy:
    listed = "".join(entries.get(name) or key_entry(name) for name in NAMES)
    return read_policy(policy_text(keys=listed, roles=roles, scopes=scopes).encode())


def made(given: Policy, *chains: Chain) -> Export:
    return notation(given, chains, today=TODAY)


def statements(export: Export) -> Any:
    document = json.loads(export.files["trustpolicy.json"])
    assert document["version"] == "1.0"
    return document["trustPolicies"]


def stored(export: Export) -> str:
    """The file of Dan's certificates, in the one store there is."""
    (statement,) = statements(export)
    (store,) = statement["trustStores"]
    return f"truststore/x509/{store.replace(':', '/')}/dan.pem"


def refusal(given: Policy, *chains: Chain) -> str:
    with pytest.raises(PolicyError) as error:
        made(given, *chains)
    return error.value.message


def test_a_repository_has_its_role_as_a_store() -> None:
    export = made(policy(), chain("dan"))
    assert statements(export) == [
        {
            "name": "image-1",
            "registryScopes": [APP],
            "signatureVerification": {"level": "strict"},
            "trustStores": [f"ca:image-{Digest.of(chain('dan').pem).short}"],
            "trustedIdentities": ["*"],
        }
    ]
    assert set(export.files) == {"trustpolicy.json", stored(export)}
    assert export.files[stored(export)] == chain("dan").pem
    assert [line for line in export.remarks if "key '" in line] == [
        "key 'dan': its certificate and its signatures hold to 2027-07-14",
        "key 'carol' (ed25519) has no certificate, and counts for nothing",
    ]


def test_a_key_may_have_an_old_and_a_new_certificate() -> None:
    both = chain("dan"), chain("dan", days=60)
    export = made(policy(), *both, both[0])
    assert export.files[stored(export)] == both[0].pem + both[1].pem


def test_what_an_earlier_copy_left_in_a_store_is_trusted_no_more() -> None:
    """Copies are put over one another: in notation's directory files of a store add up."""
    roles = "  image: {keys: [dan, ada], threshold: 1}\n"
    before = made(policy(roles=roles), chain("dan"), chain("ada"))
    after = made(policy(roles=roles, dan=key_entry("dan", state="revoked")), chain("ada"))
    old, new = (item[0]["trustStores"] for item in (statements(before), statements(after)))
    assert old != new


def test_places_and_thresholds_are_left_out_and_told() -> None:
    given = policy(
        f'  - {{repositories: [{APP}, "registry.example/b/*"], role: image}}\n'
        "  - {repositories: [registry.example/c], role: release}\n"
        "  - {repositories: [registry.example/d], role: waiting}\n",
        "  image: {keys: [dan], threshold: 1}\n"
        "  release: {keys: [dan, ada], threshold: 2}\n"
        "  waiting: {keys: [carol], threshold: 1}\n",
    )
    export = made(given, chain("dan"), chain("ada"))
    assert [item["registryScopes"] for item in statements(export)] == [[APP]]
    assert {name for name in export.files if "truststore" in name} == {stored(export)}
    told = "\n".join(export.remarks)
    for line in (
        "registry.example/b/* is left out: notation knows repositories, not places",
        "registry.example/c is left out: 2 keys have to sign, and notation is content with one",
        "registry.example/d is left out: no key of its role has a certificate",
    ):
        assert f"{line}; notation refuses what it has there" in told


def test_a_registry_that_is_an_address_would_make_all_of_it_invalid() -> None:
    scopes = f"  - {{repositories: ['[::1]:5000/acme/x', {APP}], role: image}}\n"
    export = made(policy(scopes), chain("dan"))
    assert [item["registryScopes"] for item in statements(export)] == [[APP]]
    assert any(it.startswith("[::1]:5000/acme/x is left out") for it in export.remarks)


def test_an_image_of_the_hub_has_all_of_its_names() -> None:
    scopes = "  - {repositories: ['*', docker.io/library/python], role: image}\n"
    export = made(policy(scopes), chain("dan"))
    _, hub = [item["registryScopes"] for item in statements(export)]
    assert {"docker.io/library/python", "registry-1.docker.io/library/python"} < set(hub)
    assert any(remark.endswith("are held to '*' alone") for remark in export.remarks)


def test_everything_may_be_said_beside_a_narrower_scope() -> None:
    scopes = f"  - {{repositories: ['*', {APP}], role: image}}\n"
    export = made(policy(scopes), chain("dan"))
    assert [item["registryScopes"] for item in statements(export)] == [["*"], [APP]]
    assert len({item["name"] for item in statements(export)}) == 2


def test_what_would_be_taken_for_less_is_refused() -> None:
    scopes = (
        f"  - {{repositories: ['*'], role: image}}\n  - {{repositories: [{APP}], role: release}}\n"
    )
    roles = "  image: {keys: [dan], threshold: 1}\n  release: {keys: [dan, ada], threshold: 2}\n"
    told = refusal(policy(scopes, roles), chain("dan"))
    assert told == (
        f"{APP} is left out: 2 keys have to sign, and notation is content with one,"
        " and '*', which is not, would have its images"
    )


def test_where_nothing_can_be_said_nothing_is_written() -> None:
    told = refusal(policy())
    assert told == (
        "nothing of the policy can be said:"
        f" {APP} is left out: no key of its role has a certificate"
    )


def test_certificates_of_no_key_that_counts_are_refused() -> None:
    assert "which signs no images today by the policy" in refusal(policy(), chain("ada"))
    revoked = policy(dan=key_entry("dan", state="revoked"))
    assert "which signs no images today by the policy" in refusal(revoked, chain("dan"))


def test_certificates_that_do_not_hold_today_are_refused() -> None:
    for now in (NOW - timedelta(days=30), NOW + timedelta(days=1)):
        assert "not today" in refusal(policy(), chain("dan", now=now))
    made(policy(), chain("dan", now=NOW - timedelta(days=29)))
    made(policy(), chain("dan", days=1))


def test_certificates_of_an_authority_are_refused() -> None:
    dan = MemorySigner(signer("dan").key)
    theirs = read_chain(issued(dan, now=NOW), at="dan.pem")
    told = refusal(policy(), theirs)
    assert told == (
        "dan.pem: issued by somebody else, and notation would trust all that they issue"
    )
