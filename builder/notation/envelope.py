"""What is signed of an image, and the envelope of the signature: JWS with its JSON serialisation.

Source: Notary Project, signature-specification.md, "Payload"; signature-envelope-jws.md.
"""

import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from builder import canonical
from builder.errors import IntegrityError
from builder.keys.signer import Signer
from builder.notation.certificate import Chain
from builder.oci import Descriptor
from builder.value import value

MEDIA_TYPE = "application/jose+json"
LIMIT = 256 << 10
"""The most bytes of one."""
_AGENT = "vllm-image-builder"
_SCHEME = "io.cncf.notary.signingScheme"
_TIME = "io.cncf.notary.signingTime"
_FIXED = {
    "alg": "ES256",
    "crit": [_SCHEME],
    "cty": "application/vnd.cncf.notary.payload.v1+json",
    _SCHEME: "notary.x509",
}
"""What of the protected header is the same in every signature."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_HALF = 32
"""Bytes of each of the two numbers of a signature on P-256 (RFC 7518, 3.4)."""


@value
class Signature:
    """What a verified signature says, besides of which image it is."""

    moment: datetime
    """When it was made, says whoever made it."""


def encode(image: Descriptor, chain: Chain, signer: Signer, *, now: datetime) -> bytes:
    """The envelope of ``signer``'s signature of ``image``. The same arguments give the same bytes,
    if the signer gives the same signature.

    Raises:
        EnvironmentFault, IntegrityError: As of the signer.
    """
    target = {"mediaType": image.media_type, "digest": str(image.digest), "size": image.size}
    payload = _text(canonical.encode({"targetArtifact": target}))
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    protected = _text(canonical.encode(_FIXED | {_TIME: moment}))
    r, s = decode_dss_signature(signer.sign(f"{protected}.{payload}".encode()))
    return canonical.encode(
        {
            "payload": payload,
            "protected": protected,
            "header": {
                "x5c": [b64encode(one).decode() for one in chain.certificates],
                "io.cncf.notary.signingAgent": _AGENT,
            },
            "signature": _text(r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")),
        }
    )


def verify(raw: bytes, image: Descriptor, chain: Chain, *, at: str) -> Signature:
    """What is signed in ``raw``, which must be a signature of ``image`` by the key of ``chain``.

    Nothing is looked at before the signature is verified, but for the form and the certificates.

    Raises:
        IntegrityError: Another form, algorithm or scheme; other certificates; not the key's
            signature; of another image; made when the certificates did not hold.
    """
    document = canonical.decode(raw, at=at, limit=LIMIT)
    _keys(document, {"payload", "protected", "header", "signature"}, at=at)
    _check_certificates(document["header"], chain, at=f"{at}: header")
    signature = _bytes(document["signature"], at=f"{at}: signature")
    if len(signature) != 2 * _HALF:
        raise IntegrityError(f"{at}: signature: expected {2 * _HALF} bytes, got {len(signature)}")
    protected = _bytes(document["protected"], at=f"{at}: protected")
    payload = _bytes(document["payload"], at=f"{at}: payload")
    numbers = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
    signed = f"{document['protected']}.{document['payload']}".encode()
    if not chain.public.verifies(encode_dss_signature(*numbers), signed):
        raise IntegrityError(f"{at}: not a signature of {chain.public.fingerprint}")
    moment = _moment(protected, at=f"{at}: protected")
    if not chain.since <= moment <= chain.until:
        raise IntegrityError(f"{at}: signed at {moment}, when its certificates did not hold")
    _check_target(payload, image, at=f"{at}: payload")
    return Signature(moment=moment)


def _check_certificates(header: Any, chain: Chain, *, at: str) -> None:
    if not isinstance(header, dict) or not isinstance(header.get("x5c"), list):
        raise IntegrityError(f"{at}: expected x5c, a list of certificates")
    given = []
    for number, text in enumerate(header["x5c"]):
        try:
            given.append(b64decode(text, validate=True))
        except (TypeError, ValueError) as error:
            raise IntegrityError(f"{at}.x5c[{number}]: not base64") from error
    if tuple(given) != chain.certificates:
        raise IntegrityError(f"{at}.x5c: other certificates than {chain.at}")


def _moment(protected: bytes, *, at: str) -> datetime:
    """When it was signed, of a header that says what ours say."""
    header = canonical.decode(protected, at=at, limit=LIMIT)
    _keys(header, {*_FIXED, _TIME}, at=at)
    for name, wanted in _FIXED.items():
        if header[name] != wanted:
            raise IntegrityError(f"{at}.{name}: expected {wanted!r}, got {header[name]!r:.100}")
    text = header[_TIME]
    try:
        if not isinstance(text, str) or not _MOMENT.fullmatch(text):
            raise ValueError(text)
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise IntegrityError(f"{at}.{_TIME}: no moment: {text!r:.100}") from error


def _check_target(payload: bytes, image: Descriptor, *, at: str) -> None:
    said = canonical.decode(payload, at=at, limit=LIMIT)
    _keys(said, {"targetArtifact"}, at=at)
    target = said["targetArtifact"]
    wanted = {"mediaType": image.media_type, "digest": str(image.digest), "size": image.size}
    if not isinstance(target, dict) or set(target) - {"annotations"} != set(wanted):
        raise IntegrityError(f"{at}.targetArtifact: expected the keys {sorted(wanted)}")
    for name, right in wanted.items():
        if target[name] != right or type(target[name]) is not type(right):
            raise IntegrityError(
                f"{at}.targetArtifact.{name}: another image: expected {right!r},"
                f" got {target[name]!r:.100}"
            )


def _keys(document: Any, wanted: set[str], *, at: str) -> None:
    if not isinstance(document, dict) or set(document) != wanted:
        raise IntegrityError(f"{at}: expected an object with the keys {sorted(wanted)}")


def _text(data: bytes) -> str:
    """base64url without padding (RFC 7515, 2)."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: Any, *, at: str) -> bytes:
    """The bytes of that, in its one spelling."""
    try:
        if not isinstance(text, str):
            raise TypeError
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (TypeError, ValueError) as error:
        raise IntegrityError(f"{at}: not base64url") from error
    if _text(data) != text:
        raise IntegrityError(f"{at}: not base64url in its one spelling")
    return data
