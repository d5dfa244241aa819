"""The manifests that carry signatures, and the tags by which they are found.

::

    sha256-HEX.sig   a manifest, a layer for each signature: simple signing
    sha256-HEX.att   a manifest, a layer for each signed statement: an envelope
    sha256-HEX       an index of what refers to the image, where a registry keeps no such list

Sources: cosign, specs/SIGNATURE_SPEC.md ("Storage", "Discovery") and specs/ATTESTATION_SPEC.md;
distribution-spec v1.1, "Referrers Tag Schema"; cosign, specs/BUNDLE_SPEC.md.
"""

from base64 import b64encode

from builder import artifact, canonical
from builder.attest import dsse
from builder.digest import Digest
from builder.oci import OCI_CONFIG, OCI_MANIFEST, Descriptor, Manifest
from builder.sigstore import bundle

SIMPLE_SIGNING = "application/vnd.dev.cosign.simplesigning.v1+json"
DSSE_ENVELOPE = "application/vnd.dsse.envelope.v1+json"
SIGNATURE = "dev.cosignproject.cosign/signature"
"""The annotation of a layer that holds a signature in base64, or nothing where the layer does."""
PREDICATE_TYPE = "predicateType"
BUNDLE_CONTENT = "dev.sigstore.bundle.content"
BUNDLE_PREDICATE_TYPE = "dev.sigstore.bundle.predicateType"
ATTACHED = "sha256-"
"""How the tags of all that lies beside an image begin; no image is to be named so."""

CONFIG = canonical.encode(
    {
        "architecture": "",
        "config": {},
        "os": "",
        "rootfs": {"diff_ids": [], "type": "layers"},
    }
)
"""The config of ``.sig`` and ``.att``: an image's, because readers refuse another type. It names no
layers, so that it is the same whatever signatures come to lie beside each other."""


def config() -> Descriptor:
    """The descriptor of :data:`CONFIG`."""
    return Descriptor(media_type=OCI_CONFIG, digest=Digest.of(CONFIG), size=len(CONFIG))


def signature_tag(image: Digest) -> str:
    """Where the simple signings of an image are."""
    return f"{ATTACHED}{image.hex}.sig"


def attestation_tag(image: Digest) -> str:
    """Where the envelopes about an image are."""
    return f"{ATTACHED}{image.hex}.att"


def referrers_tag(image: Digest) -> str:
    """Where the list of referrers of an image is, in a place that does not keep it by itself."""
    return f"{ATTACHED}{image.hex}"


def simple_signing_layer(payload: bytes, signature: bytes) -> Descriptor:
    """The layer of a signature over ``payload``, which is its content."""
    return Descriptor(
        media_type=SIMPLE_SIGNING,
        digest=Digest.of(payload),
        size=len(payload),
        annotations=((SIGNATURE, b64encode(signature).decode()),),
    )


def attestation_layer(envelope: bytes, predicate_type: str) -> Descriptor:
    """The layer of an envelope, which is its content."""
    return Descriptor(
        media_type=DSSE_ENVELOPE,
        digest=Digest.of(envelope),
        size=len(envelope),
        annotations=((SIGNATURE, ""), (PREDICATE_TYPE, predicate_type)),
    )


def simple_signature(layer: Descriptor, *, at: str) -> bytes:
    """The signature that stands beside a simple signing.

    Raises:
        IntegrityError: There is none, or it is not base64.
    """
    return dsse.unbase64(dict(layer.annotations).get(SIGNATURE), at=f"{at}: {SIGNATURE}")


def bundle_manifest(raw: bytes, predicate_type: str, *, subject: Descriptor) -> Manifest:
    """The manifest by which the bundle in ``raw`` refers to an image. Its config is the empty one
    (``artifact.EMPTY``)."""
    layer = Descriptor(media_type=bundle.MEDIA_TYPE, digest=Digest.of(raw), size=len(raw))
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": bundle.MEDIA_TYPE,
        "config": artifact.config().record(),
        "layers": [layer.record()],
        "subject": Descriptor(
            media_type=subject.media_type, digest=subject.digest, size=subject.size
        ).record(),
        "annotations": {BUNDLE_CONTENT: "dsse-envelope", BUNDLE_PREDICATE_TYPE: predicate_type},
    }
    return Manifest.parse(canonical.encode(document))


def referrer(manifest: Manifest) -> Descriptor:
    """The entry of a manifest in a list of referrers (distribution-spec, "Listing Referrers")."""
    kind = manifest.artifact_type or manifest.config.media_type
    return Descriptor(
        media_type=manifest.media_type,
        digest=manifest.digest,
        size=len(manifest.raw),
        annotations=manifest.annotations,
        extra=(("artifactType", kind),),
    )
