"""An image, its signatures, and all that is demanded of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from builder.attest.statement import Statement
from builder.digest import Digest
from builder.errors import (
    BuilderError,
    IntegrityError,
    PolicyError,
    SignatureError,
    UnsignedError,
    UntrustedError,
)
from builder.keys.counted import Counted
from builder.keys.public import PublicKey
from builder.oci import Manifest
from builder.signatures.collect import Refused, collect
from builder.signatures.place import Place
from builder.signatures.publish import SIGNED
from builder.statements import PREDICATE_TYPES, Kind
from builder.value import field, value
from builder.verification.chain import (
    SaidLayer,
    check_documents,
    check_files,
    layers_of,
)
from builder.verification.vouched import Examined, Vouched, by_repository, examine

IMAGE = "image"
"""What is demanded of the image itself: that somebody says "this is it", in any form."""

AtHand = Callable[[Digest], Iterator[bytes] | None]
"""The bytes of a blob, ``None`` where they are not here. Nobody has verified them."""

Enough = Callable[[str, Sequence[PublicKey]], Counted]
"""Which of these keys count for something that is demanded; the text says what, and of which image.
Raises UntrustedError, or another PolicyError, where they are not enough."""


@value
class Verified:
    """An image that is what it is said to be.

    ``claims`` has, for each thing that was demanded, who vouches for it and counts; ``layers`` what
    the manifest statement says, where one was demanded. ``remarks`` are sentences for people.
    """

    image: Digest
    claims: Mapping[str, Vouched]
    layers: tuple[SaidLayer, ...] = field(default=(), repr=False)
    files: int = 0
    """How many files were read and are what the statement says."""
    absent: int = 0
    """How many layers of ours have files and were not here to be read."""
    remarks: tuple[str, ...] = ()


def _nothing(_: Digest) -> Iterator[bytes] | None:
    return None


def any_of(keys: Iterable[PublicKey]) -> Enough:
    """One key will do, whichever: where there is no policy but some keys."""
    known = tuple(keys)

    def enough(what: str, made_by: Sequence[PublicKey]) -> Counted:
        if counted := tuple(key for key in made_by if key in known):
            return Counted(keys=counted)
        names = ", ".join(key.fingerprint for key in known)
        raise UntrustedError(f"{what}: signed by none of {names}")

    return enough


def verify(
    image: Digest,
    place: Place,
    *,
    keys: Iterable[PublicKey],
    enough: Enough,
    demanded: Sequence[Kind] = tuple(Kind),
    at_hand: AtHand = _nothing,
) -> Verified:
    """Verify an image by what lies beside it in ``place``.

    Args:
        keys: Those that may vouch for anything. The policy says for what.
        enough: The policy.
        demanded: The statements that must be there, beside a signature of the image itself.
        at_hand: Layers of ours that can be read here; their files are held to the statement, too.

    Raises:
        UnsignedError: Nobody signed it, or nobody says of it what is demanded.
        SignatureError: A signature that names a key of ours is not its, or is about something else,
            and nothing better is there.
        UntrustedError: Somebody signed it, and not those who should.
        IntegrityError: The image is not what its manifest statement says.
        GoneError: It is not there.
    """
    known = tuple(keys)
    collected = collect(image, place)
    examined = examine(collected.found, known)
    at, unread = place.at(image), _unread(collected.refused)
    if not collected.found:
        raise UnsignedError(
            f"{at}: nobody signed it{unread}",
            hint="builder sign signs what was built here; skopeo copy leaves signatures behind",
        )
    claims, told = _claims(image, examined, demanded, enough, unread=unread, at=at)
    layers: tuple[SaidLayer, ...] = ()
    if Kind.MANIFEST in demanded:
        layers = _held(image, claims[str(Kind.MANIFEST)], place, at=at)
    own = [layer for layer in layers if layer.step is not None and layer.files]
    read = [_files(layer, at_hand, at=at) for layer in own]
    refused = tuple(f"{item.at}: {item.reason}" for item in collected.refused)
    return Verified(
        image=image,
        claims=claims,
        layers=layers,
        files=sum(count or 0 for count in read),
        absent=read.count(None),
        remarks=(*told, *examined.doubtful, *refused),
    )


def _claims(
    image: Digest,
    examined: Examined,
    demanded: Sequence[Kind],
    enough: Enough,
    *,
    unread: str,
    at: str,
) -> tuple[Mapping[str, Vouched], tuple[str, ...]]:
    """What vouches for each thing that is demanded, and what is to be told of it."""
    # Only what says so is a signature of the image: that somebody scanned it, or said how it was
    # made, is none, though some tools take it for one.
    asked = {IMAGE: (None, SIGNED)} | {str(kind): (PREDICATE_TYPES[kind],) for kind in demanded}
    claims: dict[str, Vouched] = {}
    told: dict[str, None] = {}
    for what, types in asked.items():
        said = [item for item in examined.vouched if item.predicate_type in types]
        if not said:
            raise _missing(what, examined, unread, at=at)
        if what == IMAGE:
            said = [*by_repository(image, said)]
        claims[what], remarks = _best(f"{at}: {what}", said, enough)
        told |= dict.fromkeys(remarks)
    return claims, tuple(told)


def _files(layer: SaidLayer, at_hand: AtHand, *, at: str) -> int | None:
    """How many files of a layer were looked at; ``None`` where it is not at hand."""
    if (chunks := at_hand(layer.digest)) is None:
        return None
    from builder.verification.layers import index_of  # noqa: PLC0415 - where there is a layer

    return check_files(layer, index_of(layer, chunks, at=at), at=at)


def _best(at: str, said: Sequence[Vouched], enough: Enough) -> tuple[Vouched, tuple[str, ...]]:
    """What enough keys vouch for, with those that count alone, and what is to be told of others. Of
    two that differ neither is taken for the other: each needs its own keys. That others say
    something else, too, is no refusal: whoever has a key that counts no more could make every image
    untrusted by that. Where none is enough, what most keys vouch for says why."""
    refusals = []
    for item in sorted(said, key=lambda item: -len(item.keys)):
        try:
            counted = enough(at, item.keys)
        except PolicyError as error:
            refusals.append(error)
        else:
            return replace(item, keys=counted.keys), counted.remarks
    raise refusals[0]


def _unread(refused: Sequence[Refused]) -> str:
    """What is to be told of attachments that cannot be read, where what they may have said is
    missing."""
    if not refused:
        return ""
    more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
    return f"; an attachment{more} cannot be read: {refused[0].reason}"


def _missing(what: str, examined: Examined, unread: str, *, at: str) -> BuilderError:
    said = "no signature" if what == IMAGE else f"no {what} statement"
    if examined.doubtful:
        return SignatureError(f"{at}: {said} that holds: {examined.doubtful[0]}")
    if examined.vouched:
        return UnsignedError(
            f"{at}: {said} of a key that is trusted{unread}",
            hint="it is signed, and this is not said of it: builder sign says all of it",
        )
    return UntrustedError(
        f"{at}: {said} of a key that is trusted; {examined.strangers} are of others{unread}",
        hint="give the signer's key with --key, or have it in trust.yaml",
    )


def _held(image: Digest, claim: Vouched, place: Place, *, at: str) -> tuple[SaidLayer, ...]:
    """The image's documents, held to the manifest statement."""
    assert isinstance(claim.said, Statement)
    said = layers_of(claim.said.predicate, at=at)
    manifest = place.manifest(image)
    if not isinstance(manifest, Manifest):
        raise IntegrityError(f"{at}: a manifest statement about an index")
    config = place.blob(manifest.config)
    check_documents(said, claim.said.predicate, manifest, config, at=at)
    return said
