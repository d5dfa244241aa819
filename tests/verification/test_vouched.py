"""Signatures are checked before what they say is read, and keys are counted, never signatures."""

import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from builder.attest import dsse, statement
from builder.attest.dsse import Envelope
from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.oci import OCI_MANIFEST, Descriptor
from builder.signatures.collect import collect
from builder.signatures.found import Found, Kind
from builder.signatures.publish import Signable, publish
from builder.sigstore import simple_signing
from builder.sigstore.simple_signing import SimpleSigning
from builder.verification.vouched import by_repository, examine
from tests.signatures.memory_place import MemoryPlace
from tests.signers import MemorySigner, ed, p256

IMAGE, OTHER = Digest.of(b"image"), Digest.of(b"other")
ME, YOU = p256(), ed()
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def said(kind: str = "urn:test", image: Digest = IMAGE) -> Statement:
    return Statement(
        subjects=(Subject(name="x", digest=image),), predicate_type=kind, predicate={"a": 1}
    )


def found(envelope: Envelope, signer: MemorySigner, *, hint: str | None = None) -> Found:
    return Found(
        kind=Kind.BUNDLE,
        image=IMAGE,
        signed=envelope.signed,
        signature=signer.sign(envelope.signed),
        hint=signer.public.fingerprint if hint is None else hint,
        at="there",
        envelope=envelope,
    )


def stated(**fields: object) -> Envelope:
    document = {**json.loads(statement.envelope(said()).payload), **fields}
    return Envelope(payload_type=dsse.IN_TOTO, payload=json.dumps(document).encode())


GOOD = statement.envelope(said())


def test_what_two_keys_sign_is_vouched_for_by_both_once() -> None:
    examined = examine(
        [found(GOOD, ME), found(GOOD, YOU), found(GOOD, ME)], [ME.public, YOU.public, ME.public]
    )
    (vouched,) = examined.vouched
    assert vouched.said == said()
    assert vouched.keys == (ME.public, YOU.public)
    assert (examined.doubtful, examined.strangers) == ((), 0)


def test_a_second_signature_of_one_key_is_no_second_key() -> None:
    """Anybody makes (r, n - s) of (r, s)."""
    first = found(GOOD, ME)
    r, s = decode_dss_signature(first.signature)
    second = replace(first, signature=encode_dss_signature(r, ORDER - s))
    assert second.made_by(ME.public)
    (vouched,) = examine([first, second], [ME.public]).vouched
    assert vouched.keys == (ME.public,)


def test_what_differs_by_a_byte_needs_its_own_keys() -> None:
    spaced = Envelope(payload_type=dsse.IN_TOTO, payload=GOOD.payload + b"\n")
    examined = examine([found(GOOD, ME), found(spaced, YOU)], [ME.public, YOU.public])
    assert [item.keys for item in examined.vouched] == [(ME.public,), (YOU.public,)]


def test_a_key_that_is_not_ours_vouches_for_nothing() -> None:
    examined = examine([found(GOOD, YOU)], [ME.public])
    assert examined.vouched == ()
    assert (examined.doubtful, examined.strangers) == ((), 1)


@pytest.mark.parametrize("hint", [ME.public.fingerprint, ME.public.hint])
def test_a_signature_in_our_name_that_is_not_ours_is_told(hint: str) -> None:
    examined = examine([found(GOOD, YOU, hint=hint)], [ME.public])
    assert examined.vouched == ()
    assert examined.doubtful == (f"there: not a signature of {ME.public.fingerprint}",)


def test_a_hint_decides_nothing() -> None:
    for hint in ("", "nonsense", YOU.public.fingerprint):
        (vouched,) = examine([found(GOOD, ME, hint=hint)], [ME.public]).vouched
        assert vouched.keys == (ME.public,)


@pytest.mark.parametrize(
    ("envelope", "why"),
    [
        (Envelope(payload_type="text/plain", payload=GOOD.payload), "payload type"),
        (stated(_type="https://in-toto.io/Statement/v0.9"), "expected a https"),
        (stated(subject=[{"digest": {"sha256": OTHER.hex}}]), "about another image"),
        (stated(subject=[{"digest": {"sha512": "0" * 128}}]), "no sha256"),
        (stated(subject=[]), "subjects"),
        (stated(predicateType=None), "predicateType"),
        (Envelope(payload_type=dsse.IN_TOTO, payload=b"no json"), "JSON"),
        (
            Envelope(payload_type=dsse.IN_TOTO, payload=GOOD.payload[:-1] + b',"subject":[]}'),
            "subject",
        ),
    ],
)
def test_what_is_signed_and_says_something_else_is_told_and_not_believed(
    envelope: Envelope, why: str
) -> None:
    examined = examine([found(envelope, ME)], [ME.public])
    assert examined.vouched == ()
    (doubt,) = examined.doubtful
    assert why in doubt


def test_nothing_is_read_before_it_is_verified() -> None:
    """A payload that no parser survives is harmless as long as nobody of ours signed it."""
    bomb = Envelope(payload_type=dsse.IN_TOTO, payload=b"[" * 100_000)
    examined = examine([found(bomb, YOU)], [ME.public])
    assert (examined.doubtful, examined.strangers) == ((), 1)


def test_the_older_form_vouches_for_the_image_alone() -> None:
    for image, count in ((IMAGE, 1), (OTHER, 0)):
        payload = simple_signing.encode(SimpleSigning(reference="r.test/i:t", digest=image))
        item = Found(
            kind=Kind.SIMPLE_SIGNING,
            image=IMAGE,
            signed=payload,
            signature=ME.sign(payload),
            hint="",
            at="there",
        )
        examined = examine([item], [ME.public])
        assert len(examined.vouched) == count
        assert [item.predicate_type for item in examined.vouched] == [None] * count
        assert len(examined.doubtful) == 1 - count


@pytest.mark.parametrize("older", [True, False], ids=["mine is the older form", "yours is"])
def test_keys_that_sign_the_image_in_different_forms_add_up(older: bool) -> None:
    """What one key signed as cosign 2 does, and another as cosign 3 does."""
    mine, yours = MemoryPlace(), MemoryPlace()
    target = Descriptor(media_type=OCI_MANIFEST, digest=IMAGE, size=5)
    for place, signer in ((mine, ME), (yours, YOU)):
        publish([Signable(image=target, reference="r.test/a/b:1")], signer, place)
    signatures = [
        item
        for place, wanted in ((mine, older), (yours, not older))
        for item in collect(IMAGE, place).found
        if (item.kind is Kind.SIMPLE_SIGNING) == wanted
    ]
    assert len(signatures) == 2
    (together,) = by_repository(IMAGE, examine(signatures, [ME.public, YOU.public]).vouched)
    assert {*together.keys} == {ME.public, YOU.public}
