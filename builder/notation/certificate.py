"""The certificate of a key, and those that lead from it to a root.

Source: Notary Project, signature-specification.md, "Certificate Requirements".
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose

from builder.digest import Digest
from builder.errors import ExpiredError, IntegrityError, UsageError
from builder.keys.public import KeyType, PublicKey, public_key, refusing_deprecated
from builder.value import field, value

CHAIN_LIMIT = 64 << 10
"""The most bytes that a file of certificates may have."""
_COUNT_LIMIT = 10
_HASHES = {"sha256", "sha384", "sha512"}
_OTHER_PURPOSES = {
    Purpose.ANY_EXTENDED_KEY_USAGE,
    Purpose.SERVER_AUTH,
    Purpose.EMAIL_PROTECTION,
    Purpose.TIME_STAMPING,
    Purpose.OCSP_SIGNING,
}
_OTHER_USAGES = (
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
)
_HINT = "builder key certificate makes one that fits"
_ORDER = "the file has the certificate of the key, then its issuers in turn, to the root"
ExtensionT = TypeVar("ExtensionT", bound=x509.ExtensionType)


@value
class Chain:
    """A certificate and its issuers in turn, the last of which issued itself. Each vouches for the
    one before it, all are made for what they do here; whether it is their time is for
    :meth:`check`."""

    certificates: tuple[bytes, ...] = field(repr=False)
    """DER, the one of the key first."""
    public: PublicKey
    since: datetime
    """From when all of them hold."""
    until: datetime
    """To when all of them do, that second included."""
    at: str = field(compare=False)
    """The file, for messages."""

    @property
    def thumbprints(self) -> tuple[str, ...]:
        """The sha256 of each, in hex."""
        return tuple(Digest.of(one).hex for one in self.certificates)

    @property
    def self_signed(self) -> bool:
        """Whether nobody else vouches for it: to trust it is to trust the key."""
        return len(self.certificates) == 1

    @property
    def pem(self) -> bytes:
        """All of them, in their order."""
        return b"".join(
            x509.load_der_x509_certificate(one).public_bytes(Encoding.PEM)
            for one in self.certificates
        )

    def check(self, key: PublicKey, *, now: datetime) -> None:
        """Refuse what a signature of ``key`` at ``now`` could not be verified with.

        Raises:
            IntegrityError: It is for another key.
            UsageError: Notation has no signatures of such a key.
            ExpiredError: It is not yet, or no longer, its time.
        """
        require_p256(key, at=key.fingerprint)
        if key != self.public:
            raise IntegrityError(
                f"{self.at}: expected a certificate of {key.fingerprint},"
                f" got one of {self.public.fingerprint}",
                hint="builder key certificate makes one for a key",
            )
        if not self.since <= now <= self.until:
            raise ExpiredError(
                f"{self.at}: holds from {_told(self.since)} to {_told(self.until)},"
                f" and it is {_told(now)}",
                hint="builder key certificate makes a new one; what is signed is signed again",
            )


def read_chain(data: bytes, *, at: str) -> Chain:
    """The certificates in ``data``: PEM, that of the key first, then each one's issuer, to a root.

    Raises:
        IntegrityError: There is none, or they are damaged; one does not vouch for the one before
            it; the last did not issue itself; one is made for something else.
        UsageError: It is for an Ed25519 key.
    """
    if len(data) > CHAIN_LIMIT:
        raise IntegrityError(f"{at}: {len(data)} bytes, the limit is {CHAIN_LIMIT}", hint=_HINT)
    if b"PRIVATE KEY" in data:
        raise IntegrityError(
            f"{at}: has a private key, where only certificates are wanted",
            hint="leave the key where it is kept: --key names it",
        )
    try:
        with refusing_deprecated(at):
            return _chain(x509.load_pem_x509_certificates(data), at=at)
    except (
        ValueError,
        TypeError,
        UnsupportedAlgorithm,
        x509.InvalidVersion,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ) as error:
        raise IntegrityError(f"{at}: not certificates in PEM: {error}", hint=_HINT) from error


def _chain(found: Sequence[x509.Certificate], *, at: str) -> Chain:
    if len(found) > _COUNT_LIMIT:
        raise IntegrityError(
            f"{at}: {len(found)} certificates, the limit is {_COUNT_LIMIT}", hint=_ORDER
        )
    leaf = found[0]
    key = public_key(leaf.public_key(), at=at)
    require_p256(key, at=at)
    for number, one in enumerate(found):
        where = at if len(found) == 1 else f"{at}: certificate {number + 1}"
        _check_form(one, at=where)
        if number:
            _check_issuer(one, below=number - 1, at=where)
        else:
            _check_leaf(one, at=where)
        last = number == len(found) - 1
        _check_vouched(one, one if last else found[number + 1], last=last, at=where)
    return Chain(
        certificates=tuple(one.public_bytes(Encoding.DER) for one in found),
        public=key,
        since=max(one.not_valid_before_utc for one in found),
        until=min(one.not_valid_after_utc for one in found),
        at=at,
    )


def require_p256(key: PublicKey, *, at: str) -> None:
    """Refuse a key that Notation has no signature for.

    Raises:
        UsageError: It is an Ed25519 key.
    """
    if key.type is not KeyType.ECDSA_P256:
        raise UsageError(
            f"{at}: Notation has no signatures of {key.type} keys",
            hint="builder key generate makes an ecdsa-p256 key, which every reader takes",
        )


def _check_form(one: x509.Certificate, *, at: str) -> None:
    """What all certificates must be."""
    if one.version is not x509.Version.v3:
        raise IntegrityError(f"{at}: expected a certificate of version 3", hint=_HINT)
    made = one.signature_hash_algorithm
    if made is None or made.name not in _HASHES:
        name = "none" if made is None else made.name
        raise IntegrityError(
            f"{at}: signed over {name}, expected sha256, sha384 or sha512", hint=_HINT
        )
    key = one.public_key()
    if not (
        (isinstance(key, RSAPublicKey) and key.key_size >= 2048)
        or (isinstance(key, EllipticCurvePublicKey) and key.key_size >= 256)
    ):
        raise IntegrityError(
            f"{at}: expected a key of ECDSA (256 bits) or RSA (2048), or larger", hint=_HINT
        )
    for extension in one.extensions:
        if extension.critical and isinstance(extension.value, x509.UnrecognizedExtension):
            oid = extension.oid.dotted_string
            raise IntegrityError(f"{at}: a critical extension that is not known: {oid}", hint=_HINT)


def _check_leaf(one: x509.Certificate, *, at: str) -> None:
    usage = _key_usage(one, at=at)
    others = [name for name in _OTHER_USAGES if getattr(usage, name)]
    if not usage.digital_signature or others:
        raise IntegrityError(
            f"{at}: expected the key usage digitalSignature alone,"
            f" got {', '.join(_usages(usage)) or 'none'}",
            hint=_HINT,
        )
    purposes = set(_extension(one, x509.ExtendedKeyUsage) or {Purpose.CODE_SIGNING})
    if Purpose.CODE_SIGNING not in purposes or purposes & _OTHER_PURPOSES:
        told = ", ".join(sorted(purpose.dotted_string for purpose in purposes))
        raise IntegrityError(
            f"{at}: expected the extended key usage codeSigning alone, got {told}", hint=_HINT
        )
    constraints = _extension(one, x509.BasicConstraints)
    if constraints is not None and constraints.ca:
        raise IntegrityError(
            f"{at}: the certificate of an authority, which signs no images",
            hint=_ORDER,
        )


def _check_issuer(one: x509.Certificate, *, below: int, at: str) -> None:
    """``below`` counts the issuers between it and the certificate of the key."""
    constraints = _extension(one, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise IntegrityError(f"{at}: not the certificate of an authority", hint=_ORDER)
    if constraints.path_length is not None and constraints.path_length < below:
        raise IntegrityError(
            f"{at}: allows {constraints.path_length} authorities below it, and there are {below}",
            hint=_ORDER,
        )
    if not _key_usage(one, at=at).key_cert_sign:
        raise IntegrityError(f"{at}: an authority without the key usage keyCertSign", hint=_ORDER)


def _check_vouched(one: x509.Certificate, issuer: x509.Certificate, *, last: bool, at: str) -> None:
    try:
        one.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError) as error:
        if last:
            raise IntegrityError(
                f"{at}: did not issue itself, and its issuer does not follow",
                hint=_ORDER,
            ) from error
        raise IntegrityError(f"{at}: not issued by the one that follows", hint=_ORDER) from error


def _key_usage(one: x509.Certificate, *, at: str) -> x509.KeyUsage:
    """Its key usage, which has to be there and to be critical."""
    for extension in one.extensions:
        if isinstance(extension.value, x509.KeyUsage):
            if not extension.critical:
                raise IntegrityError(f"{at}: its key usage is not critical", hint=_HINT)
            return extension.value
    raise IntegrityError(f"{at}: has no key usage", hint=_HINT)


def _extension(one: x509.Certificate, kind: type[ExtensionT]) -> ExtensionT | None:
    return next((each.value for each in one.extensions if isinstance(each.value, kind)), None)


def _usages(usage: x509.KeyUsage) -> Iterator[str]:
    names = ("digital_signature", "content_commitment", *_OTHER_USAGES)
    return (name for name in names if getattr(usage, name))


def _told(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
