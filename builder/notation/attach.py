"""Signatures of Notation beside images: published, and found again."""

import json
from collections.abc import Sequence
from datetime import datetime

from builder import artifact, canonical
from builder.digest import Digest
from builder.errors import GoneError, IntegrityError
from builder.keys.signer import Signer
from builder.notation import envelope
from builder.notation.certificate import Chain
from builder.notation.envelope import Signature
from builder.oci import OCI_MANIFEST, Descriptor, Manifest
from builder.signatures.place import COUNT_LIMIT, FloodError, Place, Referring
from builder.value import value

ARTIFACT_TYPE = "application/vnd.cncf.notary.signature"
THUMBPRINTS = "io.cncf.notary.x509chain.thumbprint#S256"
"""The annotation by which readers choose what to look at."""


@value
class Attached:
    """The images that were signed, and how many had been before."""

    added: tuple[Digest, ...]
    present: int


def attach(
    images: Sequence[Descriptor],
    signer: Signer,
    chain: Chain,
    *,
    place: Place,
    again: Place,
    now: datetime,
) -> Attached:
    """Have every image signed by ``signer``, whose certificate is in ``chain``, and look whether
    that holds. What is there by the same certificates is left alone.

    Args:
        again: The same place, opened anew: nothing that was written is believed to be there.
        now: When it is signed.

    Raises:
        IntegrityError: The certificates are for another key; what was published does not hold.
        ExpiredError: It is not the time of the certificates.
        EnvironmentFault, NetworkError: As of the signer and the place. Nothing that is visible is
            half there, and doing it again completes it.
    """
    chain.check(signer.public, now=now)
    lacking = [image for image in images if _find(image, chain, place)[0] is None]
    made = [envelope.encode(image, chain, signer, now=now) for image in lacking]
    place.add(
        [referring(image, raw, chain.thumbprints) for image, raw in zip(lacking, made, strict=True)]
    )
    for image in images:
        found, refused = _find(image, chain, again)
        if found is None:
            raise IntegrityError(
                f"{again.at(image.digest)}: the signature of Notation does not hold:"
                f" {'; '.join(refused[:3]) or 'it is not there'}",
                hint="sign again; whoever may push there may have replaced it",
            )
    return Attached(
        added=tuple(image.digest for image in lacking), present=len(images) - len(lacking)
    )


def referring(image: Descriptor, raw: bytes, thumbprints: Sequence[str]) -> Referring:
    """The envelope in ``raw`` as what refers to an image, with those of its certificates."""
    empty = artifact.config()
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": Descriptor(
            media_type=ARTIFACT_TYPE, digest=empty.digest, size=empty.size
        ).record(),
        "layers": [
            Descriptor(
                media_type=envelope.MEDIA_TYPE, digest=Digest.of(raw), size=len(raw)
            ).record()
        ],
        "subject": Descriptor(
            media_type=image.media_type, digest=image.digest, size=image.size
        ).record(),
        "annotations": {THUMBPRINTS: json.dumps([*thumbprints], separators=(",", ":"))},
    }
    manifest = Manifest.parse(canonical.encode(document))
    return Referring(manifest=manifest, blobs=(artifact.EMPTY, raw))


def _find(image: Descriptor, chain: Chain, place: Place) -> tuple[Signature | None, list[str]]:
    """A signature of the image by the certificates, and why others that are listed are none."""
    listed = place.referrers(image.digest, ARTIFACT_TYPE)
    if len(listed) > COUNT_LIMIT:
        raise FloodError(
            f"{place.at(image.digest)}: {len(listed)} signatures, the limit is {COUNT_LIMIT}"
        )
    refused: list[str] = []
    for entry in dict.fromkeys(listed):
        try:
            raw = _envelope(entry, image, place)
            if raw is not None:
                return envelope.verify(raw, image, chain, at=place.at(entry.digest)), refused
        except FloodError:
            raise
        except (IntegrityError, GoneError) as error:
            refused.append(error.message)
    return None, refused


def _envelope(entry: Descriptor, image: Descriptor, place: Place) -> bytes | None:
    """The envelope of what is listed; ``None`` where that is something else."""
    at = place.at(entry.digest)
    manifest = place.manifest(entry.digest)
    if not isinstance(manifest, Manifest):
        return None
    if (manifest.artifact_type or manifest.config.media_type) != ARTIFACT_TYPE:
        return None
    if manifest.subject is None or manifest.subject.digest != image.digest:
        raise IntegrityError(f"{at}: does not refer to {image.digest}")
    if [layer.media_type for layer in manifest.layers] != [envelope.MEDIA_TYPE]:
        raise IntegrityError(f"{at}: expected one layer of {envelope.MEDIA_TYPE}")
    (layer,) = manifest.layers
    if layer.size > envelope.LIMIT:
        raise IntegrityError(f"{at}: {layer.size} bytes, the limit is {envelope.LIMIT}")
    return place.blob(layer)
