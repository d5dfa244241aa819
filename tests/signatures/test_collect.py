"""What hostile people attach does not hide what others signed, and is not taken for it."""

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from builder import artifact
from builder.attest import dsse, statement
from builder.attest.dsse import Envelope, Signature
from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import OCI_EMPTY, Descriptor, Index, Manifest
from builder.signatures import collect as module
from builder.signatures.collect import Collected, collect
from builder.signatures.found import Kind
from builder.signatures.place import BLOB_LIMIT, COUNT_LIMIT, FloodError, Listed, Place, Referring
from builder.signatures.publish import publish
from builder.sigstore import bundle, carriers, simple_signing
from builder.sigstore.listing import Form
from builder.sigstore.simple_signing import SimpleSigning
from tests import mutations
from tests.signatures.conftest import IMAGES
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import signable
from tests.signers import p256

IMAGE, OTHER = IMAGES[0].manifest.descriptor, IMAGES[1].manifest.descriptor
SIGNER = p256()
STRANGER = p256("stranger").public
TYPE = bundle.MEDIA_TYPE.encode()
NAME = "example.com/team/app:t"


def signed() -> MemoryPlace:
    place = MemoryPlace()
    publish([signable(IMAGE, NAME), signable(OTHER, NAME)], SIGNER, place)
    return place


def bundle_manifest(place: MemoryPlace) -> bytes:
    """The manifest of one bundle about the image."""
    return place.manifest(place.referrers(IMAGE.digest, bundle.MEDIA_TYPE)[0].digest).raw


def attach(place: Place, *blobs: bytes, tag: str, layer: Descriptor) -> None:
    place.add(
        [Listed(tag=tag, form=Form.LAYERS, entries=(layer,), blobs=(carriers.CONFIG, *blobs))]
    )


def sig(place: Place, payload: bytes, **changes: Any) -> None:
    layer = replace(carriers.simple_signing_layer(payload, b"sig"), **changes)
    attach(place, payload, tag=carriers.signature_tag(IMAGE.digest), layer=layer)


def att(place: Place, raw: bytes, **changes: Any) -> None:
    layer = replace(carriers.attestation_layer(raw, "https://p"), **changes)
    attach(place, raw, tag=carriers.attestation_tag(IMAGE.digest), layer=layer)


def refer(place: Place, raw: bytes, subject: Descriptor = IMAGE) -> None:
    manifest = carriers.bundle_manifest(raw, "https://p", subject=subject)
    place.add([Referring(manifest=manifest, blobs=(artifact.EMPTY, raw))])


def good(collected: Collected) -> int:
    """How many are by the one key there is, and about the image."""
    return sum(item.made_by(SIGNER.public) and reads(item) for item in collected.found)


def reads(item: Any) -> bool:
    try:
        item.read(SIGNER.public)
    except IntegrityError:
        return False
    return True


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda p: sig(p, b"{}", annotations=()), ".sig: layers[1]: dev.cosignproject.cosign/sign"),
        (
            lambda p: sig(p, b"{}", annotations=((carriers.SIGNATURE, "***"),)),
            "signature: not base64",
        ),
        (lambda p: sig(p, b"{}", size=BLOB_LIMIT + 1), f"the limit is {BLOB_LIMIT}"),
        (lambda p: sig(p, b"{}", digest=Digest.of(b"gone")), "no blob sha256:"),
        (lambda p: att(p, b"{}"), ".att: layers[1]: not a DSSE envelope"),
        (lambda p: att(p, b'{"payload":1,"payload":2}'), "duplicate key 'payload'"),
        (lambda p: refer(p, b"{}"), "mediaType: expected"),
        (
            lambda p: refer(p, b'{"mediaType":"%b","messageSignature":{}}' % TYPE),
            "the signature of a blob (messageSignature)",
        ),
    ],
)
def test_what_cannot_be_read_is_told_and_hides_nothing(spoil: Any, said: str) -> None:
    place = signed()
    spoil(place)
    collected = collect(IMAGE.digest, place)
    assert good(collected) == 4
    (refused,) = collected.refused
    assert said in refused.reason
    assert refused.at in refused.reason or refused.reason.startswith("no blob")


def test_a_referrer_of_another_image_is_refused(place: Place) -> None:
    publish([signable(OTHER, NAME)], SIGNER, place)
    entries = place.referrers(OTHER.digest, bundle.MEDIA_TYPE)
    tag = carriers.referrers_tag(IMAGE.digest)
    place.add([Listed(tag=tag, form=Form.MEMBERS, entries=entries, blobs=())])
    collected = collect(IMAGE.digest, place)
    assert collected.found == ()
    said = f"listed as referring to {IMAGE.digest}, but refers to {OTHER.digest}"
    # A registry that keeps the list itself does not look at the tag.
    assert all(said in refused.reason for refused in collected.refused)
    assert len(collected.refused) in (0, 2)


def test_the_signatures_of_another_image_are_not_this_ones(place: Place) -> None:
    publish([signable(OTHER, NAME)], SIGNER, place)
    for item in collect(OTHER.digest, place).found:
        if item.kind is Kind.SIMPLE_SIGNING:
            layer = carriers.simple_signing_layer(item.signed, item.signature)
            attach(place, item.signed, tag=carriers.signature_tag(IMAGE.digest), layer=layer)
            continue
        assert item.envelope is not None
        one = bundle.Bundle(envelope=item.envelope, hint="")
        refer(place, bundle.encode(one))
        att(place, dsse.encode(item.envelope))
    collected = collect(IMAGE.digest, place)
    assert len(collected.found) >= 4
    for item in collected.found:
        assert item.made_by(SIGNER.public)
        with pytest.raises(IntegrityError) as caught:
            item.read(SIGNER.public)
        assert (
            f"but about another image than {IMAGE.digest}: {OTHER.digest}" in caught.value.message
        )


@pytest.mark.parametrize("kind", [OCI_EMPTY, None])
def test_what_cosign_lists_with_the_type_of_its_config_is_found(kind: str | None) -> None:
    place = signed()
    tag = carriers.referrers_tag(IMAGE.digest)
    index = place.tags[tag]
    assert isinstance(index, Index)
    document = json.loads(index.raw)
    for entry in document["manifests"]:
        entry.pop("annotations")
        entry["artifactType"] = kind
    raw = (
        json.dumps(document)
        .replace('"artifactType": null, ', "")
        .replace(', "artifactType": null', "")
    )
    place.tags[tag] = Index.parse(raw.encode())
    # Something of another kind in such a list is neither found nor refused.
    note = Manifest.parse(
        carriers.bundle_manifest(b"[]", "p", subject=IMAGE).raw.replace(TYPE, b"text/x-note")
    )
    place.manifests[note.digest] = note
    entry = (
        note.descriptor
        if kind is None
        else replace(note.descriptor, extra=(("artifactType", kind),))
    )
    place.add([Listed(tag=tag, form=Form.MEMBERS, entries=(entry,), blobs=())])
    collected = collect(IMAGE.digest, place)
    assert (good(collected), collected.refused) == (4, ())


def test_an_envelope_with_several_signatures_is_several() -> None:
    place, other = signed(), p256("other")
    (item,) = [f for f in collect(IMAGE.digest, place).found if f.kind is Kind.DSSE_ATTACHMENT]
    assert item.envelope is not None
    both = (*item.envelope.signatures, Signature(keyid="", sig=other.sign(item.signed)))
    envelope = Envelope(
        payload_type=item.envelope.payload_type, payload=item.envelope.payload, signatures=both
    )
    att(place, dsse.encode(envelope))
    found = [f for f in collect(IMAGE.digest, place).found if f.kind is Kind.DSSE_ATTACHMENT]
    assert [f.made_by(SIGNER.public) for f in found] == [True, True, False]
    assert [f.made_by(other.public) for f in found] == [False, False, True]


@pytest.mark.parametrize("attach_one", [sig, att, refer])
def test_a_flood_is_an_error_that_says_so(attach_one: Any) -> None:
    place = MemoryPlace()
    for number in range(COUNT_LIMIT + 1):
        attach_one(place, b"%d" % number)
    with pytest.raises(FloodError, match=f"{COUNT_LIMIT + 1} signatures, the limit") as caught:
        collect(IMAGE.digest, place)
    assert caught.value.hint is not None
    assert "delete what you do not know" in caught.value.hint


def test_so_are_more_bytes_than_anybody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOTAL_LIMIT", 1000)
    for attach_one in (sig, att, refer):
        place = MemoryPlace()
        for number in range(3):
            attach_one(place, b"%d" % number * 400)
        with pytest.raises(FloodError, match="over 1000 bytes of signatures"):
            collect(IMAGE.digest, place)


def crowded(payload: bytes, count: int) -> bytes:
    """An envelope with so many signatures, of nobody."""
    signatures = tuple(Signature(keyid="", sig=b"%d" % number) for number in range(count))
    return dsse.encode(Envelope(payload_type="t", payload=payload, signatures=signatures))


def test_signatures_are_counted_and_not_the_envelopes_that_hold_them() -> None:
    """Each is tried with each key: 32 in each of a hundred envelopes took half a minute."""
    place = MemoryPlace()
    for number in range(3):
        att(place, crowded(b"%d" % number, 32))
    assert len(collect(IMAGE.digest, place).found) == 96
    att(place, crowded(b"3", 32))
    with pytest.raises(FloodError, match=f"128 signatures, the limit is {COUNT_LIMIT}"):
        collect(IMAGE.digest, place)


def test_what_many_sign_counts_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large content under many signatures is hashed as often, by each key."""
    monkeypatch.setattr(module, "TOTAL_LIMIT", 10_000)
    for count, fits in ((2, True), (12, False)):
        place = MemoryPlace()
        att(place, crowded(b"x" * 600, count))
        if fits:
            first, second = collect(IMAGE.digest, place).found
            assert first.signed is second.signed, "held once"
            continue
        with pytest.raises(FloodError, match="over 10000 bytes of signatures"):
            collect(IMAGE.digest, place)


@pytest.mark.parametrize(
    "tag", [carriers.signature_tag(IMAGE.digest), carriers.attestation_tag(IMAGE.digest)]
)
def test_a_tag_of_signatures_that_stands_for_an_index_is_an_error(tag: str) -> None:
    place = signed()
    place.tags[tag] = place.tags[carriers.referrers_tag(IMAGE.digest)]
    with pytest.raises(IntegrityError, match="expected a manifest of signatures"):
        collect(IMAGE.digest, place)


def test_indexes_that_name_each_other_are_not_followed() -> None:
    place = signed()
    tag = carriers.referrers_tag(IMAGE.digest)
    index = place.tags[tag]
    place.manifests[index.digest] = index
    entry = replace(index.descriptor, extra=(("artifactType", bundle.MEDIA_TYPE),))
    place.add([Listed(tag=tag, form=Form.MEMBERS, entries=(entry,), blobs=())])
    collected = collect(IMAGE.digest, place)
    assert good(collected) == 4
    assert [r.reason.partition(": ")[2] for r in collected.refused] == [
        f"{index.digest}: listed as a bundle, which it does not say of itself"
    ]


def spoilt_manifests() -> Iterator[tuple[str, bytes]]:
    document = json.loads(bundle_manifest(signed()))
    yield from mutations.without(document)
    yield from mutations.twice(document)
    yield from ((path, raw) for path, _, raw in mutations.with_another(document))


def test_a_manifest_with_one_thing_wrong_is_refused_or_says_the_same() -> None:
    """Names, annotations and sizes of what is not read may be anything: they are not acted on."""
    place = signed()
    taken = set()
    for path, raw in spoilt_manifests():
        try:
            spoilt = Manifest.parse(raw)
        except IntegrityError:
            continue
        one = MemoryPlace()
        one.blobs = place.blobs
        one.manifests[spoilt.digest] = spoilt
        entry = replace(spoilt.descriptor, extra=(("artifactType", bundle.MEDIA_TYPE),))
        tag = carriers.referrers_tag(IMAGE.digest)
        one.add([Listed(tag=tag, form=Form.MEMBERS, entries=(entry,), blobs=())])
        collected = collect(IMAGE.digest, one)
        assert len(collected.found) + len(collected.refused) == 1
        if collected.found:
            assert good(collected) == 1
            taken.add(path)
    assert taken == {
        "mediaType",
        "annotations",
        "annotations.dev.sigstore.bundle.content",
        "annotations.dev.sigstore.bundle.predicateType",
        "config.mediaType",
        "config.size",
        "subject.mediaType",
        "subject.size",
    }


def b64(data: bytes) -> str:
    return b64encode(data).decode()


def test_a_payload_that_cannot_be_read_in_one_way_says_nothing_though_it_is_signed() -> None:
    payload = simple_signing.encode(SimpleSigning(reference=NAME, digest=IMAGE.digest))
    twice = payload.replace(b'"optional":null', b'"optional":null,"optional":{}')
    place = MemoryPlace()
    sig(place, twice, annotations=((carriers.SIGNATURE, b64(SIGNER.sign(twice))),))
    (item,) = collect(IMAGE.digest, place).found
    assert item.made_by(SIGNER.public)
    with pytest.raises(IntegrityError, match="duplicate key 'optional'"):
        item.read(SIGNER.public)


def test_nothing_is_read_for_a_key_that_did_not_sign_it() -> None:
    for item in collect(IMAGE.digest, signed()).found:
        with pytest.raises(IntegrityError) as caught:
            item.read(STRANGER)
        assert caught.value.message.endswith(f": not a signature of {STRANGER.fingerprint}")


@pytest.mark.parametrize(("count", "more"), [(1, ""), (3, ""), (4, " and 1 more")])
def test_what_a_statement_is_about_instead_is_told(count: int, more: str) -> None:
    others = [Digest.of(b"%d" % number) for number in range(count)]
    bare = statement.envelope(
        Statement(
            subjects=tuple(Subject(name="x", digest=item) for item in others),
            predicate_type="https://p",
            predicate={},
        )
    )
    signature = Signature(keyid="", sig=SIGNER.sign(bare.signed))
    place = MemoryPlace()
    att(place, dsse.encode(replace(bare, signatures=(signature,))))
    (found,) = collect(IMAGE.digest, place).found
    with pytest.raises(IntegrityError) as caught:
        found.read(SIGNER.public)
    told = f": {', '.join(map(str, others[:3]))}{more}"
    assert caught.value.message.endswith(told)


def test_a_layer_of_another_type_is_passed_by() -> None:
    """Neither a signature nor something that should be one."""
    place = signed()
    sig(place, b"{}", media_type="application/json")
    att(place, b"{}", media_type="application/json")
    collected = collect(IMAGE.digest, place)
    assert (good(collected), collected.refused) == (4, ())


def test_what_is_just_within_the_limits_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    place = MemoryPlace()
    for number in range(4):
        att(place, crowded(b"%d" % number, COUNT_LIMIT // 4))
    assert len(collect(IMAGE.digest, place).found) == COUNT_LIMIT
    raw = crowded(b"payload", 1)
    for name in ("BLOB_LIMIT", "TOTAL_LIMIT"):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, len(raw))
            place = MemoryPlace()
            att(place, raw)
            assert len(collect(IMAGE.digest, place).found) == 1


def test_manifests_of_bundles_are_counted_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    place = MemoryPlace()
    raw = bundle.encode(bundle.Bundle(envelope=dsse.parse(crowded(b"x", 1), at="x"), hint=""))
    refer(place, raw)
    size = len(raw) + len(bundle_manifest(place))
    monkeypatch.setattr(module, "TOTAL_LIMIT", size)
    assert len(collect(IMAGE.digest, place).found) == 1
    monkeypatch.setattr(module, "TOTAL_LIMIT", size - 1)
    with pytest.raises(FloodError, match=f"over {size - 1} bytes"):
        collect(IMAGE.digest, place)


def test_a_bundle_that_is_listed_twice_is_one() -> None:
    class Twice(MemoryPlace):
        def referrers(self, subject: Digest, artifact_type: str) -> tuple[Descriptor, ...]:
            return super().referrers(subject, artifact_type) * 2

    place = Twice()
    publish([signable(IMAGE, NAME)], SIGNER, place)
    found = collect(IMAGE.digest, place).found
    assert len({item.at for item in found if item.kind is Kind.BUNDLE}) == sum(
        item.kind is Kind.BUNDLE for item in found
    )
