"""What is published is collected again, in every place, and nothing is published twice."""

from dataclasses import replace
from typing import Any

import pytest

from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.errors import EnvironmentFault, IntegrityError
from builder.signatures.collect import collect
from builder.signatures.found import Kind
from builder.signatures.place import Listed, Place
from builder.signatures.publish import SIGNED, Signable, publish
from builder.sigstore import carriers
from builder.sigstore.listing import Form
from builder.sigstore.simple_signing import SimpleSigning
from tests.signatures.conftest import IMAGES, INDEX
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import PROVENANCE, provenance, signable
from tests.signers import SIGNERS, MemorySigner, ed, p256, random_p256

IMAGE = IMAGES[0].manifest.descriptor
ALL = [INDEX.descriptor, IMAGE, IMAGES[1].manifest.descriptor]
NAME = "example.com/team/app:t"
FORMS = [
    (Kind.SIMPLE_SIGNING, None),
    (Kind.DSSE_ATTACHMENT, PROVENANCE),
    (Kind.BUNDLE, SIGNED),
    (Kind.BUNDLE, PROVENANCE),
]


def by(signer: MemorySigner, place: Place, image: Digest = IMAGE.digest) -> list[Any]:
    """The forms in which this key signed the image, sorted."""
    found = collect(image, place).found
    said = [(item.kind, item.read(signer.public)) for item in found if item.made_by(signer.public)]
    return sorted(
        (
            (kind, each.predicate_type if isinstance(each, Statement) else None)
            for kind, each in said
        ),
        key=FORMS.index,
    )


@pytest.mark.parametrize("kind", SIGNERS)
def test_every_form_of_an_index_and_its_members_is_found_again(place: Place, kind: str) -> None:
    signer = SIGNERS[kind]("a")
    published = publish([signable(image, NAME) for image in ALL], signer, place)
    assert (len(published.added), published.present) == (12, 0)
    for image in ALL:
        added = [(a.kind, a.predicate_type) for a in published.added if a.image == image.digest]
        assert sorted(added, key=FORMS.index) == FORMS
        assert by(signer, place, image.digest) == FORMS
        assert collect(image.digest, place).refused == ()


def test_what_was_said_comes_back_once_a_key_vouches_for_it(place: Place) -> None:
    signer, other = p256(), p256("other")
    publish([signable(IMAGE, NAME)], signer, place)
    found = {(item.kind, item.hint): item for item in collect(IMAGE.digest, place).found}
    simple = found[Kind.SIMPLE_SIGNING, ""]
    assert simple.read(signer.public) == SimpleSigning(reference=NAME, digest=IMAGE.digest)
    attached = found[Kind.DSSE_ATTACHMENT, signer.public.fingerprint]
    assert attached.read(signer.public) == provenance(IMAGE)
    assert (Kind.BUNDLE, signer.public.hint) in found
    for item in found.values():
        assert not item.made_by(other.public)
        with pytest.raises(IntegrityError) as caught:
            item.read(other.public)
        assert caught.value.message == f"{item.at}: not a signature of {other.public.fingerprint}"


def test_an_image_that_nobody_signed_has_no_signatures(place: Place) -> None:
    collected = collect(IMAGES[2].manifest.digest, place)
    assert (collected.found, collected.refused) == ((), ())


@pytest.mark.parametrize("make", [p256, ed, random_p256])
def test_signing_again_signs_and_adds_nothing(place: Place, make: Any) -> None:
    publish([signable(IMAGE, NAME)], make("a"), place)
    before = collect(IMAGE.digest, place)
    again = make("a")
    published = publish([signable(IMAGE, NAME)], again, place)
    assert (published.added, published.present, again.signed) == ((), 4, 0)
    assert collect(IMAGE.digest, place) == before


def test_what_is_missing_is_added_and_nothing_else(place: Place) -> None:
    signer = p256()
    publish([Signable(image=IMAGE, reference=NAME)], signer, place)
    assert by(signer, place) == [FORMS[0], FORMS[2]]
    published = publish([signable(IMAGE, NAME)], signer, place)
    assert [(a.kind, a.predicate_type) for a in published.added] == [FORMS[1], FORMS[3]]
    assert published.present == 2
    assert by(signer, place) == FORMS


def test_keys_sign_beside_each_other(place: Place) -> None:
    signers = [p256("a"), ed("a"), p256("b")]
    for signer in signers:
        assert publish([signable(IMAGE, NAME)], signer, place).present == 0
    for signer in signers:
        assert by(signer, place) == FORMS
    assert len(collect(IMAGE.digest, place).found) == 12


def test_another_name_for_an_image_is_signed_as_well(place: Place) -> None:
    signer = p256()
    publish([signable(IMAGE, NAME)], signer, place)
    published = publish([signable(IMAGE, "example.com/team/app:u")], signer, place)
    assert [(a.kind, a.predicate_type) for a in published.added] == [FORMS[0], FORMS[2]]


def test_a_message_is_signed_once_though_it_goes_into_several_forms() -> None:
    signer = p256()
    publish([signable(IMAGE, NAME)], signer, MemoryPlace())
    assert signer.signed == 3


def test_the_same_key_and_input_give_the_same_bytes() -> None:
    places = MemoryPlace(), MemoryPlace()
    for place in places:
        publish([signable(image, NAME) for image in ALL], p256(), place)
    assert vars(places[0]) == vars(places[1])


def test_what_others_attached_stays(place: Place) -> None:
    tags = (carriers.signature_tag(IMAGE.digest), carriers.attestation_tag(IMAGE.digest))
    foreign = b"somebody else's"
    entry = replace(carriers.simple_signing_layer(foreign, b"x"), media_type="text/x-odd")
    place.add(
        [
            Listed(tag=tag, form=Form.LAYERS, entries=(entry,), blobs=(carriers.CONFIG, foreign))
            for tag in tags
        ]
    )
    publish([signable(IMAGE, NAME)], p256(), place)
    for tag in tags:
        layers = listing_of(place, tag)
        assert layers[0] == entry
        assert len(layers) == 2
    assert by(p256(), place) == FORMS
    assert collect(IMAGE.digest, place).refused == ()


def listing_of(place: Place, tag: str) -> Any:
    document: Any = place.tagged(tag)
    return document.layers


def test_a_statement_about_something_else_is_a_bug_of_the_caller() -> None:
    place = MemoryPlace()
    other = Signable(image=INDEX.descriptor, reference=NAME, statements=(provenance(IMAGE),))
    with pytest.raises(ValueError, match="is not about sha256:"):
        publish([other], p256(), place)
    assert vars(place) == vars(MemoryPlace())


def test_one_statement_may_be_about_an_index_and_its_members(place: Place) -> None:
    said = Statement(
        subjects=tuple(Subject(name="app", digest=image.digest) for image in ALL),
        predicate_type=PROVENANCE,
        predicate={},
    )
    wanted = [Signable(image=image, reference=NAME, statements=(said,)) for image in ALL]
    signer = p256()
    publish(wanted, signer, place)
    assert signer.signed == 3 + 3 + 1
    for image in ALL:
        assert by(signer, place, image.digest) == FORMS


class Locked(MemorySigner):
    """A signer that does not answer."""

    def sign(self, message: bytes) -> bytes:
        raise EnvironmentFault("the key does not answer")


def test_a_key_that_does_not_answer_leaves_nothing_behind() -> None:
    place = MemoryPlace()
    with pytest.raises(EnvironmentFault):
        publish([signable(IMAGE, NAME)], Locked(p256().private), place)
    assert vars(place) == vars(MemoryPlace())
