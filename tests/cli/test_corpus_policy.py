"""The hostile corpus of trust: who may sign, held to ``trust.yaml``, through ``builder verify``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from builder.attest import dsse
from builder.attest.dsse import IN_TOTO, Envelope, Signature
from builder.cli import site
from builder.oci import OCI_INDEX
from builder.trust.names import PAYLOAD_TYPE, WAIVER_TYPE
from tests.cli.conftest import Builder, Ran
from tests.cli.signed_world import NAME, World, in_attachment, in_bundle, index_of, refused, said
from tests.trust.keys import key_entry, policy_text, public, signatures, signer

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
FILE, BESIDE = "trust.yaml", "trust.yaml.sig.jsonl"
EVERYWHERE = '  - {repositories: ["*"], role: image}\n'
ROOT = ("ada", "bob")
NO_KEYS: Mapping[str, str] = {}


def day(days: int) -> str:
    """So many days from now, in UTC."""
    return str(datetime.now(UTC).date() + timedelta(days=days))


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project with a policy in which Ada and Bob keep it, and Carol and Dan sign images."""

    directory: Path
    builder: Builder
    world: World

    def policy(
        self,
        *signers: str,
        version: int = 1,
        expires: str = day(200),
        threshold: int = 1,
        more: str = "",
        kind: str = PAYLOAD_TYPE,
        root: str = "{keys: [ada, bob], threshold: 2}",
        scopes: str = EVERYWHERE,
        keys: Mapping[str, str] = NO_KEYS,
    ) -> None:
        """Put a policy there; ``keys`` are entries of another state."""
        raw = policy_text(
            version=version,
            expires=expires,
            keys="".join(keys.get(name) or key_entry(name) for name in (*ROOT, "carol", "dan")),
            root=root,
            roles=f"  image: {{keys: [carol, dan], threshold: {threshold}}}\n",
            scopes=scopes,
            more=more,
        ).encode()
        (self.directory / FILE).write_bytes(raw)
        (self.directory / BESIDE).write_bytes(signatures(raw, *signers or ROOT, kind=kind) or b"")

    def accept(self) -> None:
        ran = self.builder("trust", "init", "--accept-first")
        assert ran.status == 0, ran.err

    def verify(self, *more: str) -> Ran:
        return self.builder("verify", f"oci:{self.world.layout}", *more)

    def sign(self, *names: str) -> None:
        self.world.sign(*map(signer, names))


@pytest.fixture
def here(project: Path, builder: Builder, world: World) -> Project:
    return Project(directory=project, builder=builder, world=world)


def test_who_may_sign_is_accepted(here: Project) -> None:
    """The control of everything below."""
    here.policy(threshold=2)
    here.accept()
    here.sign("carol", "dan")
    assert here.verify().status == 0


# --- of keys --------------------------------------------------------------------------------------

LATE, EARLY = f"until: {day(-1)}", f"since: {day(1)}"
ROLE = "keys of the role 'image'"
KEYS: dict[str, tuple[dict[str, str], tuple[str, ...], int, str]] = {
    "nobody of the role": (
        {}, ("ada", "bob"), 11, f"image: untrusted: signed by 0 of 1 {ROLE}; 2 other keys",
    ),
    "a stranger": ({}, ("mallory",), 11, "no signature of a key that is trusted; "),
    "a revoked key": (
        {"dan": key_entry("dan", state="revoked")}, ("dan",), 11,
        f"image: revoked: signed by 0 of 1 {ROLE}; 'dan' is revoked",
    ),
    "a retired key": (
        {"dan": key_entry("dan", state="retired")}, ("dan",), 11,
        f"image: retired: signed by 0 of 1 {ROLE}; 'dan' is retired",
    ),
    "a key whose days are over": (
        {"dan": key_entry("dan", LATE)}, ("dan",), 12,
        f"image: key-expired: signed by 0 of 1 {ROLE}; 'dan' is good to {day(-1)}",
    ),
    "a key whose days have not begun": (
        {"dan": key_entry("dan", EARLY)}, ("dan",), 12,
        f"image: key-expired: signed by 0 of 1 {ROLE}; 'dan' is good from {day(1)} on",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KEYS)
def test_a_key_that_does_not_count(case: str, here: Project) -> None:
    keys, signers, status, message = KEYS[case]
    here.policy(keys=keys)
    here.accept()
    here.sign(*signers)
    refused(here.verify(), status, message)


def test_one_of_two(here: Project) -> None:
    here.policy(threshold=2)
    here.accept()
    here.sign("dan", "ada")
    refused(here.verify(), 11, f"image: below-threshold: signed by 1 of 2 {ROLE} ('dan'); 1 other")


def test_a_good_key_and_a_revoked_one_are_not_two(here: Project) -> None:
    here.policy(threshold=2, keys={"dan": key_entry("dan", state="revoked")})
    here.accept()
    here.sign("carol", "dan")
    refused(here.verify(), 11, f"signed by 1 of 2 {ROLE} ('carol'); 'dan' is revoked")


def test_two_signatures_of_one_key_are_not_two_keys(here: Project) -> None:
    """Of (r, s) anybody makes (r, n - s); and a key may sign in each of the forms."""
    here.policy(threshold=2)
    here.accept()
    here.sign("dan")
    for payload in (said(here.world.image.digest), said(here.world.image.digest, predicate={})):
        plain = Envelope(payload_type=IN_TOTO, payload=payload)
        r, s = decode_dss_signature(made := signer("dan").sign(plain.signed))
        for signature in (made, encode_dss_signature(r, ORDER - s)):
            assert public("dan").verifies(signature, plain.signed)
            for name in ("dan", "carol"):
                one = Signature(keyid=public(name).fingerprint, sig=signature)
                signed = Envelope(payload_type=IN_TOTO, payload=payload, signatures=(one,))
                in_bundle(here.world, signed)
                in_attachment(here.world, signed)
    refused(here.verify(), 11, f"image: below-threshold: signed by 1 of 2 {ROLE} ('dan')")


def test_two_signatures_of_one_key_in_one_envelope_are_not_two_keys(here: Project) -> None:
    here.policy(threshold=2)
    here.accept()
    plain = Envelope(payload_type=IN_TOTO, payload=said(here.world.image.digest))
    r, s = decode_dss_signature(made := signer("dan").sign(plain.signed))
    both = (
        Signature(keyid=public("dan").fingerprint, sig=made),
        Signature(keyid=public("carol").fingerprint, sig=encode_dss_signature(r, ORDER - s)),
    )
    here.world.att(
        dsse.encode(Envelope(payload_type=IN_TOTO, payload=plain.payload, signatures=both))
    )
    refused(here.verify(), 11, f"image: below-threshold: signed by 1 of 2 {ROLE} ('dan')")


def test_two_keys_that_say_different_things_are_not_two(here: Project) -> None:
    here.policy(threshold=2)
    here.accept()
    for name, predicate in (("carol", {"a": 1}), ("dan", {"a": 2})):
        payload = said(here.world.image.digest, predicate=predicate)
        bare = Envelope(payload_type=IN_TOTO, payload=payload)
        made = (Signature(keyid="", sig=signer(name).sign(bare.signed)),)
        in_bundle(here.world, Envelope(payload_type=IN_TOTO, payload=payload, signatures=made))
    refused(here.verify(), 11, f"image: below-threshold: signed by 1 of 2 {ROLE} (")


@pytest.mark.parametrize("form", ["pem", "openssh"])
def test_one_key_under_two_names(form: str, here: Project) -> None:
    key = public("carol")
    text = key.openssh.decode().strip()
    if form == "pem":
        text = "|\n" + "".join(f"      {line}\n" for line in key.pem.decode().splitlines())
    entry = f"  dan:\n    public: {text}\n    owner: dan\n    state: active\n"
    here.policy(threshold=2, keys={"dan": entry})
    here.sign("carol")
    refused(here.builder("trust", "init", "--accept-first"), 3, "keys.dan: the same key as 'carol'")
    refused(here.verify(), 11, "nobody has accepted this policy on this machine")


def test_an_image_of_no_scope(here: Project) -> None:
    here.policy(scopes='  - {repositories: ["registry.example/acme/*"], role: image}\n')
    here.accept()
    here.sign("carol")
    ran = here.verify()
    refused(ran, 11, "image: out-of-scope: no scope in trust.yaml has")
    assert "builder trust new begins a version of trust.yaml that can have it" in ran.err


# --- of versions ----------------------------------------------------------------------------------


def two(here: Project, *signers: str, **given: Any) -> None:
    """A version 2 above an accepted version 1, for an image that Carol signed."""
    here.policy()
    here.accept()
    here.sign("carol")
    assert here.verify().status == 0
    here.policy(*signers, version=2, **given)


BROKEN: dict[str, tuple[Callable[[Project], None], int, str]] = {
    "the old threshold": (
        lambda h: two(h, "ada"), 11,
        "signed by 1 of 2 root keys of version 1, which was accepted before it",
    ),
    "keys of the new root alone": (
        lambda h: two(h, "carol", "dan", root="{keys: [carol, dan], threshold: 2}"), 11,
        "signed by 0 of 2 root keys of version 1, which was accepted before it",
    ),
    "keys of the old root alone": (
        lambda h: two(h, root="{keys: [carol, dan], threshold: 2}"), 11,
        "signed by 0 of 2 root keys of its own",
    ),
    "one key of the root as two lines": (
        lambda h: two(h, "ada", "ada"), 11, "signed by 1 of 2 root keys of version 1",
    ),
    "signatures of another kind": (
        lambda h: two(h, kind=WAIVER_TYPE), 11, "signed by 0 of 2 root keys of version 1",
    ),
    "signatures as a statement": (
        lambda h: two(h, kind=IN_TOTO), 11, "signed by 0 of 2 root keys of version 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_next_version_that_lacks_a_threshold(case: str, here: Project) -> None:
    spoil, status, message = BROKEN[case]
    spoil(here)
    refused(here.verify(), status, f"trust.yaml: {message}")


def test_a_version_that_follows_is_accepted(here: Project) -> None:
    """The control of the cases above."""
    two(here)
    assert here.verify().status == 0


def test_a_version_that_was_accepted_before_is_not_gone_back_to(here: Project) -> None:
    """What was stolen since is revoked in version 2: whoever has the key brings version 1 along."""
    here.policy()
    old = {name: (here.directory / name).read_bytes() for name in (FILE, BESIDE)}
    two(here, keys={"carol": key_entry("carol", state="revoked")})
    refused(here.verify(), 11, "image: revoked")
    for name, data in old.items():
        (here.directory / name).write_bytes(data)
    refused(here.verify(), 11, "trust.yaml: version 1, and version 2 was accepted here")
    (here.directory / FILE).unlink()
    refused(here.verify(), 11, "trust.yaml: gone, and version 2 of it was accepted here")


def test_another_text_of_the_version_that_was_accepted(here: Project) -> None:
    here.policy()
    here.accept()
    here.sign("dan", "mallory")
    here.policy(threshold=2)
    refused(here.verify(), 11, "version 1 with another text than the one accepted here")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}\n", f"{BESIDE}:1: not a DSSE envelope"),
        (b"\n\nnonsense\n", f"{BESIDE}:3: not JSON"),
        (b'{"payload":1,"payload":2}\n', f"{BESIDE}:1: duplicate key 'payload'"),
        (b"{}\n" * 257, f"{BESIDE}: 257 signatures, the limit is 256"),
        (b" " * (5 << 20), f"{BESIDE}: "),
    ],
    ids=["no envelope", "no JSON", "a key twice", "a flood", "without end"],
)
def test_signatures_of_the_policy_that_are_damaged(
    data: bytes, message: str, here: Project
) -> None:
    two(here)
    (here.directory / BESIDE).write_bytes(data)
    ran = here.verify()
    refused(ran, ran.status, message)
    assert ran.status in {3, 10}


# --- of clocks ------------------------------------------------------------------------------------


def test_a_policy_that_is_over(here: Project) -> None:
    here.policy(expires=day(0))
    here.accept()
    here.sign("carol")
    assert here.verify().status == 0
    here.policy(version=2, expires=day(-1))
    refused(here.verify(), 12, f"trust.yaml: version 2 expired on {day(-1)}")


@pytest.mark.parametrize(
    ("today", "status", "message"),
    [
        (date(1970, 1, 1), 12, f"'carol' is good from {day(-1)} to {day(1)}"),
        (date(9999, 12, 31), 12, f"trust.yaml: version 1 expired on {day(200)}, and it is 9999-12"),
    ],
)
def test_a_machine_whose_clock_is_wrong(
    today: date, status: int, message: str, here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.policy(keys={"carol": key_entry("carol", f"since: {day(-1)}", f"until: {day(1)}")})
    here.accept()
    here.sign("carol")
    assert here.verify().status == 0
    monkeypatch.setattr(site, "today", lambda: today)
    refused(here.verify(), status, message)


def test_the_time_that_a_statement_claims_revives_no_key(here: Project) -> None:
    """Whoever has a key writes any time: nothing is believed of it."""
    here.policy(keys={"carol": key_entry("carol", LATE)})
    here.accept()
    for payload in (
        said(here.world.image.digest, predicate={"signedOn": "2020-01-01T00:00:00Z"}),
        said(here.world.image.digest),
    ):
        bare = Envelope(payload_type=IN_TOTO, payload=payload)
        made = (Signature(keyid="", sig=signer("carol").sign(bare.signed)),)
        in_bundle(here.world, Envelope(payload_type=IN_TOTO, payload=payload, signatures=made))
    refused(here.verify(), 12, f"'carol' is good to {day(-1)}")


# --- what is told of keys that do not count -------------------------------------------------------


def test_who_vouches_are_the_keys_that_count(here: Project) -> None:
    """That of an image a revoked key says the same makes it neither better nor worse."""
    here.policy(keys={"dan": key_entry("dan", state="revoked")})
    here.accept()
    here.sign("carol", "dan", "bob")
    ran = here.verify("--json")
    assert ran.status == 0, ran.err
    carol, dan = public("carol").fingerprint, public("dan").fingerprint
    assert {tuple(keys) for keys in ran.json["claims"].values()} == {(carol,)}
    assert ran.json["remarks"] == [f"'dan' ({dan}) is revoked: not counted"]
    assert f"  'dan' ({dan}) is revoked: not counted" in here.verify().out.splitlines()


def test_that_an_image_is_grandfathered_is_told(here: Project) -> None:
    image = here.world.image.digest
    here.policy(
        keys={"dan": key_entry("dan", state="revoked")}, more=f"grandfathered: ['{image}']\n"
    )
    here.accept()
    here.sign("dan")
    ran = here.verify("--json")
    assert ran.status == 0, ran.err
    dan = public("dan").fingerprint
    assert {tuple(keys) for keys in ran.json["claims"].values()} == {(dan,)}
    assert ran.json["remarks"] == [
        f"'dan' ({dan}) is revoked, and counts: the digest is listed under 'grandfathered'"
    ]


def test_what_is_to_be_told_of_an_index_is_told(here: Project) -> None:
    here.policy(keys={"dan": key_entry("dan", state="revoked")})
    here.accept()
    here.sign("carol")
    member = replace(here.world.image, annotations=())
    here.world.set(NAME, index_of(member), OCI_INDEX)
    here.world.sign(signer("carol"), signer("dan"), image=here.world.image)
    ran = here.verify("--json")
    assert (ran.status, ran.json["image"]) == (0, str(member.digest)), ran.err
    assert ran.json["remarks"] == [f"'dan' ({public('dan').fingerprint}) is revoked: not counted"]
