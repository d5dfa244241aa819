"""What is enough, and what is not, among all that lies beside an image."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from builder.attest import dsse, statement
from builder.attest.dsse import Signature
from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.errors import ExpiredError, IntegrityError, UnsignedError, UntrustedError
from builder.keys.counted import Counted
from builder.keys.public import PublicKey
from builder.oci import OCI_MANIFEST, Descriptor, Index
from builder.signatures.place import Listed
from builder.signatures.publish import SIGNED, Signable, publish
from builder.sigstore import carriers
from builder.sigstore.listing import Form
from builder.statements import PREDICATE_TYPES, Kind
from builder.verification.verify import any_of, verify
from builder.verification.vouched import Vouched, by_repository
from tests.signatures.memory_place import MemoryPlace
from tests.signers import MemorySigner, p256

TARGET = Descriptor(media_type=OCI_MANIFEST, digest=Digest.of(b"image"), size=5)
GOOD, STOLEN, GONE = p256("good"), p256("stolen"), p256("gone")
KNOWN = [signer.public for signer in (STOLEN, GONE, GOOD)]


def said(text: str) -> Statement:
    return Statement(
        subjects=(Subject(name="x", digest=TARGET.digest),),
        predicate_type=PREDICATE_TYPES[Kind.SBOM],
        predicate={"by": text},
    )


def signed(place: MemoryPlace, *signers: MemorySigner, text: str) -> None:
    for signer in signers:
        publish(
            [Signable(image=TARGET, reference=f"r.test/{text}:t", statements=(said(text),))],
            signer,
            place,
        )


def good_one(what: str, made_by: Sequence[PublicKey]) -> Counted:
    """A policy in which one key counts, and two are revoked."""
    if GOOD.public not in made_by:
        raise ExpiredError(f"{what}: {len(made_by)} that do not count")
    remarks = tuple(f"{key.fingerprint} is revoked" for key in made_by if key != GOOD.public)
    return Counted(keys=(GOOD.public,), remarks=remarks)


@pytest.mark.parametrize("thieves", [(STOLEN,), (STOLEN, GONE)])
def test_who_stole_a_key_cannot_make_everything_untrusted(
    thieves: tuple[MemorySigner, ...],
) -> None:
    place = MemoryPlace()
    signed(place, *thieves, text="evil")
    signed(place, GOOD, text="good")
    found = verify(TARGET.digest, place, keys=KNOWN, enough=good_one, demanded=[Kind.SBOM])
    assert {claim.keys for claim in found.claims.values()} == {(GOOD.public,)}
    sbom = found.claims[str(Kind.SBOM)].said
    assert isinstance(sbom, Statement)
    assert sbom.predicate == {"by": "good"}, "what is believed is what the good key says"


def test_who_does_not_count_is_told_once_and_vouches_for_nothing() -> None:
    place = MemoryPlace()
    signed(place, STOLEN, GOOD, text="good")
    found = verify(TARGET.digest, place, keys=KNOWN, enough=good_one, demanded=[Kind.SBOM])
    assert {claim.keys for claim in found.claims.values()} == {(GOOD.public,)}
    assert found.remarks == (f"{STOLEN.public.fingerprint} is revoked",)


def test_where_nothing_is_enough_the_refusal_is_of_what_most_say() -> None:
    place = MemoryPlace()
    signed(place, STOLEN, text="one")
    signed(place, STOLEN, GONE, text="two")
    with pytest.raises(ExpiredError) as caught:
        verify(TARGET.digest, place, keys=KNOWN, enough=good_one, demanded=())
    assert str(caught.value) == f"{place.at(TARGET.digest)}: image: 2 that do not count"


def both(what: str, made_by: Sequence[PublicKey]) -> Counted:
    """A policy that wants two keys."""
    if len(made_by) < 2:
        raise UntrustedError(f"{what}: one of two")
    return Counted(keys=tuple(made_by))


def named(place: MemoryPlace, signer: MemorySigner, reference: str) -> None:
    publish([Signable(image=TARGET, reference=reference)], signer, place)


@pytest.mark.parametrize(
    ("mine", "yours"),
    [
        pytest.param("r.test:5000/a/b:1", "r.test:5000/a/b:2", id="under two tags"),
        pytest.param("r.test:5000/a/b", "r.test:5000/a/b:2", id="one without a tag"),
        pytest.param(f"r.test/a/b@{TARGET.digest}", "r.test/a/b:2", id="one by digest"),
    ],
)
def test_keys_that_sign_one_image_of_a_repository_add_up(mine: str, yours: str) -> None:
    """A signature is for a repository and a digest, not for a tag."""
    place = MemoryPlace()
    named(place, GOOD, mine)
    named(place, STOLEN, yours)
    found = verify(TARGET.digest, place, keys=KNOWN, enough=both, demanded=())
    assert {*found.claims["image"].keys} == {GOOD.public, STOLEN.public}


@pytest.mark.parametrize(
    ("mine", "yours"),
    [
        pytest.param("r.test/a/b:1", "r.test/a/c:1", id="another repository"),
        pytest.param("r.test:5000/a:1", "r.test:5001/a:1", id="another port"),
        pytest.param("r.test:5000/a", "r.test/a", id="a port is no tag"),
        pytest.param("", "r.test/a:1", id="no name"),
    ],
)
def test_keys_that_sign_for_two_repositories_do_not_add_up(mine: str, yours: str) -> None:
    place = MemoryPlace()
    named(place, GOOD, mine)
    named(place, STOLEN, yours)
    with pytest.raises(UntrustedError, match="one of two"):
        verify(TARGET.digest, place, keys=KNOWN, enough=both, demanded=())


def test_a_signature_with_numbers_of_its_own_needs_its_own_keys() -> None:
    """Cosign sign -a, or somebody's own program: also what canonical JSON has no form for."""
    more = Statement(
        subjects=(Subject(name="r.test/a/b", digest=TARGET.digest),),
        predicate_type=SIGNED,
        predicate={"score": 0.5},
    )
    plain = replace(more, predicate={})
    said_by = [
        Vouched(said=more, keys=(GOOD.public,)),
        Vouched(said=plain, keys=(STOLEN.public,)),
        Vouched(said=more, keys=(GONE.public,)),
    ]
    assert [item.keys for item in by_repository(TARGET.digest, said_by)] == [
        (GOOD.public, GONE.public),
        (STOLEN.public,),
    ]


def test_keys_that_say_different_things_are_not_added_up() -> None:
    place = MemoryPlace()
    signed(place, GOOD, text="one")
    signed(place, STOLEN, text="two")
    with pytest.raises(UntrustedError, match="one of two"):
        verify(TARGET.digest, place, keys=KNOWN, enough=both, demanded=())


def test_a_statement_about_the_image_is_no_signature_of_it() -> None:
    place = MemoryPlace()
    envelope = statement.envelope(said("scanned"))
    raw = dsse.encode(
        dsse.Envelope(
            payload_type=envelope.payload_type,
            payload=envelope.payload,
            signatures=(Signature(keyid="", sig=GOOD.sign(envelope.signed)),),
        )
    )
    layer = carriers.attestation_layer(raw, PREDICATE_TYPES[Kind.SBOM])
    place.add([_listed(carriers.attestation_tag(TARGET.digest), layer, raw)])
    with pytest.raises(UnsignedError, match="no signature of a key that is trusted"):
        verify(
            TARGET.digest,
            place,
            keys=[GOOD.public],
            enough=any_of([GOOD.public]),
            demanded=[Kind.SBOM],
        )


def test_an_encoding_under_the_older_tag_does_not_hide_the_envelope() -> None:
    """The bytes that the key signed, put where payloads are: read so they are nothing."""
    place = MemoryPlace()
    signed(place, GOOD, text="good")
    pae = statement.envelope(said("good")).signed
    layer = carriers.simple_signing_layer(pae, GOOD.sign(pae))
    place.add([_listed(carriers.signature_tag(TARGET.digest), layer, pae)])
    found = verify(
        TARGET.digest,
        place,
        keys=[GOOD.public],
        enough=any_of([GOOD.public]),
        demanded=[Kind.SBOM],
    )
    assert len(found.remarks) == 1


def _listed(tag: str, layer: Descriptor, raw: bytes) -> Listed:
    return Listed(tag=tag, form=Form.LAYERS, entries=(layer,), blobs=(carriers.CONFIG, raw))


def test_of_some_keys_those_that_signed_count() -> None:
    enough = any_of([GOOD.public, STOLEN.public])
    assert enough("image", [GONE.public, GOOD.public]).keys == (GOOD.public,)
    with pytest.raises(UntrustedError, match="image: signed by none of SHA256:"):
        enough("image", [GONE.public])


def test_attachments_that_cannot_be_read_are_counted_where_something_is_missing() -> None:
    for count, told in ((1, "; an attachment cannot"), (3, "; an attachment and 2 more cannot")):
        place = MemoryPlace()
        for number in range(count):
            raw = b'{"no": %d}' % number
            layer = carriers.attestation_layer(raw, "https://p")
            place.add([_listed(carriers.attestation_tag(TARGET.digest), layer, raw)])
        with pytest.raises(UnsignedError, match=told):
            verify(TARGET.digest, place, keys=KNOWN, enough=any_of(KNOWN), demanded=())


def test_a_manifest_statement_about_an_index_is_of_no_image() -> None:
    index = Index.parse(b'{"schemaVersion":2,"manifests":[]}')
    place = MemoryPlace()
    place.manifests[index.digest] = index
    manifest = Statement(
        subjects=(Subject(name="x", digest=index.digest),),
        predicate_type=PREDICATE_TYPES[Kind.MANIFEST],
        predicate={"base": None, "steps": []},
    )
    wanted = Signable(image=index.descriptor, reference="r.test/a:t", statements=(manifest,))
    publish([wanted], GOOD, place)
    with pytest.raises(IntegrityError, match="a manifest statement about an index"):
        verify(
            index.digest,
            place,
            keys=KNOWN,
            enough=any_of(KNOWN),
            demanded=[Kind.MANIFEST],
        )
