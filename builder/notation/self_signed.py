"""A certificate that a key makes for itself: the name of its owner, and nobody else's word."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_der_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from builder import canonical
from builder.digest import Digest
from builder.errors import UsageError
from builder.keys.signer import Signer
from builder.notation.certificate import Chain, read_chain, require_p256

_DEMANDED = {
    NameOID.COUNTRY_NAME: "C",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
}
"""What Notation looks for in the name of whoever signs."""
_SUBJECT_LIMIT = 1024
_EXAMPLE = "as in --subject 'CN=release,O=Acme,ST=Berlin,C=DE'"
_ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")  # RFC 5758, 3.2
_SEQUENCE, _BIT_STRING = 0x30, 0x03


def self_signed(signer: Signer, subject: str, *, now: datetime, days: int) -> Chain:
    """A certificate of ``signer``'s key, made by itself, from the beginning of today in UTC on. The
    same day, name and key give the same bytes where the signer gives the same signature.

    Args:
        signer: Its private half may be with somebody else: it signs as it signs anything.
        subject: A name as of RFC 4514, with C, ST and O.
        days: How long it holds.

    Raises:
        UsageError: An Ed25519 key; a name that Notation does not take.
        EnvironmentFault, IntegrityError: As of the signer.
    """
    require_p256(signer.public, at=signer.public.fingerprint)
    name = _name(subject)
    since = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    identity = canonical.encode([signer.public.fingerprint, subject, since.isoformat(), days])
    public = load_der_public_key(signer.public.spki)
    assert isinstance(public, EllipticCurvePublicKey)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(1 + int(Digest.of(identity).hex[:38], 16))
        .not_valid_before(since)
        .not_valid_after(since + timedelta(days=days, seconds=-1))
        .add_extension(_usage(), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    # The library signs with keys at hand alone: what is to be signed is taken from what a key for
    # nothing else has signed.
    draft = builder.sign(generate_private_key(SECP256R1()), SHA256()).tbs_certificate_bytes
    signature = _der(_BIT_STRING, b"\0" + signer.sign(draft))
    made = x509.load_der_x509_certificate(_der(_SEQUENCE, draft + _ECDSA_SHA256 + signature))
    return read_chain(made.public_bytes(Encoding.PEM), at="a new certificate")


def _usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(subject: str) -> x509.Name:
    if len(subject) > _SUBJECT_LIMIT:
        raise UsageError(
            f"--subject: {len(subject)} characters, the limit is {_SUBJECT_LIMIT}", hint=_EXAMPLE
        )
    try:
        name = x509.Name.from_rfc4514_string(subject)
    except ValueError as error:
        told = str(error) or "expected parts as in RFC 4514, NAME=TEXT with commas between them"
        raise UsageError(f"--subject: {subject!r}: {told}", hint=_EXAMPLE) from error
    kinds = [attribute.oid for attribute in name]
    lacking = [short for oid, short in _DEMANDED.items() if oid not in kinds]
    if lacking:
        raise UsageError(
            f"--subject: {subject!r} lacks {', '.join(lacking)}, which Notation demands",
            hint=_EXAMPLE,
        )
    if len({*kinds}) != len(kinds) or len(name.rdns) != len(kinds):
        raise UsageError(f"--subject: {subject!r}: expected each part once", hint=_EXAMPLE)
    texts = [str(attribute.value) for attribute in name]
    if not all(text.strip() and text.isprintable() for text in texts):
        raise UsageError(
            f"--subject: {subject!r}: expected printable text in each part", hint=_EXAMPLE
        )
    return name


def _der(tag: int, content: bytes) -> bytes:
    """A value in DER (X.690, 8.1)."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
