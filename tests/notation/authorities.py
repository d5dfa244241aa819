"""Certificates of every kind, right and wrong: made anew in each run, or the same each time."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.signers import MemorySigner, p256

NOW = datetime(2027, 6, 15, 12, 30, 5, tzinfo=UTC)
CODE_SIGNING = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING])
Extension = tuple[x509.ExtensionType, bool]


def usage(*names: str) -> x509.KeyUsage:
    every = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{name: name in names for name in every})


LEAF: tuple[Extension, ...] = ((usage("digital_signature"), True), (CODE_SIGNING, False))


def authority(path_length: int | None = None) -> tuple[Extension, ...]:
    return (
        (x509.BasicConstraints(ca=True, path_length=path_length), True),
        (usage("key_cert_sign"), True),
    )


def certificate(
    key: Any,
    *,
    by: Any,
    name: str = "leaf",
    issuer: str | None = None,
    extensions: Iterable[Extension] = LEAF,
    since: datetime = NOW - timedelta(days=1),
    until: datetime = NOW + timedelta(days=1),
    hashed: Any = None,
) -> bytes:
    """One certificate, PEM: for ``key``, signed by ``by`` (both of cryptography)."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer or name))
        .public_key(key.public_key())
        .serial_number(1000 + len(name))
        .not_valid_before(since)
        .not_valid_after(until)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    fixed = isinstance(by, EllipticCurvePrivateKey) or None
    return builder.sign(by, hashed or SHA256(), ecdsa_deterministic=fixed).public_bytes(
        Encoding.PEM
    )


def named(name: str) -> x509.Name:
    return x509.Name.from_rfc4514_string(f"CN={name},O=Acme,ST=Berlin,C=DE")


def issued(signer: MemorySigner, *, now: datetime = NOW, path_length: int | None = None) -> bytes:
    """A chain of three: the signer's certificate, an authority's, a root's."""
    root, middle = p256("root").private, p256("middle").private
    days: dict[str, Any] = {"since": now - timedelta(days=1), "until": now + timedelta(days=1)}
    return b"".join(
        (
            certificate(signer.private, by=middle, issuer="middle", **days),
            certificate(
                middle,
                by=root,
                name="middle",
                issuer="root",
                extensions=authority(path_length),
                **days,
            ),
            certificate(root, by=root, name="root", extensions=authority(), **days),
        )
    )


def various(signer: MemorySigner, *, since: datetime, until: datetime) -> dict[str, bytes]:
    """Chains of every kind that is right."""
    mine, other = signer.private, p256("authority").private
    rsa: Any = generate_private_key(public_exponent=65537, key_size=2048)
    days: dict[str, Any] = {"since": since, "until": until}
    signs = usage("digital_signature"), True
    more = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0"), False
    of_both = usage("digital_signature", "content_commitment"), True
    loose = (
        (x509.BasicConstraints(ca=True, path_length=None), False),
        (usage("key_cert_sign", "crl_sign", "digital_signature"), True),
    )
    return {
        "of an authority below a root": issued(signer, now=since + (until - since) / 2),
        "without a purpose": certificate(mine, by=mine, extensions=(signs,), **days),
        "a critical purpose": certificate(
            mine, by=mine, extensions=(signs, (CODE_SIGNING, True)), **days
        ),
        "a commitment": certificate(mine, by=mine, extensions=(of_both,), **days),
        "something unknown": certificate(mine, by=mine, extensions=(signs, more), **days),
        "of an RSA authority": certificate(mine, by=rsa, issuer="rsa", **days)
        + certificate(rsa, by=rsa, name="rsa", extensions=authority(0), **days),
        "of a loose authority": certificate(mine, by=other, issuer="loose", **days)
        + certificate(other, by=other, name="loose", extensions=loose, **days),
    }
