"""Every parser of what is signed, and of what signs: whatever it is given, it reads it or says in
its own words why not, and soon."""

from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builder.attest import dsse, statement
from builder.attest.dsse import IN_TOTO, Envelope
from builder.errors import LINE_LIMIT, BuilderError
from builder.keys.private import is_encrypted, read_private_key
from builder.keys.public import read_public_key
from builder.oci import Descriptor, Manifest, parse_document
from builder.signatures.publish import Signable, publish
from builder.sigstore import bundle, carriers, listing, simple_signing
from builder.sigstore.listing import Form
from builder.trust.codec import read_policy
from builder.trust.signatures import read_signatures
from builder.verification.chain import layers_of
from tests.keys.samples import ED25519, P256
from tests.signatures.conftest import IMAGES
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import provenance
from tests.signers import p256
from tests.soon import within
from tests.trust.keys import policy_text, public, signatures, signer

IMAGE = IMAGES[0].manifest.descriptor
LIMIT = 2.0
"""Seconds that one input may take."""


def _place() -> MemoryPlace:
    place = MemoryPlace()
    wanted = Signable(image=IMAGE, reference="r.example/a:t", statements=(provenance(IMAGE),))
    publish([wanted], p256(), place)
    return place


PLACE = _place()
PAYLOAD = statement.envelope(provenance(IMAGE)).payload
POLICY = policy_text().encode()
INDEX = PLACE.tags[carriers.referrers_tag(IMAGE.digest)].raw
SIG = PLACE.tags[carriers.signature_tag(IMAGE.digest)].raw
BUNDLE = next(
    raw for raw in PLACE.blobs.values() if bundle.MEDIA_TYPE.encode() in raw and b"sig" in raw
)
ENVELOPE = dsse.encode(bundle.parse(BUNDLE, at="x").envelope)


def read_statement(raw: bytes) -> object:
    found = statement.parse(Envelope(payload_type=IN_TOTO, payload=raw), at="x")
    try:
        return layers_of(found.predicate, at="x")
    except BuilderError:
        return found


def read_listing(raw: bytes) -> object:
    document = parse_document(raw, media_type=None, at="x")
    entry = Descriptor(media_type="t/x", digest=IMAGE.digest, size=1)
    for form in Form:
        try:
            more = listing.extended(document, [entry], form, at="x")
            assert listing.lacking(more, [entry], form, at="x") == ()
        except BuilderError:
            continue
    for layer in document.layers if isinstance(document, Manifest) else ():
        if layer.media_type == carriers.SIMPLE_SIGNING:
            carriers.simple_signature(layer, at="x")
    return document


def read_private(raw: bytes) -> object:
    is_encrypted(raw, at="x")
    return read_private_key(raw, at="x", password=lambda: b"x", allow_plaintext=True)


BOX = (
    b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n"
    b"eyJrZGYiOnsibmFtZSI6InNjcnlwdCIsInBhcmFtcyI6eyJOIjoxLCJyIjo4LCJwIjoxfX19\n"
    b"-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"
)
"""Of no cost that anybody takes, so that nothing is derived of it: a third of a second each."""
PARSERS: dict[str, tuple[Callable[[bytes], object], tuple[bytes, ...]]] = {
    "envelope": (lambda raw: dsse.parse(raw, at="x"), (ENVELOPE,)),
    "bundle": (lambda raw: bundle.parse(raw, at="x"), (BUNDLE,)),
    "statement": (read_statement, (PAYLOAD,)),
    "simple signing": (
        lambda raw: simple_signing.parse(raw, at="x"),
        (PLACE.added[0].blobs[1],),
    ),
    "listing": (read_listing, (INDEX, SIG)),
    "policy": (read_policy, (POLICY,)),
    "signatures of a policy": (
        lambda raw: read_signatures(raw, file="f"),
        (signatures(POLICY, "ada", "bob") or b"",),
    ),
    "public key": (
        lambda raw: read_public_key(raw, at="x"),
        (public("ada").pem, public("carol").openssh),
    ),
    "private key": (read_private, (P256.plaintext_pem(), ED25519.plaintext_pem(), BOX)),
}
PIECES = (
    b"", b"\0", b"\n", b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"true", b"-1", b"1e999",
    b"0" * 5000, b"1.5", b'"\\ud800"', b"\xff\xfe", b"\xef\xbb\xbf", "é\u2028".encode(), b"{" * 500,
    b"[" * 20_000, b'{"a":' * 2000, b"&a [*a,*a]", b"!!python/object:os.system", b"? {}", b"<<: *a",
    b"-----BEGIN ", b"=", b"A" * 70_000, b"sha256:", b"\x1b[2J",
)  # fmt: skip
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1), st.sampled_from([0, 0, 1, 1, 2, 8, 60, 400]), st.sampled_from(PIECES)
    ),
    max_size=4,
)
"""Where something goes, how many bytes it takes the place of, and what it is."""


def refusal(read: Callable[[bytes], object], data: bytes) -> str:
    """What is said of them, where they are refused. Another error than ours is not caught."""
    try:
        read(data)
    except BuilderError as error:
        return error.message
    return ""


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=120)
@given(number=st.integers(0, 2), edits=EDITS, raw=st.none() | st.binary(max_size=200))
@example(number=0, edits=[(0.0, 10_000, b"[" * 200_000)], raw=None)
@example(number=0, edits=[(0.0, 10_000, b'{"a":' * 100_000)], raw=None)
@example(number=0, edits=[(0.0, 10_000, b"1" * 5_000_000)], raw=None)
@example(number=0, edits=[(0.0, 10_000, b'"' + b"\\u0041" * 500_000 + b'"')], raw=None)
@example(number=0, edits=[(0.0, 10_000, b"a: " * 20_000)], raw=None)
@example(number=0, edits=[(0.0, 10_000, b"- " * 30_000)], raw=None)
@example(number=0, edits=[(0.5, 1, b"A" * 3_000_000)], raw=None)
@example(number=0, edits=[(0.0, 10_000, b"-----BEGIN PUBLIC KEY-----\n" * 500)], raw=None)
def test_it_is_read_or_refused_and_soon(
    name: str, number: int, edits: list[tuple[float, int, bytes]], raw: bytes | None
) -> None:
    read, samples = PARSERS[name]
    data = samples[number % len(samples)] if raw is None else raw
    for where, length, piece in edits:
        at = int(where * len(data))
        data = data[:at] + piece + data[at + length :]
    with within(LIMIT):
        message = refusal(read, data)
    assert len(message) < 2 * LINE_LIMIT
    assert message.startswith(("x", "f", "trust.yaml")) or not message


@pytest.mark.parametrize("name", PARSERS)
def test_what_the_damage_is_done_to_is_read(name: str) -> None:
    read, samples = PARSERS[name]
    for sample in samples:
        if sample is not BOX:
            read(sample)


@pytest.mark.parametrize("first", [0, 1, 2, 3, 5, 6, 255])
def test_a_point_of_another_form_is_refused(first: int) -> None:
    """Found by ten thousand inputs a parser: OpenSSH's reader has an error of its own for it."""
    kind, blob = public("ada").openssh.split()
    raw = bytearray(b64decode(blob))
    assert raw[-65] == 4
    raw[-65] = first
    with pytest.raises(BuilderError, match="x: not a public key: "):
        read_public_key(kind + b" " + b64encode(bytes(raw)) + b"\n", at="x")
    body = b64encode(bytes(openssh_private(first))).decode()
    block = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n"
    with pytest.raises(BuilderError, match="x: not a private key"):
        read_private(block.encode())


def openssh_private(first: int) -> bytes:
    """What OpenSSH keeps of a key, with points that begin with this byte."""
    pem = signer("ada").key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    inner = b64decode(b"".join(pem.splitlines()[1:-1]))
    point = b64decode(public("ada").openssh.split()[1])[-65:]
    assert inner.count(point) == 2
    return inner.replace(point, bytes([first]) + point[1:])
