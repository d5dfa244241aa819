"""Public keys: read from what other tools write, named, and used to check signatures."""

import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.utils import CryptographyDeprecationWarning

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.value import field, value

KEY_LIMIT = 16 << 10


class KeyType(StrEnum):
    """The kinds of keys there are, as policies name them."""

    ECDSA_P256 = "ecdsa-p256"
    ED25519 = "ed25519"


@value
class PublicKey:
    """A public key. Two are the same key where their SPKI is: that is what thresholds count."""

    type: KeyType
    spki: bytes = field(repr=False)
    """SubjectPublicKeyInfo, DER (RFC 5280, 4.1)."""
    fingerprint: str = field(compare=False)
    """As ``ssh-keygen -l`` shows it: ``SHA256:...``."""

    @property
    def pem(self) -> bytes:
        """The SPKI as PEM: what cosign calls a public key."""
        text = b64encode(self.spki).decode()
        lines = [text[start : start + 64] for start in range(0, len(text), 64)]
        return "\n".join(
            ("-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", "")
        ).encode()

    @property
    def openssh(self) -> bytes:
        """The line that OpenSSH has for it, without a comment."""
        key: Any = serialization.load_der_public_key(self.spki)
        line: bytes = key.public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        return line + b"\n"

    @property
    def hint(self) -> str:
        """What Sigstore bundles name a key by: base64 of the sha256 of its SPKI."""
        return b64encode(bytes.fromhex(Digest.of(self.spki).hex)).decode()

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether ``signature`` is this key's over ``message``: DER (ECDSA over SHA-256), or 64
        bytes (Ed25519)."""
        key: Any = serialization.load_der_public_key(self.spki)
        try:
            if self.type is KeyType.ED25519:
                key.verify(signature, message)
            else:
                key.verify(signature, message, ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True


def read_public_key(data: bytes, *, at: str) -> PublicKey:
    """The key in ``data``: PEM of an SPKI, or a line of OpenSSH (``ssh-ed25519 ...``,
    ``ecdsa-sha2-nistp256 ...``).

    Raises:
        IntegrityError: It is neither; it is a private key; it is of another kind, size or curve;
            there is more than one.
    """
    if len(data) > KEY_LIMIT:
        raise IntegrityError(f"{at}: {len(data)} bytes, the limit for a key is {KEY_LIMIT}")
    if b"PRIVATE KEY" in data:
        raise IntegrityError(
            f"{at}: a private key, where a public one is wanted",
            hint="builder key export prints the public half",
        )
    try:
        with refusing_deprecated(at):
            if data.startswith((b"ssh-", b"ecdsa-")) and b"\n" not in data.strip():
                return public_key(serialization.load_ssh_public_key(data.strip()), at=at)
            if data.count(b"-----BEGIN ") != 1:
                raise IntegrityError(
                    f"{at}: expected one key, as PEM or as a line of OpenSSH",
                    hint="builder key export NAME prints that of a key of yours",
                )
            return public_key(serialization.load_pem_public_key(data), at=at)
    except (ValueError, UnsupportedAlgorithm, NotImplementedError) as error:
        # The last is what cryptography has for a point of OpenSSH's that is compressed.
        raise IntegrityError(f"{at}: not a public key: {error}") from error


@contextmanager
def refusing_deprecated(at: str) -> Iterator[None]:
    """What :mod:`cryptography` still reads and warns of is refused: it will not for long.

    Raises:
        IntegrityError: It warned.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", CryptographyDeprecationWarning)
        try:
            yield
        except CryptographyDeprecationWarning as warning:
            hint = "make another: it is damaged, or of a kind that is going out of use"
            raise IntegrityError(f"{at}: {warning}", hint=hint) from warning


def public_key(key: object, *, at: str) -> PublicKey:
    """A key of :mod:`cryptography` as ours.

    Raises:
        IntegrityError: It is not one of :class:`KeyType`.
    """
    kind = _kind(key)
    if kind is None or not isinstance(key, EllipticCurvePublicKey | Ed25519PublicKey):
        raise IntegrityError(
            f"{at}: expected a key on P-256 or Ed25519, got {_told(key)}",
            hint="builder key generate makes one that every reader takes",
        )
    spki = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    line = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    digest = Digest.of(b64decode(line.split()[1]))
    named = b64encode(bytes.fromhex(digest.hex)).decode().rstrip("=")
    return PublicKey(type=kind, spki=spki, fingerprint=f"SHA256:{named}")


def _told(key: object) -> str:
    """What a key is, for people."""
    if isinstance(key, EllipticCurvePublicKey):
        return f"one on {key.curve.name}"
    return type(key).__name__.removesuffix("PublicKey").lstrip("_")


def _kind(key: object) -> KeyType | None:
    if isinstance(key, Ed25519PublicKey):
        return KeyType.ED25519
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return KeyType.ECDSA_P256
    return None
