"""All signatures of an image in a place, of every form, none of them verified.

What cannot be read does not hide the rest: anybody who may push there could put it there. It is
told, and whoever verifies decides with what is left.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

from builder.attest import dsse
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.oci import OCI_EMPTY, Descriptor, Manifest
from builder.signatures.found import Found, Kind
from builder.signatures.place import BLOB_LIMIT, COUNT_LIMIT, TOTAL_LIMIT, FloodError, Place
from builder.sigstore import bundle, carriers, listing
from builder.sigstore.listing import Form
from builder.value import value


@value
class Refused:
    """Something attached to an image that is no signature that we read, and why."""

    at: str
    reason: str


@value
class Collected:
    """What is attached to an image: in the order of the forms, and in each as it is listed."""

    found: tuple[Found, ...]
    refused: tuple[Refused, ...] = ()


def collect(image: Digest, place: Place) -> Collected:
    """The signatures of ``image`` in ``place``. An image that nobody signed has none: that is a
    result. Attachments that are no signatures (SBOMs, signatures of other systems) are passed by.

    Raises:
        FloodError: More than ``COUNT_LIMIT`` in one form, or more than ``TOTAL_LIMIT`` bytes under
            them.
        IntegrityError: A tag of signatures stands for something else.
        NetworkError, AuthError, RateLimitError, OfflineError: The place does not answer.
    """
    with ThreadPoolExecutor(max_workers=3) as pool:
        parts = list(
            pool.map(
                lambda read: list(read(image, place)), (_simple_signings, _attestations, _bundles)
            )
        )
    results = list(chain.from_iterable(parts))
    return Collected(
        found=tuple(item for item in results if isinstance(item, Found)),
        refused=tuple(item for item in results if isinstance(item, Refused)),
    )


class _Reader:
    """Reads from a place until it has been enough."""

    def __init__(self, place: Place, *, at: str) -> None:
        self.place = place
        self.at = at
        self._left = TOTAL_LIMIT
        self._signatures = 0

    def take(self, size: int) -> None:
        """Count bytes that are about to be read, or were."""
        self._left -= size
        if self._left < 0:
            raise FloodError(f"{self.at}: over {TOTAL_LIMIT} bytes of signatures")

    def take_signatures(self, count: int, size: int) -> None:
        """Count the signatures over one content of that size, each of which will be tried with each
        key: as if each came with a content of its own."""
        self._signatures += count
        _check_count(self._signatures, at=self.at)
        self.take((count - 1) * size)

    def blob(self, descriptor: Descriptor, *, at: str) -> bytes:
        """A blob of a size that is allowed."""
        if descriptor.size > BLOB_LIMIT:
            raise IntegrityError(f"{at}: {descriptor.size} bytes, the limit is {BLOB_LIMIT}")
        self.take(descriptor.size)
        return self.place.blob(descriptor)


def _attempt(read: Callable[[], Iterator[Found]], *, at: str) -> Iterator[Found | Refused]:
    """What is read, or why it cannot be."""
    try:
        yield from list(read())
    except FloodError:
        raise
    except (IntegrityError, GoneError) as error:
        yield Refused(at=at, reason=error.message)


def _layers(reader: _Reader, tag: str, media_type: str) -> list[tuple[Descriptor, str]]:
    """The layers of that type under a tag, each with what messages call it."""
    document = reader.place.tagged(tag)
    layers = listing.entries(document, Form.LAYERS, at=reader.at)
    _check_count(len(layers), at=reader.at)
    return [
        (layer, f"{reader.at}: layers[{number}]")
        for number, layer in enumerate(layers)
        if layer.media_type == media_type
    ]


def _check_count(count: int, *, at: str) -> None:
    if count > COUNT_LIMIT:
        raise FloodError(f"{at}: {count} signatures, the limit is {COUNT_LIMIT}")


def _simple_signings(image: Digest, place: Place) -> Iterator[Found | Refused]:
    tag = carriers.signature_tag(image)
    reader = _Reader(place, at=place.at(tag))
    for layer, at in _layers(reader, tag, carriers.SIMPLE_SIGNING):
        yield from _attempt(partial(_simple_signing, image, layer, reader, at), at=at)


def _simple_signing(image: Digest, layer: Descriptor, reader: _Reader, at: str) -> Iterator[Found]:
    signature = carriers.simple_signature(layer, at=at)
    yield Found(
        kind=Kind.SIMPLE_SIGNING,
        image=image,
        signed=reader.blob(layer, at=at),
        signature=signature,
        hint="",
        at=at,
    )


def _attestations(image: Digest, place: Place) -> Iterator[Found | Refused]:
    tag = carriers.attestation_tag(image)
    reader = _Reader(place, at=place.at(tag))
    for layer, at in _layers(reader, tag, carriers.DSSE_ENVELOPE):
        yield from _attempt(partial(_attestation, image, layer, reader, at), at=at)


def _attestation(image: Digest, layer: Descriptor, reader: _Reader, at: str) -> Iterator[Found]:
    envelope = dsse.parse(reader.blob(layer, at=at), at=at)
    reader.take_signatures(len(envelope.signatures), layer.size)
    signed = envelope.signed
    for signature in envelope.signatures:
        yield Found(
            kind=Kind.DSSE_ATTACHMENT,
            image=image,
            signed=signed,
            signature=signature.sig,
            hint=signature.keyid,
            at=at,
            envelope=envelope,
        )


def _bundles(image: Digest, place: Place) -> Iterator[Found | Refused]:
    reader = _Reader(place, at=f"{place.at(image)}: referrers")
    listed = place.referrers(image, bundle.MEDIA_TYPE)
    _check_count(len(listed), at=reader.at)
    for entry in dict.fromkeys(listed):
        at = place.at(entry.digest)
        yield from _attempt(partial(_bundle, image, entry, reader, at), at=at)


def _bundle(image: Digest, entry: Descriptor, reader: _Reader, at: str) -> Iterator[Found]:
    manifest = reader.place.manifest(entry.digest)
    reader.take(len(manifest.raw))
    if not isinstance(manifest, Manifest) or manifest.artifact_type != bundle.MEDIA_TYPE:
        if entry.artifact_type in (None, OCI_EMPTY):
            return  # an artifact of another kind, in a list that does not tell kinds
        raise IntegrityError(f"{at}: listed as a bundle, which it does not say of itself")
    if manifest.subject is None or manifest.subject.digest != image:
        subject = "nothing" if manifest.subject is None else manifest.subject.digest
        raise IntegrityError(f"{at}: listed as referring to {image}, but refers to {subject}")
    if [layer.media_type for layer in manifest.layers] != [bundle.MEDIA_TYPE]:
        raise IntegrityError(f"{at}: expected one layer, a bundle")
    parsed = bundle.parse(reader.blob(manifest.layers[0], at=at), at=at)
    yield Found(
        kind=Kind.BUNDLE,
        image=image,
        signed=parsed.envelope.signed,
        signature=parsed.envelope.signatures[0].sig,
        hint=parsed.hint,
        at=at,
        envelope=parsed.envelope,
    )
