"""How private keys are kept: encrypted, unless somebody says in so many words that they need not
be."""

import os

from builder.adapters.keys.passwords import Passwords
from builder.keys import cosign_box
from builder.keys.private import PrivateKey, read_private_key


def kept(key: PrivateKey, *, at: str, passwords: Passwords, allow_plaintext: bool) -> bytes:
    """The file of a new key: under a new password in cosign's format, or with ``allow_plaintext``
    as PKCS#8 that is not encrypted.

    Raises:
        PasswordError: There is no password, or it is empty.
    """
    if allow_plaintext:
        return key.plaintext_pem()
    return cosign_box.seal(key.pkcs8_der(), passwords.fresh(at), random=os.urandom)


def imported(
    data: bytes, *, at: str, name: str, passwords: Passwords, allow_plaintext: bool
) -> tuple[bytes, PrivateKey]:
    """The file of a key that another tool made, and the key. One that has a password keeps it: a
    file of cosign's stays as it is, others get its format. One that has none gets one.

    Raises:
        PasswordError: No password, or another.
        IntegrityError: ``data`` is no private key of ours.
    """
    used = b""

    def password() -> bytes:
        nonlocal used
        used = passwords.existing(at)
        return used

    with passwords.opening(at):
        key = read_private_key(data, at=at, password=password, allow_plaintext=True)
    if not used:
        return kept(key, at=name, passwords=passwords, allow_plaintext=allow_plaintext), key
    if _is_box(data):
        return data, key
    return cosign_box.seal(key.pkcs8_der(), used, random=os.urandom), key


def _is_box(data: bytes) -> bool:
    """Whether a private key is in cosign's format."""
    return any(b"-----BEGIN " + label.encode() in data for label in cosign_box.LABELS)
