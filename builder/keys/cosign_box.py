"""cosign's encrypted private keys (sigstore/cosign, pkg/cosign/keys.go, and the ``encrypted``
package of go-securesystemslib): PKCS#8 in a box of NaCl, under a key that scrypt makes of the
password. Guessing one takes hundreds of times longer than with encrypted PKCS#8, whose usual count
of rounds is 2048.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from textwrap import wrap
from typing import Any

from nacl.bindings import crypto_pwhash_scryptsalsa208sha256_ll
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from builder import canonical
from builder.errors import IntegrityError, PasswordError
from builder.keys.public import KEY_LIMIT

LABEL = "ENCRYPTED SIGSTORE PRIVATE KEY"
LABELS = (LABEL, "ENCRYPTED COSIGN PRIVATE KEY")
"""What stands in the lines of PEM: now, and before cosign 2."""

_NAMES = {"N", "r", "p"}
_DEFAULT = {"N": 65536, "r": 8, "p": 1}
# All that any cosign wrote, and some room to grow: at the top 256 MiB and 1.5 seconds.
_COSTS = (1 << 15, 1 << 16, 1 << 17, 1 << 18)
_SALT = 32
_NONCE = 24


def seal(secret: bytes, password: bytes, *, random: Callable[[int], bytes]) -> bytes:
    """PEM of ``secret`` under ``password``, as cosign reads it.

    Args:
        secret: PKCS#8, DER.
        password: Not empty; that is for the caller to see to.
        random: That many bytes of the system's randomness: a salt and a nonce.
    """
    salt, nonce = random(_SALT), random(_NONCE)
    box = SecretBox(_derived(password, salt, _DEFAULT))
    document = {
        "kdf": {"name": "scrypt", "params": _DEFAULT, "salt": b64encode(salt).decode()},
        "cipher": {"name": "nacl/secretbox", "nonce": b64encode(nonce).decode()},
        "ciphertext": b64encode(box.encrypt(secret, nonce).ciphertext).decode(),
    }
    body = b64encode(canonical.encode(document)).decode()
    return "\n".join(
        (f"-----BEGIN {LABEL}-----", *wrap(body, 64), f"-----END {LABEL}-----", "")
    ).encode()


def unseal(body: bytes, password: bytes, *, at: str) -> bytes:
    """What is in the box of which ``body`` is the base64 between the lines of PEM.

    Raises:
        IntegrityError: It is no such box, or wants more memory or time than it should.
        PasswordError: The password does not open it, or it is damaged.
    """
    document = canonical.decode(_bytes(b"".join(body.split()), at=at), at=at, limit=KEY_LIMIT)
    kdf, cipher = _parts(document, at)
    costs = _costs(kdf["params"], at=f"{at}: kdf.params")
    salt = _bytes(kdf["salt"], at=f"{at}: kdf.salt", size=_SALT)
    nonce = _bytes(cipher["nonce"], at=f"{at}: cipher.nonce", size=_NONCE)
    ciphertext = _bytes(document["ciphertext"], at=f"{at}: ciphertext")
    try:
        secret: bytes = SecretBox(_derived(password, salt, costs)).decrypt(ciphertext, nonce)
    except CryptoError as error:
        raise PasswordError(f"{at}: the password does not open it, or it is damaged") from error
    return secret


def _parts(document: Any, at: str) -> tuple[dict[str, Any], dict[str, Any]]:
    _keys(document, {"kdf", "cipher", "ciphertext"}, at)
    kdf, cipher = document["kdf"], document["cipher"]
    _keys(kdf, {"name", "params", "salt"}, f"{at}: kdf")
    _keys(cipher, {"name", "nonce"}, f"{at}: cipher")
    for part, name, where in ((kdf, "scrypt", "kdf"), (cipher, "nacl/secretbox", "cipher")):
        if part["name"] != name:
            raise IntegrityError(f"{at}: {where}.name: expected {name!r}, got {part['name']!r}")
    return kdf, cipher


def _costs(given: Any, *, at: str) -> dict[str, int]:
    """The parameters of scrypt, bounded: the file of a stranger must not take our memory."""
    _keys(given, _NAMES, at)
    if any(type(number) is not int for number in given.values()):
        raise IntegrityError(f"{at}: expected whole numbers")
    if given["N"] not in _COSTS or (given["r"], given["p"]) != (8, 1):
        raise IntegrityError(
            f"{at}: expected N a power of two from {_COSTS[0]} to {_COSTS[-1]}, r 8 and p 1,"
            f" got N {given['N']}, r {given['r']}, p {given['p']}"
        )
    return dict(given)


def _derived(password: bytes, salt: bytes, costs: dict[str, int]) -> bytes:
    # The binding that takes N, r and p as they are; nearly twice as fast as OpenSSL's.
    derived: bytes = crypto_pwhash_scryptsalsa208sha256_ll(
        password, salt, costs["N"], costs["r"], costs["p"], dklen=32, maxmem=1 << 30
    )
    return derived


def _keys(value: Any, keys: set[str], at: str) -> None:
    if not isinstance(value, dict) or set(value) != keys:
        raise IntegrityError(f"{at}: expected an object with the keys {sorted(keys)}")


def _bytes(text: Any, *, at: str, size: int | None = None) -> bytes:
    try:
        data = b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise IntegrityError(f"{at}: not base64") from error
    if size is not None and len(data) != size:
        raise IntegrityError(f"{at}: expected {size} bytes, got {len(data)}")
    return data
