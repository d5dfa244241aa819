"""cosign's format: as cosign writes it, as other code reads it, and what is refused."""

import hashlib
import json
from base64 import b64decode, b64encode
from typing import Any

import pytest
from nacl.secret import SecretBox

from builder.errors import IntegrityError, PasswordError
from builder.keys import cosign_box
from builder.keys.private import PrivateKey, is_encrypted, read_private_key
from tests.keys.samples import COSIGN_BOX, P256, PASSWORD


def body(pem: bytes) -> bytes:
    return b"".join(pem.splitlines()[1:-1])


def counting(size: int) -> bytes:
    return bytes(range(size))


def in_pem(document: object, label: str = cosign_box.LABEL) -> bytes:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    text = b64encode(data).decode()
    return f"-----BEGIN {label}-----\n{text}\n-----END {label}-----\n".encode()


def changed(path: str, value: Any) -> dict[str, Any]:
    """What cosign wrote, with another value at ``path``."""
    document: dict[str, Any] = json.loads(b64decode(body(COSIGN_BOX)))
    *way, last = path.split(".")
    place = document
    for step in way:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return document


def read(pem: bytes, password: bytes = PASSWORD) -> PrivateKey:
    return read_private_key(pem, at="it", password=lambda: password)


def test_what_cosign_wrote_is_read() -> None:
    assert is_encrypted(COSIGN_BOX, at="it")
    assert read(COSIGN_BOX.replace(b"\n", b"\r\n")).public == P256.public


def test_the_label_before_cosign_2_is_read() -> None:
    old = COSIGN_BOX.replace(b"SIGSTORE", b"COSIGN")
    assert read(old).public == P256.public


def test_what_is_written_is_what_other_code_makes_of_the_same_numbers() -> None:
    pem = cosign_box.seal(b"the secret", PASSWORD, random=counting)
    document = json.loads(b64decode(body(pem)))
    derived = hashlib.scrypt(
        PASSWORD, salt=bytes(range(32)), n=65536, r=8, p=1, maxmem=1 << 27, dklen=32
    )
    assert document == {
        "kdf": {
            "name": "scrypt",
            "params": {"N": 65536, "r": 8, "p": 1},
            "salt": b64encode(bytes(range(32))).decode(),
        },
        "cipher": {"name": "nacl/secretbox", "nonce": b64encode(bytes(range(24))).decode()},
        "ciphertext": b64encode(
            SecretBox(derived).encrypt(b"the secret", bytes(range(24))).ciphertext
        ).decode(),
    }
    assert pem.startswith(b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n")
    assert {len(line) for line in pem.splitlines()[1:-2]} == {64}
    assert cosign_box.unseal(body(pem), PASSWORD, at="it") == b"the secret"


def test_another_password_does_not_open_it() -> None:
    with pytest.raises(PasswordError) as caught:
        read(COSIGN_BOX, b"correct horsf")
    assert str(caught.value) == "it: the password does not open it, or it is damaged"


def test_an_empty_password_is_another_one_where_the_key_has_one() -> None:
    with pytest.raises(PasswordError) as caught:
        read(COSIGN_BOX, b"")
    assert str(caught.value) == "it: the password does not open it, or it is damaged"


REFUSED = {
    "N of 1 GiB": ("kdf.params.N", 1 << 20, "kdf.params: expected N a power of two from 32768"),
    "N without end": ("kdf.params.N", 1 << 200, "kdf.params: expected N a power of two"),
    "no cost": ("kdf.params.N", 2, "kdf.params: expected N a power of two"),
    "no power of two": ("kdf.params.N", 65537, "kdf.params: expected N a power of two"),
    "negative": ("kdf.params.N", -65536, "kdf.params: expected N a power of two"),
    "huge r": ("kdf.params.r", 1 << 30, "kdf.params: expected N a power of two"),
    "huge p": ("kdf.params.p", 1 << 30, "kdf.params: expected N a power of two"),
    "a fraction": ("kdf.params.N", 65536.0, "kdf.params: expected whole numbers"),
    "a bool": ("kdf.params.p", True, "kdf.params: expected whole numbers"),
    "a text": ("kdf.params.N", "65536", "kdf.params: expected whole numbers"),
    "no r": ("kdf.params.r", None, "kdf.params: expected an object with the keys ['N', 'p', 'r']"),
    "a key too many": (
        "kdf.more",
        1,
        "kdf: expected an object with the keys ['name', 'params', 'sa",
    ),
    "a list": ("cipher", [], "cipher: expected an object with the keys ['name', 'nonce']"),
    "another kdf": ("kdf.name", "pbkdf2", "kdf.name: expected 'scrypt', got 'pbkdf2'"),
    "another cipher": ("cipher.name", "aes", "cipher.name: expected 'nacl/secretbox', got 'aes'"),
    "a short salt": ("kdf.salt", "AAAA", "kdf.salt: expected 32 bytes, got 3"),
    "a short nonce": ("cipher.nonce", "AAAA", "cipher.nonce: expected 24 bytes, got 3"),
    "no base64": ("ciphertext", "?", "ciphertext: not base64"),
    "no text": ("ciphertext", 1, "ciphertext: not base64"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_box_that_is_another_is_refused_before_anything_is_derived(name: str) -> None:
    path, value, message = REFUSED[name]
    with pytest.raises(IntegrityError) as caught:
        read(in_pem(changed(path, value)))
    assert str(caught.value).startswith(f"it: {message}")


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (b" ", "it: not JSON"),
        (b"[]", "it: expected an object"),
        (b"\xff", "it: not JSON"),
        (b'{"kdf":1,"kdf":1,"cipher":1,"ciphertext":1}', "it: duplicate key 'kdf'"),
        (b'{"kdf":NaN,"cipher":1,"ciphertext":1}', "it: NaN is not JSON"),
        (b"[" * 9000, "it: not JSON"),
    ],
    ids=["a blank", "a list", "not UTF-8", "a key twice", "NaN", "deep"],
)
def test_what_is_not_strict_json_is_refused(inside: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        read(in_pem(inside))
    assert str(caught.value).startswith(message)


def test_what_has_no_base64_in_it_is_refused() -> None:
    with pytest.raises(IntegrityError, match=r"^it: not base64$"):
        read(COSIGN_BOX.replace(b"eyJ", b"e!J", 1))


def test_a_box_with_something_else_in_it_is_refused() -> None:
    box = cosign_box.seal(P256.pkcs8_der() + b"\0", PASSWORD, random=counting)
    with pytest.raises(IntegrityError, match=r"^it: not a private key: "):
        read(box)


def test_a_flip_of_what_is_encrypted_is_noticed() -> None:
    document = json.loads(b64decode(body(COSIGN_BOX)))
    for place, (part, name) in enumerate(
        [("kdf", "salt"), ("cipher", "nonce"), (None, "ciphertext")]
    ):
        damaged = json.loads(json.dumps(document))
        holder = damaged if part is None else damaged[part]
        data = bytearray(b64decode(holder[name]))
        data[-place] ^= 1
        holder[name] = b64encode(data).decode()
        with pytest.raises(PasswordError):
            read(in_pem(damaged))


def test_a_ciphertext_shorter_than_its_tag_is_noticed() -> None:
    for short in ("", "AAAA"):
        with pytest.raises(PasswordError):
            read(in_pem(changed("ciphertext", short)))
