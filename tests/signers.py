"""Signers with keys in memory: P-256 with nonces of RFC 6979, and Ed25519."""

from collections.abc import Callable

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256

from builder.digest import Digest
from builder.keys.public import PublicKey, public_key


class MemorySigner:
    """:class:`builder.keys.signer.Signer` over a private key, counting what it signs."""

    def __init__(self, private: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> None:
        self.private = private
        self.public: PublicKey = public_key(private.public_key(), at="a test's key")
        self.signed = 0

    def sign(self, message: bytes) -> bytes:
        self.signed += 1
        if isinstance(self.private, ed25519.Ed25519PrivateKey):
            return self.private.sign(message)
        return self.private.sign(message, ec.ECDSA(SHA256(), deterministic_signing=True))

    @property
    def pem(self) -> bytes:
        """The private half as PKCS#8, without a password."""
        return self.private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


class RandomNonces(MemorySigner):
    """One whose signatures differ each time, as those of a key that somebody else keeps."""

    def sign(self, message: bytes) -> bytes:
        assert isinstance(self.private, ec.EllipticCurvePrivateKey)
        self.signed += 1
        return self.private.sign(message, ec.ECDSA(SHA256()))


def p256(seed: str = "a") -> MemorySigner:
    """A key on P-256, the same for the same seed."""
    return MemorySigner(_p256(seed))


def random_p256(seed: str = "a") -> RandomNonces:
    """The same key, with nonces by chance."""
    return RandomNonces(_p256(seed))


def ed(seed: str = "a") -> MemorySigner:
    """An Ed25519 key, the same for the same seed."""
    raw = bytes.fromhex(Digest.of(seed.encode()).hex)
    return MemorySigner(ed25519.Ed25519PrivateKey.from_private_bytes(raw))


def _p256(seed: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int(Digest.of(seed.encode()).hex, 16) >> 1, ec.SECP256R1())


SIGNERS: dict[str, Callable[[str], MemorySigner]] = {"p256": p256, "ed25519": ed}
