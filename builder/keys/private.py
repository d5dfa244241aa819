"""Private keys at hand: made, read from what other tools write, and used to sign."""

import re
from base64 import b64decode, encodebytes
from collections.abc import Callable
from typing import Any, NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

from builder.errors import EnvironmentFault, IntegrityError, PasswordError, PolicyError
from builder.keys import cosign_box, kdf
from builder.keys.public import KEY_LIMIT, KeyType, public_key, refusing_deprecated

Password = Callable[[], bytes]
"""Where a password comes from: called when it is needed, which costs a person's time."""

# One block of PEM and nothing else. `openssl ecparam -genkey` writes the curve before the key.
_PEM = re.compile(
    rb"(?:-----BEGIN EC PARAMETERS-----\s[A-Za-z0-9+/=\s]+-----END EC PARAMETERS-----\s+)?"
    rb"(?P<block>-----BEGIN (?P<label>[A-Z0-9 ]*PRIVATE KEY)-----\r?\n"
    rb"(?P<body>(?:(?!-----).)+)-----END (?P=label)-----)\s*",
    re.DOTALL,
)
_OPENSSH_UNENCRYPTED = b"openssh-key-v1\0\0\0\0\x04none"  # PROTOCOL.key, 1: magic, ciphername


class PrivateKey:
    """A private key. Nothing that shows it, copies it or stores it has any of it, but for
    :meth:`pkcs8_der` and :meth:`plaintext_pem`. It is a :class:`builder.keys.signer.Signer`.
    """

    __slots__ = ("_key", "public")

    def __init__(self, key: object, *, at: str) -> None:
        """Take a key of :mod:`cryptography`.

        Raises:
            IntegrityError: It is none of :class:`builder.keys.public.KeyType`.
        """
        found: Any = key
        self.public = public_key(found.public_key(), at=at)
        self._key: EllipticCurvePrivateKey | Ed25519PrivateKey = found

    def sign(self, message: bytes) -> bytes:
        """The signature over ``message``, the same one each time: DER (ECDSA over SHA-256, nonce of
        RFC 6979), or 64 bytes (Ed25519).

        Raises:
            EnvironmentFault: OpenSSL is older than 3.2.
        """
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key.sign(message)
        try:
            return self._key.sign(message, ECDSA(SHA256(), deterministic_signing=True))
        except UnsupportedAlgorithm as error:
            raise EnvironmentFault(
                "OpenSSL makes no deterministic signatures",
                hint="they need OpenSSL 3.2, which the wheels of cryptography bring along",
            ) from error

    def pkcs8_der(self) -> bytes:
        """The key itself, unencrypted."""
        return self._encoded(serialization.Encoding.DER)

    def plaintext_pem(self) -> bytes:
        """The key itself, unencrypted: for those who asked for that in so many words."""
        return self._encoded(serialization.Encoding.PEM)

    def _encoded(self, encoding: serialization.Encoding) -> bytes:
        return self._key.private_bytes(
            encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.fingerprint})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not copied")


def generate(kind: KeyType = KeyType.ECDSA_P256) -> PrivateKey:
    """A new key, of the system's randomness."""
    made: object = (
        Ed25519PrivateKey.generate()
        if kind is KeyType.ED25519
        else generate_private_key(SECP256R1())
    )
    return PrivateKey(made, at="a new key")


def is_encrypted(data: bytes, *, at: str) -> bool:
    """Whether a password is wanted for the private key in ``data``.

    Raises:
        IntegrityError: As for :func:`read_private_key`, as far as can be said without the password.
    """
    return _encrypted(_block(data, at))


def read_private_key(
    data: bytes, *, at: str, password: Password, allow_plaintext: bool = False
) -> PrivateKey:
    """The key in ``data``: one block of PEM with PKCS#8, SEC1 (``EC PRIVATE KEY``), OpenSSH's
    format or cosign's.

    Args:
        data: The file.
        at: What it is, for messages.
        password: Called once, and only where the key is encrypted.
        allow_plaintext: Take a key that is not encrypted, or has an empty password.

    Raises:
        IntegrityError: It is something else, or of another kind or curve, or damaged; there is
            more than one, or anything around it.
        PasswordError: The password does not open it.
        PolicyError: It is not encrypted, or its password is empty.
        EnvironmentFault: Its encryption needs a package that is not installed.
    """
    found = _block(data, at)
    if not (encrypted := _encrypted(found)) and not allow_plaintext:
        raise _unprotected(at, "it is not encrypted")
    read = _reader(found, at)
    secret = password() if encrypted else b""
    key = read(secret if encrypted else None)
    if not (secret or allow_plaintext):
        raise _unprotected(at, "its password is empty")
    return key


def _unprotected(at: str, state: str) -> PolicyError:
    return PolicyError(
        f"{at}: {state}: whoever reads the file can sign",
        hint="builder key import keeps it encrypted; --allow-plaintext takes it as it is",
    )


def _reader(found: "re.Match[bytes]", at: str) -> Callable[[bytes | None], PrivateKey]:
    """Opens the key in a block, with its password where it is encrypted. What that would cost is
    looked at before, in the bytes that are given to whoever opens it."""
    label = found["label"].decode()
    if label in cosign_box.LABELS:
        return lambda secret: _in_box(found["body"], secret or b"", at)
    if label == "ENCRYPTED PRIVATE KEY":
        der = _decoded(found["body"], at)
        kdf.check_pkcs8(der, at=at)
        return lambda secret: _loaded(serialization.load_der_private_key, der, secret, at)
    if label == "OPENSSH PRIVATE KEY":
        raw = _decoded(found["body"], at)
        kdf.check_openssh(raw, at=at)
        lines = b"-----BEGIN %b-----\n%b-----END %b-----\n"
        pem = lines % (found["label"], encodebytes(raw), found["label"])
        return lambda secret: _loaded(serialization.load_ssh_private_key, pem, secret, at)
    pem = found["block"] + b"\n"  # the encryption of SEC1's PEM has one round
    return lambda secret: _loaded(serialization.load_pem_private_key, pem, secret, at)


def _in_box(body: bytes, secret: bytes, at: str) -> PrivateKey:
    inner = cosign_box.unseal(body, secret, at=at)
    return _loaded(serialization.load_der_private_key, inner, None, at)


def _decoded(body: bytes, at: str) -> bytes:
    try:
        return b64decode(b"".join(body.split()), validate=True)
    except ValueError as error:
        raise IntegrityError(f"{at}: not a private key: {error}") from error


def _loaded(load: Callable[..., object], data: bytes, secret: bytes | None, at: str) -> PrivateKey:
    """What ``load`` gives. Where it decrypts, its failure is that of the password."""
    try:
        # Whether the primes of an RSA key are any takes minutes to see; its kind is refused below.
        with refusing_deprecated(at):
            key = load(data, secret, unsafe_skip_rsa_key_validation=True)
    except UnsupportedAlgorithm as error:
        if "bcrypt" in str(error):
            raise EnvironmentFault(
                f"{at}: OpenSSH's encryption needs the package bcrypt",
                hint="it is the extra 'ssh' of builder: pip install '.[ssh]' in its sources; or"
                " take the passphrase off a copy with ssh-keygen -p",
            ) from error
        raise IntegrityError(f"{at}: not a private key that is known: {error}") from error
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        if secret is not None:
            raise PasswordError(f"{at}: the password does not open it, or it is damaged") from error
        raise IntegrityError(f"{at}: not a private key: {error}") from error
    return PrivateKey(key, at=at)


def _block(data: bytes, at: str) -> "re.Match[bytes]":
    if len(data) > KEY_LIMIT:
        raise IntegrityError(f"{at}: {len(data)} bytes, the limit for a key is {KEY_LIMIT}")
    found = _PEM.fullmatch(data)
    if found is not None:
        return found
    if b"PRIVATE KEY-----" not in data and (b"PUBLIC KEY-----" in data or b"ssh-" in data[:20]):
        raise IntegrityError(f"{at}: a public key, where a private one is wanted")
    count = data.count(b"PRIVATE KEY-----\n") + data.count(b"PRIVATE KEY-----\r\n")
    raise IntegrityError(
        f"{at}: expected one private key in PEM and nothing else,"
        f" got {'several' if count > 2 else 'something around it or no whole one'}",
        hint="a key has one -----BEGIN line, which is the first of its file",
    )


def _encrypted(found: "re.Match[bytes]") -> bool:
    label, body = found["label"], found["body"]
    if label == b"OPENSSH PRIVATE KEY":
        try:
            return not b64decode(body).startswith(_OPENSSH_UNENCRYPTED)
        except ValueError:
            return False  # its reader says what is wrong
    return label.startswith(b"ENCRYPTED ") or b"Proc-Type: 4,ENCRYPTED" in body
