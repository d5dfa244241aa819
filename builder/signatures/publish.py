"""Images and statements about them, signed by one key, in every form that readers know.

Each image is signed as a name for a digest (simple signing, and a bundle of cosign's own statement
"signed"), each statement as an envelope beside it and as a bundle. Readers look at one form or the
other, and some pass by the older as soon as there is one of the newer: so all of them are written,
for an index and for each of its members.
"""

from collections.abc import Iterator, Sequence

from builder import artifact
from builder.attest import dsse, statement
from builder.attest.dsse import Envelope, Signature
from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.keys.signer import Signer
from builder.oci import Descriptor
from builder.signatures.collect import collect
from builder.signatures.found import Found, Kind
from builder.signatures.place import Addition, Listed, Place, Referring
from builder.sigstore import bundle, carriers, simple_signing
from builder.sigstore.bundle import Bundle
from builder.sigstore.listing import Form
from builder.sigstore.simple_signing import SimpleSigning
from builder.value import value

SIGNED = "https://sigstore.dev/cosign/sign/v1"
"""The predicate type of a statement that says no more than that its subject is signed."""


@value
class Signable:
    """An image, or an index, to be signed. ``reference`` is the name that it is pulled by, with its
    tag; ``statements`` are about it (and perhaps others)."""

    image: Descriptor
    reference: str
    statements: tuple[Statement, ...] = ()


@value
class Added:
    """A signature that was not there before. ``predicate_type`` is ``None`` for simple signing."""

    image: Digest
    kind: Kind
    predicate_type: str | None


@value
class Published:
    """What was added, and how many signatures the place had already."""

    added: tuple[Added, ...]
    present: int


def publish(images: Sequence[Signable], signer: Signer, place: Place) -> Published:
    """Have every image, and every statement about it, signed by ``signer`` in ``place``.

    What the place has is left alone: a signature by the same key over the same bytes is not made
    again. The images must be there, as registries refuse what refers to nothing.

    Raises:
        ValueError: A statement is not about its image: a bug of the caller.
        EnvironmentFault: Whoever keeps the key does not answer.
        IntegrityError, NetworkError: As ``collect`` and ``Place.add``. Nothing that is visible is
            half there, and doing it again completes it.
    """
    making = _Making(signer)
    results = [item for image in images for item in _wanted(image, making, place)]
    place.add([addition for _, addition in results if addition is not None])
    return Published(
        added=tuple(added for added, addition in results if addition is not None),
        present=sum(addition is None for _, addition in results),
    )


class _Making:
    """Signs each message once, though it goes into several forms."""

    def __init__(self, signer: Signer) -> None:
        self.signer = signer
        self._made: dict[bytes, bytes] = {}

    def signature(self, message: bytes) -> bytes:
        if message not in self._made:
            self._made[message] = self.signer.sign(message)
        return self._made[message]

    def signed(self, envelope: Envelope) -> Envelope:
        signature = Signature(
            keyid=self.signer.public.fingerprint, sig=self.signature(envelope.signed)
        )
        return Envelope(
            payload_type=envelope.payload_type,
            payload=envelope.payload,
            signatures=(signature,),
        )

    def has(self, found: Sequence[Found], kind: Kind, message: bytes) -> bool:
        """Whether one of ``found`` is this key's over ``message``, in that form."""
        return any(
            item.kind is kind and item.signed == message and item.made_by(self.signer.public)
            for item in found
        )


def _wanted(
    signable: Signable, making: _Making, place: Place
) -> Iterator[tuple[Added, Addition | None]]:
    """Every signature that is to be there, with what it takes, or ``None`` where it is there."""
    image = signable.image.digest
    found = collect(image, place).found
    payload = simple_signing.encode(SimpleSigning(reference=signable.reference, digest=image))
    there = making.has(found, Kind.SIMPLE_SIGNING, payload)
    added = Added(image=image, kind=Kind.SIMPLE_SIGNING, predicate_type=None)
    yield added, None if there else _simple_signing(image, payload, making)
    signed = Statement(
        subjects=(Subject(name=signable.reference, digest=image),),
        predicate_type=SIGNED,
        predicate={},
    )
    for said in (signed, *signable.statements):
        if not said.about(image):
            raise ValueError(f"a statement of {said.predicate_type} is not about {image}")
        envelope = statement.envelope(said)
        for kind in (Kind.DSSE_ATTACHMENT, Kind.BUNDLE):
            if said is signed and kind is Kind.DSSE_ATTACHMENT:
                continue  # its older form is the simple signing
            added = Added(image=image, kind=kind, predicate_type=said.predicate_type)
            if making.has(found, kind, envelope.signed):
                yield added, None
            elif kind is Kind.BUNDLE:
                yield added, _bundle(signable.image, envelope, said.predicate_type, making)
            else:
                yield added, _attestation(image, envelope, said.predicate_type, making)


def _simple_signing(image: Digest, payload: bytes, making: _Making) -> Listed:
    layer = carriers.simple_signing_layer(payload, making.signature(payload))
    return Listed(
        tag=carriers.signature_tag(image),
        form=Form.LAYERS,
        entries=(layer,),
        blobs=(carriers.CONFIG, payload),
    )


def _attestation(image: Digest, envelope: Envelope, kind: str, making: _Making) -> Listed:
    raw = dsse.encode(making.signed(envelope))
    return Listed(
        tag=carriers.attestation_tag(image),
        form=Form.LAYERS,
        entries=(carriers.attestation_layer(raw, kind),),
        blobs=(carriers.CONFIG, raw),
    )


def _bundle(image: Descriptor, envelope: Envelope, kind: str, making: _Making) -> Referring:
    hint = making.signer.public.hint
    raw = bundle.encode(Bundle(envelope=making.signed(envelope), hint=hint))
    manifest = carriers.bundle_manifest(raw, kind, subject=image)
    return Referring(manifest=manifest, blobs=(artifact.EMPTY, raw))
