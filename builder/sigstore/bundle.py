"""Sigstore bundles, version 0.3, of signatures by keys: what cosign 3 writes and reads.

Sources: sigstore/protobuf-specs, protos/sigstore_bundle.proto and sigstore_common.proto, in the
JSON mapping of Protocol Buffers. That mapping lets a reader take other spellings (snake_case names,
base64url); nobody writes them, and here they are refused.
"""

from typing import Any

from builder import canonical
from builder.attest import dsse
from builder.attest.dsse import ENVELOPE_LIMIT, Envelope
from builder.errors import IntegrityError
from builder.value import value

MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
BUNDLE_LIMIT = ENVELOPE_LIMIT
LOG_ENTRIES_LIMIT = 32
_CERTIFICATES = {"certificate", "x509CertificateChain"}
_MATERIAL = {"publicKey", "tlogEntries", "timestampVerificationData"}


@value
class Bundle:
    """An envelope with exactly one signature. ``hint`` names the key that made it, to nobody's
    word (``PublicKey.hint``); empty where the bundle names none."""

    envelope: Envelope
    hint: str


def encode(bundle: Bundle) -> bytes:
    """The bundle's bytes: canonical JSON, the same for the same bundle.

    Raises:
        ValueError: Not one signature: readers take no other number.
    """
    if len(bundle.envelope.signatures) != 1:
        raise ValueError(f"a bundle takes one signature, got {len(bundle.envelope.signatures)}")
    return canonical.encode(
        {
            "mediaType": MEDIA_TYPE,
            "verificationMaterial": {"publicKey": {"hint": bundle.hint}, "tlogEntries": []},
            "dsseEnvelope": dsse.record(bundle.envelope),
        }
    )


def parse(raw: bytes, *, at: str) -> Bundle:
    """The bundle in ``raw``. Entries of transparency logs and timestamps may be there: they prove
    nothing here, and are not looked at.

    Raises:
        IntegrityError: It is none, or of another version; it is signed by a certificate; it has a
            bare signature instead of an envelope, or not exactly one; a key is unknown or there
            twice; too large.
    """
    document = canonical.decode(raw, at=at, limit=BUNDLE_LIMIT)
    if not isinstance(document, dict):
        raise IntegrityError(f"{at}: not a Sigstore bundle: expected an object")
    if document.get("mediaType") != MEDIA_TYPE:
        raise IntegrityError(
            f"{at}: mediaType: expected {MEDIA_TYPE!r}, got {_short(document.get('mediaType'))}"
        )
    if "messageSignature" in document:
        raise IntegrityError(
            f"{at}: the signature of a blob (messageSignature), which says nothing of what it is",
            hint="images and models are signed with a statement in an envelope: builder sign,"
            " cosign sign, model_signing sign",
        )
    _keys(document, {"mediaType", "verificationMaterial", "dsseEnvelope"}, at=at)
    hint = _hint(document["verificationMaterial"], at=f"{at}: verificationMaterial")
    envelope = dsse.from_json(document["dsseEnvelope"], at=f"{at}: dsseEnvelope")
    if len(envelope.signatures) != 1:
        raise IntegrityError(
            f"{at}: dsseEnvelope: {len(envelope.signatures)} signatures, a bundle has exactly one"
        )
    return Bundle(envelope=envelope, hint=hint)


def _hint(material: Any, *, at: str) -> str:
    if isinstance(material, dict) and _CERTIFICATES & set(material):
        raise IntegrityError(
            f"{at}: signed by a certificate, not by a key",
            hint="signatures without keys of their own (keyless) are not verified here",
        )
    if not isinstance(material, dict) or not {"publicKey"} <= set(material) <= _MATERIAL:
        raise IntegrityError(f"{at}: expected 'publicKey', and of the rest {sorted(_MATERIAL)}")
    entries = material.get("tlogEntries", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise IntegrityError(f"{at}.tlogEntries: expected a list of objects")
    if len(entries) > LOG_ENTRIES_LIMIT:
        raise IntegrityError(
            f"{at}.tlogEntries: {len(entries)} entries, the limit is {LOG_ENTRIES_LIMIT}"
        )
    if not isinstance(material.get("timestampVerificationData"), dict | None):
        raise IntegrityError(f"{at}.timestampVerificationData: expected an object")
    key = material["publicKey"]
    if not isinstance(key, dict) or not set(key) <= {"hint"}:
        raise IntegrityError(f"{at}.publicKey: expected 'hint' and nothing else")
    hint = key.get("hint", "")
    if not isinstance(hint, str):
        raise IntegrityError(f"{at}.publicKey.hint: expected a text, got {_short(hint)}")
    return hint


def _keys(document: dict[str, Any], wanted: set[str], *, at: str) -> None:
    if set(document) != wanted:
        raise IntegrityError(
            f"{at}: expected the keys {sorted(wanted)}, got {_short(sorted(document))}"
        )


def _short(got: object) -> str:
    """What was found instead, in a line."""
    text = repr(got)
    return text if len(text) <= 120 else f"{text[:120]}..."
