"""Every byte of what carries a signature is flipped in turn: nothing is accepted but what says the
same, and where that may be is listed here."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Descriptor, Manifest, parse_document
from builder.signatures import collect as module
from builder.signatures.collect import collect
from builder.signatures.found import Found
from builder.signatures.publish import SIGNED, Signable, publish
from builder.sigstore import bundle, carriers
from builder.verification.vouched import examine
from tests import mutations
from tests.signatures.conftest import IMAGES
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import provenance
from tests.signers import SIGNERS, MemorySigner

IMAGE = IMAGES[0].manifest.descriptor
Put = Callable[[MemoryPlace, bytes], None]


@dataclass(frozen=True, kw_only=True)
class Carrier:
    """Bytes that carry one signature, and how others are put in their place."""

    raw: bytes
    put: Put


def place_of(signer: MemorySigner) -> MemoryPlace:
    place = MemoryPlace()
    said = (provenance(IMAGE),)
    publish([Signable(image=IMAGE, reference="r.example/a:t", statements=said)], signer, place)
    return place


def layer_carrier(place: MemoryPlace, tag: str) -> Carrier:
    """The content of the one layer under a tag. Whoever may write it writes the layer's digest and
    size, too."""
    document = place.tags[tag]
    assert isinstance(document, Manifest)
    (layer,) = document.layers

    def put(place: MemoryPlace, raw: bytes) -> None:
        place.blobs[Digest.of(raw)] = raw
        place.tags[tag] = relabelled(document, layer, raw)

    return Carrier(raw=place.blobs[layer.digest], put=put)


def relabelled(document: Manifest, layer: Descriptor, raw: bytes) -> Manifest:
    """The manifest with a layer of other content."""
    text = document.raw.replace(layer.digest.hex.encode(), Digest.of(raw).hex.encode())
    text = text.replace(b'"size":%d' % layer.size, b'"size":%d' % len(raw))
    return Manifest.parse(text)


def manifest_carrier(place: MemoryPlace, tag: str) -> Carrier:
    """The manifest under a tag."""

    def put(place: MemoryPlace, raw: bytes) -> None:
        place.tags[tag] = parse_document(raw, media_type=None, at="x")

    return Carrier(raw=place.tags[tag].raw, put=put)


def bundles(place: MemoryPlace) -> list[Manifest]:
    """The manifest of the bundle that says "signed"."""
    listed = place.referrers(IMAGE.digest, bundle.MEDIA_TYPE)
    found = [place.manifest(entry.digest) for entry in listed]
    return [item for item in found if isinstance(item, Manifest) and SIGNED.encode() in item.raw]


def bundle_carrier(place: MemoryPlace, _: str) -> Carrier:
    (manifest,) = bundles(place)
    (layer,) = manifest.layers

    def put(place: MemoryPlace, raw: bytes) -> None:
        place.blobs[Digest.of(raw)] = raw
        only(place, relabelled(manifest, layer, raw))

    return Carrier(raw=place.blobs[layer.digest], put=put)


def bundle_manifest_carrier(place: MemoryPlace, _: str) -> Carrier:
    (manifest,) = bundles(place)

    def put(place: MemoryPlace, raw: bytes) -> None:
        only(place, Manifest.parse(raw))

    return Carrier(raw=manifest.raw, put=put)


def only(place: MemoryPlace, manifest: Manifest) -> None:
    """Have this manifest listed as the one bundle, whatever it says of itself."""
    listed = b'{"schemaVersion":2,"manifests":[{"mediaType":"%b","digest":"%b","size":%d,' % (
        manifest.media_type.encode(),
        str(manifest.digest).encode(),
        len(manifest.raw),
    )
    raw = listed + b'"artifactType":"%b"}]}' % bundle.MEDIA_TYPE.encode()
    place.manifests[manifest.digest] = manifest
    place.tags[carriers.referrers_tag(IMAGE.digest)] = parse_document(raw, media_type=None, at="x")


SIG, ATT = carriers.signature_tag(IMAGE.digest), carriers.attestation_tag(IMAGE.digest)
LIST = carriers.referrers_tag(IMAGE.digest)
CARRIERS: dict[str, tuple[Callable[[MemoryPlace, str], Carrier], str]] = {
    "payload": (layer_carrier, SIG),
    "envelope": (layer_carrier, ATT),
    "bundle": (bundle_carrier, LIST),
    "manifest of payloads": (manifest_carrier, SIG),
    "manifest of envelopes": (manifest_carrier, ATT),
    "manifest of a bundle": (bundle_manifest_carrier, LIST),
}


def free(name: str, raw: bytes, signer: MemorySigner) -> set[int]:
    """Where a flip changes nothing that anybody decides by: the equivalent encodings."""
    if name == "payload":
        return set()
    if name in {"envelope", "bundle"}:  # the hint, and the key id
        return spans(raw, signer.public.hint, signer.public.fingerprint)
    document = Manifest.parse(raw)
    (layer,) = document.layers
    # Nothing of a manifest is signed. What a layer is, its content, and the signature beside it:
    # any other text or number may be any other.
    read = [layer.media_type, layer.digest.hex, f'"size":{layer.size}', "schemaVersion", "layers"]
    read += [bundle.MEDIA_TYPE, IMAGE.digest.hex] if document.subject else []
    read += [text for key, text in layer.annotations if key == carriers.SIGNATURE and text]
    return set(range(len(raw))) - spans(raw, *read)


def spans(raw: bytes, *texts: str) -> set[int]:
    """Where these texts are."""
    return set(_spans(raw, *texts))


def _spans(raw: bytes, *texts: str) -> Iterator[int]:
    for text in texts:
        start = raw.find(text.encode())
        while start >= 0:
            yield from range(start, start + len(text))
            start = raw.find(text.encode(), start + 1)


class InTurn:
    """What threads do, one after the other."""

    def __init__(self, max_workers: int) -> None:
        assert max_workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(work, items)


def accepted(carrier: Carrier, raw: bytes, signer: MemorySigner, blobs: Any) -> list[Found]:
    """What somebody vouches for after ``raw`` took the place of the carrier's bytes."""
    place = MemoryPlace()
    place.blobs = dict(blobs)
    try:
        carrier.put(place, raw)
        found = collect(IMAGE.digest, place).found
    except IntegrityError:
        return []
    return list(found) if examine(found, [signer.public]).vouched else []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in CARRIERS
        for kind in SIGNERS
        if kind == "p256" or "manifest" not in name  # of which no byte depends on the kind
    ],
)
def test_no_flipped_byte_is_taken_but_where_it_says_nothing(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ThreadPoolExecutor", InTurn)  # thousands of times
    signer = SIGNERS[kind]("a")
    place = place_of(signer)
    make, tag = CARRIERS[name]
    carrier = make(place, tag)
    (whole,) = accepted(carrier, carrier.raw, signer, place.blobs)
    taken = set()
    for position, raw in mutations.flipped(carrier.raw, one_each=True):
        for found in accepted(carrier, raw, signer, place.blobs):
            assert (found.signed, found.signature) == (whole.signed, whole.signature), (
                f"byte {position}: another signature, or another text, was taken"
            )
            taken.add(position)
    assert sorted(taken - free(name, carrier.raw, signer)) == []
