"""The hostile corpus of signatures: each case is refused by ``builder verify`` with its own status
and its own message.

What a reader of signatures can be shown, of the threat model:

    what is said       payloadType, _type, predicateType, subjects, keys that are there twice
    how it is written  base64, numbers of signatures, versions, certificates, bare signatures
    whose it is        hints and key ids that lie, other keys, one key as two, malleable signatures
    where it lies      another image's, another type, lists that lie, floods, indexes
    who may            tests/cli/test_corpus_policy.py: thresholds, revoked, retired, expired keys,
                       other versions of trust.yaml, clocks
    what serves it     tests/cli/test_corpus_registry.py: registries that lie about type, size and
                       digest, fail, or never end

What is pure and needs no command line has its cases in tests/attest, tests/sigstore,
tests/signatures, tests/trust and tests/verification.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from builder.attest import dsse
from builder.attest.dsse import IN_TOTO
from builder.attest.statement import STATEMENT_V1, Statement, Subject
from builder.digest import Digest
from builder.oci import OCI_INDEX, OCI_MANIFEST, Descriptor, Manifest
from builder.signatures.place import BLOB_LIMIT, COUNT_LIMIT
from builder.signatures.publish import SIGNED, Signable, publish
from builder.sigstore import bundle, carriers, simple_signing
from builder.sigstore.simple_signing import SimpleSigning
from builder.statements import PREDICATE_TYPES
from builder.statements import Kind as Statements
from tests.cli.conftest import Builder, Ran
from tests.cli.signed_world import (
    CARRIERS,
    ME,
    NAME,
    REFERENCE,
    World,
    as_bundle,
    b64,
    envelope,
    in_attachment,
    in_bundle,
    index_of,
    refused,
    said,
)
from tests.signers import ed

OTHER = ed("other")
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ANOTHER = Digest.of(b"another image")


@pytest.fixture
def verified(world: World, builder: Builder, tmp_path: Path) -> Callable[..., Ran]:
    """Run ``builder verify`` with the one key that is trusted, and more options."""
    (tmp_path / "me.pub").write_bytes(ME.public.pem)

    def call(*more: str) -> Ran:
        return builder("verify", f"oci:{world.layout}", "--key", tmp_path / "me.pub", *more)

    return call


def test_everything_that_is_signed_is_accepted(world: World, verified: Callable[..., Ran]) -> None:
    """The control: without it the cases below would prove nothing."""
    assert verified().status == 13
    world.sign(ME)
    assert verified().status == 0


# --- what is said ---------------------------------------------------------------------------------

IMAGE_SAID: dict[str, tuple[Callable[[Digest], bytes], str, str]] = {
    "another payload type": (
        said,
        "application/vnd.in-toto+JSON",
        "expected payload type application/vnd.in-toto+json, got 'application/vnd.in-toto+JSON'",
    ),
    "the type of a trust policy": (
        said,
        "application/vnd.vllm-image-builder.trust.v1+yaml",
        "got 'application/vnd.vllm-image-builder.trust.v1+yaml'",
    ),
    "no _type": (lambda i: said(i, _type=...), IN_TOTO, f"expected a {STATEMENT_V1}, got None"),
    "a _type of a version to come": (
        lambda i: said(i, _type="https://in-toto.io/Statement/v2"),
        IN_TOTO,
        "got 'https://in-toto.io/Statement/v2'",
    ),
    "a statement in a list": (lambda i: b"[%b]" % said(i), IN_TOTO, f"expected a {STATEMENT_V1}"),
    "no predicateType": (
        lambda i: said(i, predicateType=...), IN_TOTO, "predicateType: expected a text, got None",
    ),
    "an empty predicateType": (
        lambda i: said(i, predicateType=""), IN_TOTO, "predicateType: expected a text, got ''",
    ),
    "a predicateType in a list": (
        lambda i: said(i, predicateType=[SIGNED]), IN_TOTO, "predicateType: expected a text, got [",
    ),
    "a predicate that is a text": (
        lambda i: said(i, predicate="yes"), IN_TOTO, "predicate: expected an object",
    ),
    "no subject": (lambda i: said(i, subject=...), IN_TOTO, "subject: expected 1 to 64 subjects"),
    "subjects of nothing": (lambda i: said(i, subject=[]), IN_TOTO, "expected 1 to 64 subjects"),
    "more subjects than anybody reads": (
        lambda i: said(i, subject=[{"digest": {"sha256": i.hex}}] * 65),
        IN_TOTO,
        "subject: expected 1 to 64 subjects",
    ),
    "a subject by sha512 alone": (
        lambda i: said(i, subject=[{"digest": {"sha512": "0" * 128}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a subject without digests": (
        lambda i: said(i, subject=[{"name": str(i), "digest": {}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a subject of whose digests one is empty": (
        lambda i: said(i, subject=[{"digest": {"sha256": ""}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a digest in upper case": (
        lambda i: said(i, subject=[{"digest": {"sha256": i.hex.upper()}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a digest with its algorithm": (
        lambda i: said(i, subject=[{"digest": {"sha256": str(i)}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a digest with a line end": (
        lambda i: said(i, subject=[{"digest": {"sha256": f"{i.hex}\n"}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "the second subject is malformed": (
        lambda i: said(i, subject=[{"digest": {"sha256": i.hex}}, {"digest": {"sha1": "0"}}]),
        IN_TOTO,
        "subject[1]: no sha256 among its digests",
    ),
    "another image": (
        lambda _: said(ANOTHER), IN_TOTO, f"{ANOTHER}",
    ),
    "another image under this one's name": (
        lambda i: said(i, subject=[{"name": str(i), "digest": {"sha256": ANOTHER.hex}}]),
        IN_TOTO,
        "but about another image than",
    ),
    "the digest twice in one set": (
        lambda i: said(i).replace(
            b'"digest": {"sha256": ', b'"digest": {"sha256": "%b", "sha256": ' % (b"0" * 64)
        ),
        IN_TOTO,
        "duplicate key 'sha256'",
    ),
    "subject twice": (
        lambda i: said(ANOTHER)[:-1] + b', "subject": [{"digest": {"sha256": "%b"}}]}'
        % i.hex.encode(),
        IN_TOTO,
        "duplicate key 'subject'",
    ),
    "subject twice, once in escapes": (
        lambda i: said(ANOTHER)[:-1] + b', "s\\u0075bject": [{"digest": {"sha256": "%b"}}]}'
        % i.hex.encode(),
        IN_TOTO,
        "duplicate key 'subject'",
    ),
    "subject twice, once in another case": (
        lambda i: said(i, Subject=[{"digest": {"sha256": ANOTHER.hex}}]),
        IN_TOTO,
        "the key 'Subject', which some readers take for 'subject'",
    ),
    "the digests of a subject twice, once in another case": (
        lambda i: said(
            i, subject=[{"digest": {"sha256": i.hex}, "Digest": {"sha256": ANOTHER.hex}}]
        ),
        IN_TOTO,
        "the key 'Digest', which some readers take for 'digest'",
    ),
    "predicateType twice": (
        lambda i: said(i)[:-1] + b', "predicateType": "x"}', IN_TOTO,
        "duplicate key 'predicateType'",
    ),
    "a key twice deep in the predicate": (
        lambda i: said(i).replace(b'"predicate": {}', b'"predicate": {"a": {"b": 1, "b": 2}}'),
        IN_TOTO,
        "duplicate key 'b'",
    ),
    "something behind the statement": (lambda i: said(i) + b"{}", IN_TOTO, "not JSON: Extra data"),
    "no JSON": (lambda _: b"signed", IN_TOTO, "not JSON: Expecting value"),
    "nothing": (lambda _: b"", IN_TOTO, "not JSON: Expecting value"),
    "UTF-16": (lambda i: said(i).decode().encode("utf-16"), IN_TOTO, "not JSON: 'utf-8' codec"),
    "a mark of byte order": (lambda i: b"\xef\xbb\xbf" + said(i), IN_TOTO, "not JSON: Unexpected"),
    "half of a surrogate pair": (
        lambda i: said(i, predicate={"a": "\ud800"}), IN_TOTO, "not JSON: 'utf-8' codec",
    ),
    "not a number": (
        lambda i: said(i, predicate={"a": float("nan")}), IN_TOTO, "NaN is not JSON",
    ),
    "nested without end": (lambda _: b"[" * 200_000, IN_TOTO, "not JSON: "),
    "a number without end": (lambda _: b"1" * 10_000, IN_TOTO, "not JSON: Exceeds the limit"),
    "a text without end where a type is": (
        lambda i: said(i, _type="x" * 1_000_000), IN_TOTO, f"expected a {STATEMENT_V1}, got 'xxx",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "carrier"),
    [
        (case, carrier)
        for number, case in enumerate(IMAGE_SAID)
        for carrier in CARRIERS
        if carrier == "bundle" or number % 5 == 0  # it is the same reader
    ],
)
def test_what_a_trusted_key_signed_and_no_image_is_said_to_be(
    case: str, carrier: str, world: World, verified: Callable[..., Ran]
) -> None:
    payload, kind, message = IMAGE_SAID[case]
    CARRIERS[carrier](world, envelope(payload(world.image.digest), ME, kind=kind))
    ran = verified()
    refused(ran, 10, message)
    assert ": no signature that holds: " in ran.err


# --- how it is written ----------------------------------------------------------------------------


def good(world: World) -> dict[str, Any]:
    """A bundle that the trusted key signed, as a document."""
    document: dict[str, Any] = json.loads(
        as_bundle(envelope(said(world.image.digest), ME), hint=ME.public.hint)
    )
    return document


def spelt(change: Callable[[str], str]) -> Callable[[dict[str, Any]], None]:
    """The payload's base64 in another spelling, which a lenient reader takes for the same."""

    def spell(document: dict[str, Any]) -> None:
        envelope = document["dsseEnvelope"]
        before = envelope["payload"]
        envelope["payload"] = change(before)
        assert envelope["payload"] != before

    return spell


def slack(text: str) -> str:
    """With a bit set that no byte is made of."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = text.rstrip("=")
    assert body != text
    return body[:-1] + letters[letters.index(body[-1]) | 1] + text[len(body) :]


def both(document: dict[str, Any]) -> None:
    document["dsseEnvelope"]["signatures"] *= 2


def without_signature(document: dict[str, Any]) -> None:
    document["dsseEnvelope"]["signatures"] = []


def many(document: dict[str, Any]) -> None:
    document["dsseEnvelope"]["signatures"] *= 33


USUAL = "payload: not the usual spelling of its base64"
ENVELOPES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "base64 without padding": (spelt(lambda t: t.rstrip("=")), "payload: not base64"),
    "base64 with padding twice": (spelt(lambda t: t + "===="), "payload: not base64"),
    "base64 for URLs": (
        spelt(lambda t: t.replace("/", "_").replace("+", "-")), "payload: not base64",
    ),
    "base64 in lines": (spelt(lambda t: t[:76] + "\n" + t[76:]), "payload: not base64"),
    "base64 with a blank": (spelt(lambda t: " " + t), "payload: not base64"),
    "base64 with unused bits": (spelt(slack), USUAL),
    "base64 in other letters": (spelt(lambda t: "\uff21" + t[1:]), "payload: not base64"),
    "a payload that is no text": (
        lambda d: d["dsseEnvelope"].update(payload=[1]), "payload: not base64",
    ),
    "a signature for URLs": (
        lambda d: d["dsseEnvelope"]["signatures"][0].update(sig="_-=="),
        "signatures[0].sig: not base64",
    ),
    "no signature": (without_signature, "an envelope without signatures"),
    "33 signatures": (many, "33 signatures, the limit is 32"),
    "no payloadType": (
        lambda d: d["dsseEnvelope"].pop("payloadType"), "not a DSSE envelope: expected the keys",
    ),
    "a key too many": (
        lambda d: d["dsseEnvelope"].update(payloadtype=IN_TOTO), "expected the keys",
    ),
    "a key id that is a number": (
        lambda d: d["dsseEnvelope"]["signatures"][0].update(keyid=7),
        "signatures[0].keyid: expected a text",
    ),
}  # fmt: skip


def padded(world: World) -> dict[str, Any]:
    """As :func:`good`, of a payload whose base64 has padding, "+" and "/"."""
    for number in range(300):
        signed = envelope(said(world.image.digest, predicate={"???>>>": "x" * number}), ME)
        document: dict[str, Any] = json.loads(as_bundle(signed, hint=ME.public.hint))
        text = document["dsseEnvelope"]["payload"]
        if text.endswith("=") and "/" in text and "+" in text:
            return document
    raise AssertionError("no payload has such an encoding")


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("case", ENVELOPES)
def test_an_envelope_that_two_readers_could_read_differently(
    case: str, carrier: str, world: World, verified: Callable[..., Ran]
) -> None:
    change, message = ENVELOPES[case]
    document = padded(world)
    change(document)
    if carrier == "bundle":
        world.refer(json.dumps(document).encode())
    else:
        world.att(json.dumps(document["dsseEnvelope"]).encode())
    ran = verified()
    refused(ran, 13, message)
    assert "nobody signed it; an attachment cannot be read: " in ran.err


def test_that_envelope_is_good_before_it_is_spoilt(
    world: World, verified: Callable[..., Ran]
) -> None:
    world.refer(json.dumps(padded(world)).encode())
    refused(verified(), 13, "no manifest statement of a key that is trusted")


BUNDLES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "two signatures in one envelope": (both, "2 signatures, a bundle has exactly one"),
    "another version": (
        lambda d: d.update(mediaType="application/vnd.dev.sigstore.bundle.v0.4+json"),
        "mediaType: expected 'application/vnd.dev.sigstore.bundle.v0.3+json'",
    ),
    "a certificate": (
        lambda d: d["verificationMaterial"].update(certificate={"rawBytes": ""}),
        "signed by a certificate, not by a key",
    ),
    "a bare signature, too": (
        lambda d: d.update(messageSignature={}), "the signature of a blob (messageSignature)",
    ),
    "no material": (lambda d: d.pop("verificationMaterial"), "expected the keys"),
    "a key that nobody knows": (lambda d: d.update(dsseenvelope=1), "expected the keys"),
    "log entries without end": (
        lambda d: d["verificationMaterial"].update(tlogEntries=[{}] * 33),
        "tlogEntries: 33 entries, the limit is 32",
    ),
    "names in another case": (
        lambda d: d.update(dsse_envelope=d.pop("dsseEnvelope")), "expected the keys",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BUNDLES)
def test_a_bundle_that_is_none(case: str, world: World, verified: Callable[..., Ran]) -> None:
    change, message = BUNDLES[case]
    document = good(world)
    change(document)
    world.refer(json.dumps(document).encode())
    refused(verified(), 13, message)


@pytest.mark.parametrize("key", ["payload", "payloadType", "signatures", "sig", "mediaType"])
def test_a_key_that_is_there_twice(key: str, world: World, verified: Callable[..., Ran]) -> None:
    raw = json.dumps(good(world)).encode()
    place = raw.index(b'"%b"' % key.encode())
    world.refer(raw[:place] + b'"%b": 1, ' % key.encode() + raw[place:])
    refused(verified(), 13, f"duplicate key {key!r}")


SIMPLE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "another type": (
        lambda p: p.replace(b"cosign container image", b"cosign any"), "critical.type: expected",
    ),
    "another image": (lambda p: p, "but about another image than"),
    "a digest in upper case": (
        lambda p: p.replace(ANOTHER.hex.encode(), ANOTHER.hex.upper().encode()), "lower-case hex",
    ),
    "two images": (
        lambda p: p.replace(
            b'"image":{', b'"image":{"docker-manifest-digest":"%b",' % str(ANOTHER).encode()
        ),
        "duplicate key 'docker-manifest-digest'",
    ),
    "a key too many": (
        lambda p: p.replace(b'"image":{', b'"images":[],"image":{'), "critical: expected the keys",
    ),
    "nothing critical": (lambda p: b"{}", "not a simple signing payload"),
    "optional is a list": (
        lambda p: p.replace(b'"optional":null', b'"optional":[]'), "optional: expected an object",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SIMPLE)
def test_a_payload_of_the_older_form_that_is_none(
    case: str, world: World, verified: Callable[..., Ran]
) -> None:
    change, message = SIMPLE[case]
    plain = simple_signing.encode(SimpleSigning(reference="r.example/i:t", digest=ANOTHER))
    payload = change(plain)
    world.sig(payload, b64(ME.sign(payload)))
    refused(verified(), 10, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"annotations": ()}, "signature: not base64", id="no signature beside it"),
        pytest.param(
            {"annotations": ((carriers.SIGNATURE, "AAA"),)}, "signature: not base64", id="cut"
        ),
        pytest.param(
            {"annotations": ((carriers.SIGNATURE, "AAAB\n"),)}, "signature: not base64", id="a line"
        ),
        pytest.param({"size": BLOB_LIMIT + 1}, f"the limit is {BLOB_LIMIT}", id="too large"),
        pytest.param({"size": 3}, " bytes, the limit is 3", id="a size that lies"),
        pytest.param({"digest": ANOTHER}, "no such blob", id="not there"),
        pytest.param({"media_type": "text/plain"}, "nobody signed it", id="another type"),
        pytest.param(
            {"media_type": carriers.DSSE_ENVELOPE}, "nobody signed it", id="the type of an envelope"
        ),
    ],
)
def test_a_layer_of_the_older_form_that_is_none(
    changes: dict[str, Any], message: str, world: World, verified: Callable[..., Ran]
) -> None:
    plain = SimpleSigning(reference="r.example/i:t", digest=world.image.digest)
    payload = simple_signing.encode(plain)
    world.sig(payload, b64(ME.sign(payload)), **changes)
    refused(verified(), 13, message)


# --- whose it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_signature_of_another_key(
    carrier: str, world: World, verified: Callable[..., Ran]
) -> None:
    signed = envelope(said(world.image.digest), OTHER)
    CARRIERS[carrier](world, signed)
    refused(verified(), 11, "no signature of a key that is trusted; 1 are of others")


@pytest.mark.parametrize("hint", [ME.public.hint, ME.public.fingerprint])
def test_a_signature_of_another_key_in_the_name_of_ours(
    hint: str, world: World, verified: Callable[..., Ran]
) -> None:
    world.refer(as_bundle(envelope(said(world.image.digest), OTHER), hint=hint))
    refused(verified(), 10, f"that holds: {world.place.at('')}".rstrip())
    refused(verified(), 10, f"not a signature of {ME.public.fingerprint}")


def test_a_key_id_in_an_envelope_that_is_not_its(
    world: World, verified: Callable[..., Ran]
) -> None:
    signed = envelope(said(world.image.digest), OTHER, keyid=ME.public.fingerprint)
    in_attachment(world, signed)
    refused(verified(), 10, f"not a signature of {ME.public.fingerprint}")


@pytest.mark.parametrize("keyid", ["", "nonsense", OTHER.public.fingerprint, "\x1b]0;x\x07"])
def test_a_key_id_decides_nothing(keyid: str, world: World, verified: Callable[..., Ran]) -> None:
    """The control of the two above: what is signed by our key is, whoever it names."""
    for statement in world.statements:
        payload = dsse.Envelope(payload_type=IN_TOTO, payload=_payload(statement)).payload
        in_attachment(world, envelope(payload, ME, keyid=keyid))
    in_bundle(world, envelope(said(world.image.digest), ME, keyid=keyid))
    assert verified().status == 0


def _payload(made: Any) -> bytes:
    from builder.attest import statement

    return statement.envelope(made).payload


def broken(document: dict[str, Any], change: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Another signature over the same."""
    from base64 import b64decode

    signature = document["dsseEnvelope"]["signatures"][0]
    signature["sig"] = b64(change(b64decode(signature["sig"])))
    return document


SIGNATURES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "zeros": lambda s: bytes(len(s)),
    "r and s of zero": lambda _: encode_dss_signature(0, 0),
    "r and s of one": lambda _: encode_dss_signature(1, 1),
    "r and s of the order": lambda _: encode_dss_signature(ORDER, ORDER),
    "s and the order": lambda s: encode_dss_signature(
        decode_dss_signature(s)[0], decode_dss_signature(s)[1] + ORDER
    ),
    "as 64 bytes": lambda s: b"".join(
        number.to_bytes(32, "big") for number in decode_dss_signature(s)
    ),
    "a byte behind": lambda s: s + b"\0",
    "a length in two bytes": lambda s: s[:1] + b"\x81" + s[1:],
    "a zero before r": lambda s: (
        s[:1] + bytes([s[1] + 1]) + s[2:3] + bytes([s[3] + 1]) + b"\0" + s[4:]
    ),
}


@pytest.mark.parametrize("case", SIGNATURES)
def test_other_encodings_of_a_signature(
    case: str, world: World, verified: Callable[..., Ran]
) -> None:
    world.refer(json.dumps(broken(good(world), SIGNATURES[case])).encode())
    refused(verified(), 10, f"not a signature of {ME.public.fingerprint}")


# --- where it lies --------------------------------------------------------------------------------


def another(world: World) -> Manifest:
    """A second image in the layout."""
    document = json.loads(world.store.read(world.image.digest))
    raw = json.dumps({**document, "annotations": {"evil": "yes"}}).encode()
    world.store.put(raw)
    return Manifest.parse(raw)


TAGS = {
    "sig": carriers.signature_tag,
    "att": carriers.attestation_tag,
    "bundles": carriers.referrers_tag,
}


@pytest.mark.parametrize(
    ("which", "status", "message"),
    [
        ("sig", 10, "but about another image than"),
        ("att", 10, "but about another image than"),
        ("bundles", 13, "listed as referring to"),
    ],
)
def test_the_signatures_of_another_image(
    which: str, status: int, message: str, world: World, verified: Callable[..., Ran]
) -> None:
    other = another(world)
    signed = envelope(said(other.digest), ME)
    world.sign(ME, image=other.descriptor)
    if which == "att":  # what says "signed" is not there by itself
        raw = dsse.encode(signed)
        world.att(raw)
    else:
        there = world.store.references()[TAGS[which](other.digest)]
        world.store.set_reference(TAGS[which](world.image.digest), there)
    refused(verified(), status, message)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("sig", f"expected a manifest of signatures, got {OCI_INDEX}"),
        ("att", f"expected a manifest of signatures, got {OCI_INDEX}"),
        ("bundles", f"expected an index of signatures, got {OCI_MANIFEST}"),
    ],
)
def test_a_tag_of_signatures_that_stands_for_something_else(
    which: str, message: str, world: World, verified: Callable[..., Ran]
) -> None:
    world.sign(ME)
    raw = index_of(world.image) if which != "bundles" else world.store.read(world.image.digest)
    kind = OCI_INDEX if which != "bundles" else OCI_MANIFEST
    world.set(TAGS[which](world.image.digest), raw, kind)
    refused(verified(), 4, message)


def bundle_entry(world: World, **changes: Any) -> None:
    """A bundle that the key signed in a manifest with changes, listed as what it should be."""
    raw = as_bundle(envelope(said(world.image.digest), ME))
    made = carriers.bundle_manifest(raw, SIGNED, subject=world.image)
    document = {**json.loads(made.raw), **changes}
    store = world.store
    for blob in (raw, b"{}", encoded := json.dumps(document).encode()):
        store.put(blob)
    spoilt = replace(made, raw=encoded)
    entry = replace(spoilt.descriptor, extra=(("artifactType", bundle.MEDIA_TYPE),))
    world.list_referrer(entry)


LAYER = {"mediaType": bundle.MEDIA_TYPE, "digest": str(Digest.of(b"{}")), "size": 2}


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        pytest.param(
            {"artifactType": "text/plain"}, 13, "listed as a bundle, which it does not say of",
            id="an artifact type that lies",
        ),
        pytest.param({"subject": None}, 13, "but refers to nothing", id="no subject"),
        pytest.param({"layers": []}, 13, "expected one layer, a bundle", id="no layer"),
        pytest.param(
            {"layers": [LAYER, LAYER]}, 13, "expected one layer, a bundle", id="two layers"
        ),
        pytest.param(
            {"layers": [{**LAYER, "mediaType": "application/json"}]}, 13,
            "expected one layer, a bundle", id="a layer of another type",
        ),
        pytest.param(
            {"layers": [{**LAYER, "size": 1 << 40}]}, 13, f"the limit is {BLOB_LIMIT}",
            id="a layer without end",
        ),
        pytest.param(
            {"layers": [{**LAYER, "size": 9}]}, 13, "expected 9 bytes, got 2",
            id="a layer of another size",
        ),
        pytest.param(
            {"layers": [{**LAYER, "digest": str(ANOTHER)}]}, 13, "no such blob", id="no such layer"
        ),
        pytest.param(
            {"layers": [{**LAYER, "digest": "sha256:../../etc/passwd"}]}, 13,
            "sha256 takes 64 hex digits", id="a digest that is a path",
        ),
        pytest.param(
            {"manifests": []}, 13, "expected an image manifest", id="a manifest and an index"
        ),
        pytest.param({"schemaVersion": 1}, 13, "schemaVersion 1 is not supported", id="schema 1"),
        pytest.param(
            {"mediaType": OCI_INDEX}, 13, "expected an image index", id="says that it is an index"
        ),
    ],
)  # fmt: skip
def test_a_referrer_that_is_no_bundle_of_this_image(
    changes: dict[str, Any],
    status: int,
    message: str,
    world: World,
    verified: Callable[..., Ran],
) -> None:
    bundle_entry(world, **changes)
    refused(verified(), status, message)


@pytest.mark.parametrize("which", TAGS)
def test_a_flood(which: str, world: World, verified: Callable[..., Ran]) -> None:
    """Nobody reads the first hundred and takes the rest for nothing."""
    world.sign(ME)
    digest = world.image.digest
    name = TAGS[which](digest)
    document = json.loads(world.store.read(world.store.references()[name].digest))
    key = "manifests" if which == "bundles" else "layers"
    (first, *_) = document[key]
    document[key] += [
        {**first, "digest": str(Digest.of(b"%d" % number))} for number in range(COUNT_LIMIT)
    ]
    count = len(document[key])
    world.set(name, json.dumps(document).encode(), document["mediaType"])
    refused(verified(), 4, f"{count} signatures, the limit is {COUNT_LIMIT}")


def only(world: World, *predicates: str) -> None:
    """Have statements of these types alone, each signed by the key."""
    for statement in world.statements:
        if statement.predicate_type in predicates:
            in_bundle(world, envelope(_payload(statement), ME))
    if SIGNED in predicates:
        in_bundle(world, envelope(said(world.image.digest), ME))


ALL = (SIGNED, *PREDICATE_TYPES.values())


@pytest.mark.parametrize("kind", Statements)
def test_only_a_statement_is_no_signature_of_the_image(
    kind: Statements, world: World, verified: Callable[..., Ran]
) -> None:
    """That somebody said how it was made, or scanned it, is not "this is the image"."""
    only(world, PREDICATE_TYPES[kind])
    ran = verified("--demand", str(kind))
    refused(ran, 13, "no signature of a key that is trusted")


@pytest.mark.parametrize("kind", Statements)
def test_a_statement_that_is_demanded_and_not_there(
    kind: Statements, world: World, verified: Callable[..., Ran]
) -> None:
    only(world, *(predicate for predicate in ALL if predicate != PREDICATE_TYPES[kind]))
    refused(verified(), 13, f"no {kind} statement of a key that is trusted")
    rest = [item for item in Statements if item is not kind]
    assert verified("--demand", str(rest[0]), "--demand", str(rest[1])).status == 0


def test_a_manifest_statement_about_other_layers(
    world: World, verified: Callable[..., Ran]
) -> None:
    only(
        world,
        *(predicate for predicate in ALL if predicate != PREDICATE_TYPES[Statements.MANIFEST]),
    )
    (made,) = (
        s for s in world.statements if s.predicate_type == PREDICATE_TYPES[Statements.MANIFEST]
    )
    document = json.loads(_payload(made))
    document["predicate"]["steps"] = []
    in_bundle(world, envelope(json.dumps(document).encode(), ME))
    refused(verified(), 4, "the statement names ")


def indexed(world: World, **changes: Any) -> tuple[Digest, Digest]:
    """Have the name stand for an index of the image; returns the digests of both."""
    member = replace(world.image, annotations=(), **changes)
    return world.set(NAME, index_of(member), OCI_INDEX), member.digest


def test_an_index_that_nobody_signed(world: World, verified: Callable[..., Ran]) -> None:
    world.sign(ME)
    index, _ = indexed(world)
    refused(verified(), 13, f"{index}: nobody signed it")


def test_an_index_with_a_member_that_nobody_signed(
    world: World, verified: Callable[..., Ran]
) -> None:
    _, member = indexed(world)
    world.sign(ME, image=world.image)
    refused(verified(), 13, f"{member}: nobody signed it")


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        pytest.param({"size": 7}, 4, "the index says 7 bytes, it is ", id="its size"),
        pytest.param({"digest": ANOTHER}, 7, "no such blob", id="its digest"),
        pytest.param(
            {"media_type": OCI_INDEX}, 4,
            f"the index says {OCI_INDEX}, it is {OCI_MANIFEST}", id="its type",
        ),
    ],
)  # fmt: skip
def test_a_signed_index_that_lies_about_a_member(
    changes: dict[str, Any], status: int, message: str, world: World, verified: Callable[..., Ran]
) -> None:
    world.sign(ME)
    indexed(world, **changes)
    world.sign(ME, image=world.image)
    refused(verified(), status, message)


def test_an_index_in_an_index_is_no_image(world: World, verified: Callable[..., Ran]) -> None:
    """Somebody says it is good, and has an SBOM of it; what an engine runs is a level below."""
    member = replace(world.image, annotations=())
    inner = index_of(member)
    entry = Descriptor(media_type=OCI_INDEX, digest=world.store.put(inner), size=len(inner))
    world.sign(ME)
    world.set(NAME, index_of(entry), OCI_INDEX)
    world.sign(ME, image=world.image)
    sbom = Statement(
        subjects=(Subject(name="x", digest=entry.digest),),
        predicate_type=PREDICATE_TYPES[Statements.SBOM],
        predicate={},
    )
    signable = Signable(image=entry, reference=REFERENCE, statements=(sbom,))
    publish([signable], ME, world.place)
    refused(verified("--demand", "sbom"), 4, "an index in an index, and no image of linux/amd64")


def test_what_somebody_attached_puts_no_lines_of_its_own_into_the_verdict(
    world: World, verified: Callable[..., Ran]
) -> None:
    world.sign(ME)
    name = "x\n  rebuilt here: the same image"
    document = {"schemaVersion": 2, "annotations": {name: 5}, "config": LAYER, "layers": []}
    raw = json.dumps(document).encode()
    digest = world.store.put(raw)
    kind = (("artifactType", bundle.MEDIA_TYPE),)
    world.list_referrer(
        Descriptor(media_type=OCI_MANIFEST, digest=digest, size=len(raw), extra=kind)
    )
    ran = verified()
    assert ran.status == 0, ran.err
    assert "rebuilt here: the same image: expected a string, got 5" in ran.out
    assert not [line for line in ran.out.splitlines() if line.startswith("  rebuilt")]


def test_an_entry_of_the_layout_that_lies_about_its_size(
    world: World, verified: Callable[..., Ran]
) -> None:
    world.sign(ME)
    index = world.layout / "index.json"
    size = b'"size":%d' % world.image.size
    assert size in index.read_bytes()
    index.write_bytes(index.read_bytes().replace(size, b'"size":7'))
    refused(verified(), 4, "expected 7 bytes, got ")


def test_an_entry_of_the_layout_that_has_its_name_under_another_key(
    world: World, verified: Callable[..., Ran]
) -> None:
    """skopeo, whose reader of JSON knows no case, would take the other image for the name."""
    world.sign(ME)
    index = world.layout / "index.json"
    document = json.loads(index.read_bytes())
    named = {"org.opencontainers.image.ref.name": NAME}
    entry = {"mediaType": OCI_MANIFEST, "digest": str(ANOTHER), "size": 7, "Annotations": named}
    document["manifests"].insert(0, entry)
    index.write_text(json.dumps(document))
    refused(verified(), 4, "manifests[0]: the key 'Annotations', which some readers take for")


def test_an_image_that_is_not_what_its_name_says(
    world: World, verified: Callable[..., Ran]
) -> None:
    world.sign(ME)
    blob = world.layout / "blobs/sha256" / world.image.digest.hex
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes().replace(b"{", b"{ ", 1))
    refused(verified(), 4, world.image.digest.hex)
