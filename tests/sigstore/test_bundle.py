"""Bundles: what cosign 3 writes is read, and nothing that two readers could read differently."""

import json
from typing import Any

import pytest

from builder.attest import dsse, statement
from builder.attest.dsse import Envelope, Signature
from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.sigstore import bundle
from builder.sigstore.bundle import BUNDLE_LIMIT, LOG_ENTRIES_LIMIT, Bundle
from tests import mutations
from tests.signers import SIGNERS, MemorySigner, p256

STATEMENT = Statement(
    subjects=(Subject(name="app", digest=Digest.of(b"image")),),
    predicate_type="https://example.com/p",
    predicate={"a": [1]},
)


def signed(signer: MemorySigner) -> Bundle:
    envelope = statement.envelope(STATEMENT)
    signature = Signature(keyid=signer.public.fingerprint, sig=signer.sign(envelope.signed))
    made = Envelope(
        payload_type=envelope.payload_type, payload=envelope.payload, signatures=(signature,)
    )
    return Bundle(envelope=made, hint=signer.public.hint)


RAW = bundle.encode(signed(p256()))
DOCUMENT: dict[str, Any] = json.loads(RAW)


def changed(**fields: Any) -> bytes:
    document = {**DOCUMENT, **fields}
    return json.dumps({key: value for key, value in document.items() if value is not ...}).encode()


def material(**fields: Any) -> bytes:
    return changed(verificationMaterial={**DOCUMENT["verificationMaterial"], **fields})


def test_the_bytes_are_canonical_and_read_back() -> None:
    one = signed(p256())
    assert bundle.parse(RAW, at="x") == one
    assert list(DOCUMENT) == ["dsseEnvelope", "mediaType", "verificationMaterial"]
    assert DOCUMENT["verificationMaterial"] == {
        "publicKey": {"hint": p256().public.hint},
        "tlogEntries": [],
    }
    assert len(p256().public.hint) == 44


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(
            changed(verificationMaterial={"publicKey": {"hint": p256().public.hint}}),
            id="no log entries, as cosign 3 writes it",
        ),
        pytest.param(material(tlogEntries=[{"logIndex": "1"}]), id="an entry of a log"),
        pytest.param(material(timestampVerificationData=None), id="no timestamps"),
        pytest.param(
            material(timestampVerificationData={"rfc3161Timestamps": []}), id="timestamps"
        ),
        pytest.param(json.dumps(DOCUMENT, indent=2).encode(), id="with blanks"),
    ],
)
def test_what_others_write_is_read(raw: bytes) -> None:
    assert bundle.parse(raw, at="x") == signed(p256())


def test_a_bundle_may_have_as_many_log_entries_as_the_limit_says() -> None:
    assert bundle.parse(material(tlogEntries=[{}] * LOG_ENTRIES_LIMIT), at="x") == signed(p256())


def test_a_bundle_that_names_no_key_has_no_hint() -> None:
    assert bundle.parse(material(publicKey={}), at="x").hint == ""


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "x: not JSON"),
        (b"7", "x: not a Sigstore bundle: expected an object"),
        (b" " * (BUNDLE_LIMIT + 1), f"the limit is {BUNDLE_LIMIT}"),
        (b"[" * 200_000, "x: not JSON"),
        (
            changed(mediaType="application/vnd.dev.sigstore.bundle+json;version=0.2"),
            "x: mediaType: expected 'application/vnd.dev.sigstore.bundle.v0.3+json', got 'appl",
        ),
        (changed(mediaType=...), "x: mediaType: expected"),
        (
            changed(dsseEnvelope=..., messageSignature={"signature": "AA=="}),
            "x: the signature of a blob (messageSignature), which says nothing of what it is",
        ),
        (changed(messageSignature={}), "x: the signature of a blob"),
        (
            material(timestampVerificationData=[]),
            "x: verificationMaterial.timestampVerificationData: expected an object",
        ),
        (
            material(publicKey={"hint": 7}),
            "x: verificationMaterial.publicKey.hint: expected a text, got 7",
        ),
        (
            material(more=1),
            "expected 'publicKey', and of the rest ['publicKey', 'timestampVerificationData', '",
        ),
        (
            changed(verificationMaterial={"certificate": {"rawBytes": "AA=="}, "tlogEntries": []}),
            "x: verificationMaterial: signed by a certificate, not by a key",
        ),
        (
            changed(verificationMaterial={"x509CertificateChain": {}}),
            "x: verificationMaterial: signed by a certificate, not by a key",
        ),
        (
            material(tlogEntries=[{}] * (LOG_ENTRIES_LIMIT + 1)),
            f"x: verificationMaterial.tlogEntries: {LOG_ENTRIES_LIMIT + 1} entries, the limit is",
        ),
        (
            changed(
                dsseEnvelope={
                    **DOCUMENT["dsseEnvelope"],
                    "signatures": DOCUMENT["dsseEnvelope"]["signatures"] * 2,
                }
            ),
            "x: dsseEnvelope: 2 signatures, a bundle has exactly one",
        ),
    ],
)
def test_each_case_is_refused_with_its_own_message(raw: bytes, said: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        bundle.parse(raw, at="x")
    assert said in caught.value.message
    assert len(caught.value.message) < 400


def test_a_key_left_out_there_twice_or_unknown_is_refused() -> None:
    tolerated = {
        "verificationMaterial.publicKey.hint",
        "verificationMaterial.tlogEntries",
        "dsseEnvelope.signatures[0].keyid",
    }
    assert {path for path, raw in mutations.without(DOCUMENT) if reads(raw)} == tolerated
    assert [path for path, raw in mutations.twice(DOCUMENT) if reads(raw)] == []
    assert [path for path, raw in mutations.with_one_more(DOCUMENT) if reads(raw)] == []


def test_a_value_of_another_kind_is_refused_but_for_hints_and_what_is_signed() -> None:
    taken = {path for path, _, raw in mutations.with_another(DOCUMENT) if reads(raw)}
    assert taken == {
        "verificationMaterial.publicKey",  # {}
        "verificationMaterial.publicKey.hint",
        "dsseEnvelope.signatures[0].keyid",
        # Other bytes are signed then, or none: no key verifies it.
        "dsseEnvelope.payload",
        "dsseEnvelope.payloadType",
        "dsseEnvelope.signatures[0].sig",
    }
    for path, _, raw in mutations.with_another(DOCUMENT):
        if reads(raw) and path.startswith("dsseEnvelope.") and not path.endswith("keyid"):
            assert not verifies(raw, p256())


@pytest.mark.parametrize("kind", SIGNERS)
def test_no_flipped_bit_is_taken_but_in_what_nobody_vouches_for(kind: str) -> None:
    signer = SIGNERS[kind]("a")
    raw = bundle.encode(signed(signer))
    assert verifies(raw, signer)
    free = spans(raw, signer.public.hint, signer.public.fingerprint)
    accepted = {at for at, changed in mutations.flipped(raw) if verifies(changed, signer)}
    # Equivalent encodings: another hint, another keyid. Both are never decided on.
    assert accepted <= free
    assert len(accepted) > 40


def test_one_signature_and_no_other_number_goes_in() -> None:
    envelope = Envelope(payload_type="t", payload=b"")
    with pytest.raises(ValueError, match="takes one signature, got 0"):
        bundle.encode(Bundle(envelope=envelope, hint=""))


def reads(raw: bytes) -> bool:
    try:
        bundle.parse(raw, at="x")
    except IntegrityError:
        return False
    return True


def verifies(raw: bytes, signer: MemorySigner) -> bool:
    try:
        parsed = bundle.parse(raw, at="x")
    except IntegrityError:
        return False
    (signature,) = parsed.envelope.signatures
    return signer.public.verifies(signature.sig, parsed.envelope.signed)


def spans(raw: bytes, *texts: str) -> set[int]:
    """Where these texts are."""
    found: set[int] = set()
    for text in texts:
        start = raw.index(text.encode())
        found.update(range(start, start + len(text)))
    return found


def test_an_envelope_of_the_old_form_is_no_bundle() -> None:
    with pytest.raises(IntegrityError, match="mediaType: expected"):
        bundle.parse(dsse.encode(signed(p256()).envelope), at="x")
