"""Signatures of Notation in every place: beside an image, once, whatever else lies there."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.adapters.store.gc import gc
from builder.digest import Digest
from builder.errors import ExpiredError, IntegrityError
from builder.notation import attach as attaching
from builder.notation import envelope
from builder.notation.attach import ARTIFACT_TYPE, Attached, attach
from builder.notation.self_signed import self_signed
from builder.oci import Descriptor, Manifest
from builder.signatures.collect import collect
from builder.signatures.place import COUNT_LIMIT, FloodError, Place
from builder.signatures.publish import publish
from builder.sigstore import carriers
from tests.notation.authorities import NOW
from tests.signatures.conftest import IMAGES, INDEX, fill
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import signable
from tests.signers import MemorySigner, p256, random_p256

SUBJECT = "CN=release,O=Acme,ST=Berlin,C=DE"
CHAIN = self_signed(p256(), SUBJECT, now=NOW, days=2)
DESCRIPTORS = (INDEX.descriptor, *(image.manifest.descriptor for image in IMAGES[:2]))
IMAGE = IMAGES[0].manifest.descriptor


def signed(place: Place, *images: Descriptor, **more: Any) -> Attached:
    given: dict[str, Any] = {"signer": p256(), "chain": CHAIN, "again": place, "now": NOW} | more
    signer, chain = given.pop("signer"), given.pop("chain")
    return attach(images or (IMAGE,), signer, chain, place=place, **given)


def listed(place: Place, image: Descriptor = IMAGE) -> list[Manifest]:
    found = [place.manifest(entry.digest) for entry in place.referrers(image.digest, ARTIFACT_TYPE)]
    return [item for item in found if isinstance(item, Manifest)]


def test_an_index_and_its_members_are_signed_once(place: Place) -> None:
    first = signed(place, *DESCRIPTORS)
    assert first == Attached(added=tuple(item.digest for item in DESCRIPTORS), present=0)
    again = signed(place, *DESCRIPTORS, now=NOW + timedelta(hours=1))
    assert again == Attached(added=(), present=3)
    for image in DESCRIPTORS:
        (manifest,) = listed(place, image)
        assert manifest.subject == Descriptor(
            media_type=image.media_type, digest=image.digest, size=image.size
        )
        assert (manifest.config.media_type, manifest.config.digest) == (
            ARTIFACT_TYPE,
            Digest.of(b"{}"),
        )
        annotation = dict(manifest.annotations)[attaching.THUMBPRINTS]
        assert json.loads(annotation) == list(CHAIN.thumbprints)
        raw = place.blob(manifest.layers[0])
        assert envelope.verify(raw, image, CHAIN, at="it").moment == NOW


def test_both_kinds_of_signatures_lie_beside_each_other(place: Place) -> None:
    wanted = [signable(image, "r.example/team/app:t") for image in DESCRIPTORS]
    publish(wanted, p256(), place)
    signed(place, *DESCRIPTORS)
    again = publish(wanted, p256(), place)
    assert (again.added, again.present) == ((), 12)
    for image in DESCRIPTORS:
        collected = collect(image.digest, place)
        assert (len(collected.found), collected.refused) == (4, ())


def test_a_key_that_never_signs_the_same_way_twice_signs_once() -> None:
    place, signer = MemoryPlace(), random_p256()
    signed(place, signer=signer)
    signed(place, signer=signer)
    assert (signer.signed, len(listed(place))) == (1, 1)


def test_each_certificate_has_its_signature(place: Place) -> None:
    """Of a key that got a new one, and of another key."""
    renewed = self_signed(p256(), SUBJECT, now=NOW, days=3)
    other = self_signed(p256("other"), SUBJECT, now=NOW, days=2)
    assert len(signed(place).added) == 1
    assert len(signed(place, chain=renewed).added) == 1
    assert len(signed(place, chain=other, signer=p256("other")).added) == 1
    assert len(listed(place)) == 3
    assert signed(place).present == signed(place, chain=renewed).present == 1


def test_nothing_is_signed_with_a_certificate_that_does_not_fit() -> None:
    place, signer = MemoryPlace(), p256("other")
    with pytest.raises(IntegrityError, match="expected a certificate of"):
        signed(place, signer=signer)
    with pytest.raises(ExpiredError):
        signed(place, now=NOW + timedelta(days=2))
    assert (signer.signed, place.added) == (0, [])


class Spoiling(MemorySigner):
    """Signs something else than it is asked to."""

    def sign(self, message: bytes) -> bytes:
        return super().sign(message + b" ")


def test_a_signature_that_does_not_hold_is_told() -> None:
    with pytest.raises(IntegrityError, match=r"does not hold: .*not a signature of SHA256:"):
        signed(MemoryPlace(), signer=Spoiling(p256().private))


def test_what_is_not_there_in_the_end_is_told() -> None:
    with pytest.raises(IntegrityError, match="does not hold: it is not there"):
        signed(MemoryPlace(), again=MemoryPlace())


def rubbish() -> dict[str, bytes]:
    """Envelopes that are none for the image."""
    other = envelope.encode(IMAGES[1].manifest.descriptor, CHAIN, p256(), now=NOW)
    good = json.loads(envelope.encode(IMAGE, CHAIN, p256(), now=NOW))
    return {
        "of another image": other,
        "no JSON": b"\xff",
        "huge": b" " * (envelope.LIMIT + 1),
        "without a signature": json.dumps(good | {"signature": ""}).encode(),
    }


class Thrifty(MemoryPlace):
    """Hands out nothing that nobody should want all of."""

    def blob(self, descriptor: Descriptor) -> bytes:
        assert descriptor.size <= envelope.LIMIT, "its size was not looked at"
        return super().blob(descriptor)


def test_what_is_too_large_is_not_read() -> None:
    place = Thrifty()
    place.add([attaching.referring(IMAGE, rubbish()["huge"], CHAIN.thumbprints)])
    assert len(signed(place).added) == 1


@pytest.mark.parametrize("name", rubbish())
def test_rubbish_of_others_hides_nothing(name: str, place: Place) -> None:
    place.add([attaching.referring(IMAGE, rubbish()[name], CHAIN.thumbprints)])
    assert len(signed(place).added) == 1
    assert signed(place).present == 1
    assert len(listed(place)) == 2


def test_an_envelope_that_is_listed_for_another_image_is_passed_by() -> None:
    place = MemoryPlace()
    other = IMAGES[1].manifest.descriptor
    raw = envelope.encode(IMAGE, CHAIN, p256(), now=NOW)
    item = attaching.referring(other, raw, CHAIN.thumbprints)
    place.add([item])
    place.tags[carriers.referrers_tag(IMAGE.digest)] = place.tags.pop(
        carriers.referrers_tag(other.digest)
    )
    assert len(signed(place).added) == 1


def test_other_artifacts_and_other_envelopes_are_passed_by() -> None:
    place = MemoryPlace()
    for field, text in (
        ("config", "application/vnd.oci.empty.v1+json"),
        ("layers", "application/cose"),
    ):
        raw = envelope.encode(IMAGE, CHAIN, p256(), now=NOW)
        item = attaching.referring(IMAGE, raw, CHAIN.thumbprints)
        document = json.loads(item.manifest.raw)
        part = document[field] if field == "config" else document[field][0]
        part["mediaType"] = text
        manifest = Manifest.parse(json.dumps(document).encode())
        place.add([type(item)(manifest=manifest, blobs=item.blobs)])
    assert len(signed(place).added) == 1


def test_a_manifest_whose_envelope_is_gone_is_signed_again() -> None:
    place = MemoryPlace()
    signed(place)
    (manifest,) = listed(place)
    del place.blobs[manifest.layers[0].digest]
    later = NOW + timedelta(seconds=1)
    assert len(signed(place, now=later).added) == 1


def test_a_flood_is_an_error() -> None:
    place = MemoryPlace()
    for number in range(COUNT_LIMIT + 1):
        place.add([attaching.referring(IMAGE, str(number).encode(), ())])
    with pytest.raises(FloodError, match="101 signatures, the limit is 100"):
        signed(place)


def test_collecting_garbage_leaves_them(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    fill(store, IMAGES[0])
    store.set_reference("t", IMAGE)
    signed(LayoutPlace(store))
    gc(store, keep_days=0)
    assert signed(LayoutPlace(FileStore(tmp_path))) == Attached(added=(), present=1)
