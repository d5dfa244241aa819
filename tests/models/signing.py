"""Signatures of models as model_signing 1.1 makes them, without it (``make real`` proves that it
takes them, and that ours takes its own)."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from builder import canonical
from builder.attest.dsse import IN_TOTO, Envelope, Signature
from builder.attest.statement import STATEMENT_V1
from builder.digest import Digest, Hasher
from builder.keys.signer import Signer
from builder.models.signature import PREDICATE_TYPE
from builder.sigstore import bundle
from builder.sigstore.bundle import Bundle
from tests.signers import p256

_SIGNER = p256()
IGNORED = ("model.sig", ".git", ".gitattributes", ".github", ".gitignore")
"""What model_signing leaves out by itself: the signature's own file, and git's."""


def resources(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Each file by itself, in the order of their names."""
    return [
        {"name": path, "algorithm": "sha256", "digest": Digest.of(data).hex}
        for path, data in sorted(files.items())
    ]


def root(listed: list[dict[str, Any]]) -> str:
    """The digest of the digests, in their order; names are not in it."""
    return Hasher(bytes.fromhex(item["digest"]) for item in listed).digest().hex


def predicate(files: Mapping[str, bytes], **fields: Any) -> dict[str, Any]:
    """What is said of the files; ``fields`` are put over it."""
    serialization = {
        "method": "files",
        "hash_type": "sha256",
        "allow_symlinks": False,
        "ignore_paths": list(IGNORED),
    }
    return {"serialization": serialization, "resources": resources(files)} | fields


def statement(files: Mapping[str, bytes], **fields: Any) -> dict[str, Any]:
    """The statement about the files; ``fields`` are put over it."""
    said = predicate(files)
    subject = {"name": "tiny", "digest": {"sha256": root(said["resources"])}}
    return {
        "_type": STATEMENT_V1,
        "subject": [subject],
        "predicateType": PREDICATE_TYPE,
        "predicate": said,
    } | fields


def signed(said: Mapping[str, Any], by: Signer | None = None, *, hint: str | None = None) -> bytes:
    """A statement in its bundle. The key is named by the digest of its PEM, unless ``hint`` is
    given."""
    signer = by or _SIGNER
    envelope = Envelope(payload_type=IN_TOTO, payload=canonical.encode(said))
    signature = Signature(keyid="", sig=signer.sign(envelope.signed))
    whole = Envelope(payload_type=IN_TOTO, payload=envelope.payload, signatures=(signature,))
    named = Digest.of(signer.public.pem).hex if hint is None else hint
    return bundle.encode(Bundle(envelope=whole, hint=named))


def model_signature(files: Mapping[str, bytes], by: Signer | None = None) -> bytes:
    """The signature of a directory with these files."""
    return signed(statement(files), by)


def altered(raw: bytes, payload: bytes) -> bytes:
    """A bundle with another payload under its signature."""
    document = canonical.decode(raw, at="a bundle")
    document["dsseEnvelope"]["payload"] = b64encode(payload).decode()
    return canonical.encode(document)
