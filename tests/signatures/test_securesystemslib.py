"""securesystemslib, which others verify envelopes with, takes each one that is published, under the
fingerprint of its key and under no other name."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_der_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # no __all__

from builder.digest import Digest
from builder.keys.public import PublicKey
from builder.oci import OCI_MANIFEST, Descriptor
from builder.signatures.publish import SIGNED, Signable, publish
from builder.sigstore import bundle, carriers
from builder.statements import PREDICATE_TYPES, statements
from tests.signatures.memory_place import MemoryPlace
from tests.signers import SIGNERS, random_p256
from tests.statements.rich import record

NAME = "example.com/team/app:t"
RICH = record()
IMAGE = Descriptor(media_type=OCI_MANIFEST, digest=RICH.digest, size=1)


def published(signer: Any) -> list[tuple[str, dict[str, Any]]]:
    """Every envelope in a place where an image was signed, by the form that it is in."""
    place = MemoryPlace()
    signable = Signable(image=IMAGE, reference=NAME, statements=statements(RICH, name=NAME))
    publish([signable], signer, place)
    return [*_attached(place), *_bundled(place)]


def _attached(place: MemoryPlace) -> Iterator[tuple[str, dict[str, Any]]]:
    manifest = json.loads(place.tags[carriers.attestation_tag(IMAGE.digest)].raw)
    for layer in manifest["layers"]:
        yield ".att", json.loads(place.blobs[Digest.parse(layer["digest"])])


def _bundled(place: MemoryPlace) -> Iterator[tuple[str, dict[str, Any]]]:
    for manifest in place.manifests.values():
        (layer,) = json.loads(manifest.raw)["layers"]
        document = json.loads(place.blobs[Digest.parse(layer["digest"])])
        assert document["mediaType"] == bundle.MEDIA_TYPE
        yield "bundle", document["dsseEnvelope"]


def key_of(public: PublicKey, keyid: str | None = None) -> SSlibKey:
    key: Any = load_der_public_key(public.spki)
    return SSlibKey.from_crypto(key, keyid=keyid or public.fingerprint)


def read(document: dict[str, Any]) -> Envelope:
    """Its reader changes what it is given."""
    return Envelope.from_dict(json.loads(json.dumps(document)))


def refused(document: dict[str, Any], key: SSlibKey) -> None:
    with pytest.raises(VerificationError, match="Found: 0, Expected 1"):
        read(document).verify([key], 1)


@pytest.mark.parametrize("make", [*SIGNERS.values(), random_p256])
def test_each_envelope_is_taken_under_the_fingerprint_and_says_what_was_signed(make: Any) -> None:
    signer = make("ours")
    said = []
    for form, document in published(signer):
        envelope = read(document)
        fingerprint = signer.public.fingerprint
        assert list(envelope.verify([key_of(signer.public)], 1)) == [fingerprint]
        assert envelope.payload_type == "application/vnd.in-toto+json"
        said.append((form, json.loads(envelope.payload)["predicateType"]))
    kinds = list(PREDICATE_TYPES.values())
    wanted = [(".att", kind) for kind in kinds] + [("bundle", kind) for kind in [SIGNED, *kinds]]
    assert sorted(said) == sorted(wanted)


@pytest.mark.parametrize("make", SIGNERS.values(), ids=SIGNERS)
def test_none_is_taken_for_another_keys(make: Any) -> None:
    signer, other = make("ours"), make("another").public
    for _, document in published(signer):
        refused(document, key_of(other))
        refused(document, key_of(other, keyid=signer.public.fingerprint))
        # The trap that our key ids avoid: the right key, under the name that others compute.
        refused(document, key_of(signer.public, keyid=Digest.of(signer.public.spki).hex))


@pytest.mark.parametrize("make", SIGNERS.values(), ids=SIGNERS)
def test_none_is_taken_once_what_it_says_is_changed(make: Any) -> None:
    signer = make("ours")
    key = key_of(signer.public)
    for _, document in published(signer):
        payload = b64decode(document["payload"])
        for changed in (payload + b" ", payload[:-1], payload.replace(b"sha256", b"sha257", 1)):
            assert changed != payload
            refused(document | {"payload": b64encode(changed).decode()}, key)
        refused(document | {"payloadType": "application/json"}, key)


@pytest.mark.parametrize("make", SIGNERS.values(), ids=SIGNERS)
def test_the_signature_of_one_envelope_is_not_taken_for_that_of_another(make: Any) -> None:
    signer = make("ours")
    (_, first), *others = published(signer)
    for _, document in others:
        if document["payload"] != first["payload"]:
            refused(document | {"signatures": first["signatures"]}, key_of(signer.public))
