"""The envelope: what is signed comes out again, and nothing else is taken for it."""

import json
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import BuilderError, IntegrityError
from builder.notation import envelope
from builder.notation.self_signed import self_signed
from builder.oci import OCI_INDEX, OCI_MANIFEST, Descriptor
from tests.notation.authorities import NOW
from tests.signers import p256

KEY = p256("leaf")
CHAIN = self_signed(KEY, "CN=release,O=Acme,ST=Berlin,C=DE", now=NOW, days=2)
OTHERS = self_signed(p256("other"), "CN=release,O=Acme,ST=Berlin,C=DE", now=NOW, days=2)
IMAGE = Descriptor(media_type=OCI_MANIFEST, digest=Digest.of(b"it"), size=7023)
RAW = envelope.encode(IMAGE, CHAIN, KEY, now=NOW)


def verified(raw: bytes, image: Descriptor = IMAGE) -> envelope.Signature:
    return envelope.verify(raw, image, CHAIN, at="it")


def refusal(raw: bytes, image: Descriptor = IMAGE) -> str:
    with pytest.raises(IntegrityError) as error:
        verified(raw, image)
    return error.value.message


def b64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def plain(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_the_form_is_that_of_the_specification() -> None:
    document = json.loads(RAW)
    assert json.loads(plain(document["protected"])) == {
        "alg": "ES256",
        "crit": ["io.cncf.notary.signingScheme"],
        "cty": "application/vnd.cncf.notary.payload.v1+json",
        "io.cncf.notary.signingScheme": "notary.x509",
        "io.cncf.notary.signingTime": "2027-06-15T12:30:05Z",
    }
    assert json.loads(plain(document["payload"])) == {
        "targetArtifact": {
            "mediaType": OCI_MANIFEST,
            "digest": str(IMAGE.digest),
            "size": 7023,
        }
    }
    assert [b64decode(one) for one in document["header"]["x5c"]] == list(CHAIN.certificates)
    assert len(plain(document["signature"])) == 64


def test_what_is_signed_is_verified() -> None:
    assert verified(RAW).moment == NOW
    assert envelope.encode(IMAGE, CHAIN, p256("leaf"), now=NOW) == RAW


@settings(max_examples=50)
@given(
    st.binary(max_size=8),
    st.integers(0, 2**60),
    st.sampled_from([OCI_MANIFEST, OCI_INDEX]),
    st.timedeltas(timedelta(0), timedelta(hours=11)),
)
def test_any_image_at_any_time(name: bytes, size: int, kind: str, later: timedelta) -> None:
    image = Descriptor(media_type=kind, digest=Digest.of(name), size=size)
    raw = envelope.encode(image, CHAIN, KEY, now=NOW + later)
    assert verified(raw, image).moment == (NOW + later).replace(microsecond=0)


@pytest.mark.parametrize(
    "image, told",
    [
        (Descriptor(media_type=OCI_MANIFEST, digest=Digest.of(b"x"), size=7023), "digest"),
        (Descriptor(media_type=OCI_INDEX, digest=IMAGE.digest, size=7023), "mediaType"),
        (Descriptor(media_type=OCI_MANIFEST, digest=IMAGE.digest, size=7024), "size"),
    ],
)
def test_another_image_is_not_the_signed_one(image: Descriptor, told: str) -> None:
    assert f"targetArtifact.{told}: another image" in refusal(RAW, image)


def test_every_byte_counts() -> None:
    """But for the header that is not signed, whose one part that matters is compared."""
    start = RAW.index(b'"io.cncf.notary.signingAgent"')
    free = range(start, RAW.index(b",", start))
    for place in (place for place in range(len(RAW)) if place not in free):
        for flip in (0x01, 0x20):
            spoilt = bytearray(RAW)
            spoilt[place] ^= flip
            with pytest.raises(IntegrityError):
                verified(bytes(spoilt))


def changed(**changes: Any) -> bytes:
    return json.dumps(json.loads(RAW) | changes).encode()


def without(name: str) -> bytes:
    document = json.loads(RAW)
    del document[name]
    return json.dumps(document).encode()


def signed(
    protected: Any = None, payload: Any = None, *, raw_payload: bytes | None = None
) -> bytes:
    """An envelope of the key with another content, and a good signature over it."""
    document = json.loads(RAW)
    if protected is not None:
        header = json.loads(plain(document["protected"])) | protected
        header = {key: item for key, item in header.items() if item != "gone"}
        document["protected"] = b64url(json.dumps(header).encode())
    if payload is not None:
        document["payload"] = b64url(json.dumps(payload).encode())
    if raw_payload is not None:
        document["payload"] = b64url(raw_payload)
    message = f"{document['protected']}.{document['payload']}".encode()
    r, s = decode_dss_signature(KEY.sign(message))
    document["signature"] = b64url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return json.dumps(document).encode()


TARGET = json.loads(plain(json.loads(RAW)["payload"]))["targetArtifact"]
X5C = [b64encode(one).decode() for one in CHAIN.certificates]
WRONG: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "not JSON"),
    "a list": (lambda: b"[]", "expected an object with the keys"),
    "a key twice": (lambda: RAW.replace(b'{"header"', b'{"payload":"","header"', 1), "payload"),
    "a key more": (lambda: changed(extra=1), "expected an object with the keys"),
    "no signature": (lambda: without("signature"), "expected an object with the keys"),
    "too large": (lambda: b" " * (envelope.LIMIT + 1), "the limit is"),
    "the compact form": (lambda: b'"a.b.c"', "expected an object"),
    "no header": (lambda: changed(header=None), "expected x5c"),
    "no certificates": (lambda: changed(header={}), "expected x5c"),
    "none in the list": (lambda: changed(header={"x5c": []}), "other certificates"),
    "more certificates": (lambda: changed(header={"x5c": X5C * 2}), "other certificates"),
    "certificates of another": (
        lambda: changed(header={"x5c": [b64encode(OTHERS.certificates[0]).decode()]}),
        "other certificates",
    ),
    "a number for a certificate": (lambda: changed(header={"x5c": [1]}), "x5c[0]: not base64"),
    "no base64 there": (lambda: changed(header={"x5c": ["%"]}), "x5c[0]: not base64"),
    "an umlaut there": (lambda: changed(header={"x5c": ["ä"]}), "x5c[0]: not base64"),
    "a short signature": (lambda: changed(signature=b64url(b"x" * 63)), "64 bytes, got 63"),
    "a DER signature": (
        lambda: changed(signature=b64url(KEY.sign(b"x"))),
        "signature: expected 64 bytes",
    ),
    "zeros": (lambda: changed(signature=b64url(bytes(64))), "not a signature of SHA256:"),
    "a signature with padding": (
        lambda: changed(signature=json.loads(RAW)["signature"] + "=="),
        "not base64url in its one spelling",
    ),
    "an umlaut for a signature": (lambda: changed(signature="ä"), "not base64url"),
    "a number for a signature": (lambda: changed(signature=1), "not base64url"),
    "another payload": (
        lambda: changed(payload=b64url(b"{}")),
        "not a signature of SHA256:",
    ),
    "no algorithm": (lambda: signed({"alg": "none"}), "protected.alg: expected 'ES256'"),
    "a keyed hash": (lambda: signed({"alg": "HS256"}), "protected.alg: expected 'ES256'"),
    "nothing critical": (lambda: signed({"crit": []}), "protected.crit: expected"),
    "no crit": (lambda: signed({"crit": "gone"}), "protected: expected an object with the keys"),
    "something critical more": (
        lambda: signed({"crit": ["io.cncf.notary.signingScheme", "x"], "x": 1}),
        "protected: expected an object with the keys",
    ),
    "an authority for time": (
        lambda: signed({"io.cncf.notary.signingScheme": "notary.x509.signingAuthority"}),
        "signingScheme: expected 'notary.x509'",
    ),
    "another content type": (lambda: signed({"cty": "text/plain"}), "protected.cty"),
    "not a moment": (lambda: signed({envelope._TIME: "yesterday"}), "no moment: 'yesterday'"),
    "a moment without a zone": (
        lambda: signed({envelope._TIME: "2027-06-15T12:00:00"}),
        "no moment",
    ),
    "a number for a moment": (lambda: signed({envelope._TIME: 5}), "no moment: 5"),
    "a 13th month": (lambda: signed({envelope._TIME: "2027-13-15T12:00:00Z"}), "no moment"),
    "the year 1": (
        lambda: signed({envelope._TIME: "0001-01-01T00:00:00+14:00"}),
        "no moment",
    ),
    "before its time": (
        lambda: signed({envelope._TIME: "2027-06-14T12:00:00Z"}),
        "when its certificates did not hold",
    ),
    "after its time": (
        lambda: signed({envelope._TIME: "2027-06-17T00:00:00Z"}),
        "when its certificates did not hold",
    ),
    "no target": (lambda: signed(payload={}), "payload: expected an object with the keys"),
    "two targets": (
        lambda: signed(payload={"targetArtifact": TARGET, "x": TARGET}),
        "payload: expected an object with the keys",
    ),
    "a target twice": (
        lambda: signed(
            raw_payload=b'{"targetArtifact":{},"targetArtifact":%s}' % json.dumps(TARGET).encode()
        ),
        "targetArtifact",
    ),
    "a target of another form": (
        lambda: signed(payload={"targetArtifact": [TARGET]}),
        "targetArtifact: expected the keys",
    ),
    "a target without a size": (
        lambda: signed(payload={"targetArtifact": TARGET | {"size": True}}),
        "targetArtifact.size",
    ),
    "a target with a size of another type": (
        lambda: signed(payload={"targetArtifact": TARGET | {"size": 7023.0}}),
        "targetArtifact.size",
    ),
    "a target with a platform": (
        lambda: signed(payload={"targetArtifact": TARGET | {"platform": {}}}),
        "targetArtifact: expected the keys",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_signature_of_the_image_is_refused(name: str) -> None:
    make, told = WRONG[name]
    assert told in refusal(make())


def test_what_notation_writes_otherwise_is_read() -> None:
    """A zone, fractions, metadata of the user's, another agent, a timestamp that proves nothing."""
    raw = signed(
        {envelope._TIME: "2027-06-15T14:30:05.25+02:00"},
        {"targetArtifact": TARGET | {"annotations": {"team": "a"}}},
    )
    document = json.loads(raw)
    document["header"] |= {
        "io.cncf.notary.signingAgent": "notation/1.3.2",
        "io.cncf.notary.timestampSignature": "AA==",
    }
    moment = verified(json.dumps(document, indent=1).encode()).moment
    assert moment == datetime(2027, 6, 15, 12, 30, 5, 250_000, tzinfo=UTC)


FIELDS = st.sampled_from(["header", "payload", "protected", "signature", "x5c"])
ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(FIELDS, inner),
    max_leaves=12,
)


@settings(max_examples=60)
@given(ANYTHING)
def test_any_json_is_refused_and_nothing_else(document: Any) -> None:
    with pytest.raises(BuilderError):
        verified(json.dumps(document).encode())
