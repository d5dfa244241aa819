"""Private keys: signatures of the RFCs, formats of other tools, and whatever else a file may be."""

import copy
import pickle
import re
import traceback
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import BuilderError, IntegrityError, PasswordError, PolicyError
from builder.keys.private import PrivateKey, generate, is_encrypted, read_private_key
from builder.keys.public import KEY_LIMIT, KeyType
from builder.keys.signer import Signer
from tests.keys.samples import ED25519, P256, no_password

PEM = P256.plaintext_pem()
FORMATS = {
    "pkcs8": PrivateFormat.PKCS8,
    "sec1": PrivateFormat.TraditionalOpenSSL,
    "openssh": PrivateFormat.OpenSSH,
}
CANARY = "sing" * 9  # made here: tracebacks show lines of this file
SECRET = b"na\xc3\xafve \xe2\x98\x83\nwith a second line"


def inner(key: PrivateKey) -> Any:
    """The same key, as cryptography has it."""
    return serialization.load_der_private_key(key.pkcs8_der(), None)


def written(key: Any, form: PrivateFormat, password: bytes | None = None) -> bytes:
    how = NoEncryption() if password is None else BestAvailableEncryption(password)
    pem: bytes = key.private_bytes(Encoding.PEM, form, how)
    return pem


def read(data: bytes, password: bytes | None = None) -> PrivateKey:
    given = no_password if password is None else lambda: password
    return read_private_key(data, at="it", password=given, allow_plaintext=password is None)


# --- signatures -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "r", "s"),
    [
        (
            b"sample",
            "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
            "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
        ),
        (
            b"test",
            "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
            "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083",
        ),
    ],
    ids=["sample", "test"],
)
def test_ecdsa_signs_as_the_vectors_of_rfc_6979(message: bytes, r: str, s: str) -> None:
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    signature = P256.sign(message)
    assert decode_dss_signature(signature) == (int(r, 16), int(s, 16))
    assert P256.public.verifies(signature, message)


def test_ed25519_signs_as_the_vector_of_rfc_8032() -> None:
    assert ED25519.sign(b"").hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701"
        "cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )


@pytest.mark.parametrize("kind", KeyType)
def test_a_new_key_is_another_one_each_time_and_signs(kind: KeyType) -> None:
    one, other = generate(kind), generate(kind)
    signer: Signer = one
    assert one.public.type is kind
    assert one.public != other.public
    assert signer.public.verifies(signer.sign(b"it"), b"it")
    assert not other.public.verifies(one.sign(b"it"), b"it")


# --- formats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [P256, ED25519], ids=["P-256", "Ed25519"])
@pytest.mark.parametrize("form", FORMATS)
def test_keys_of_other_tools_are_read(key: PrivateKey, form: str) -> None:
    if key is ED25519 and form == "sec1":
        form = "pkcs8"  # SEC1 is of elliptic curves alone
    data = written(inner(key), FORMATS[form])
    assert not is_encrypted(data, at="it")
    assert read(data).public == key.public


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("password", [b"x", SECRET], ids=["short", "unicode and a line end"])
def test_encrypted_keys_of_other_tools_are_read(form: str, password: bytes) -> None:
    data = written(inner(P256), FORMATS[form], password)
    assert is_encrypted(data, at="it")
    assert read(data, password).public == P256.public
    with pytest.raises(PasswordError) as caught:
        read(data, b"another")
    assert str(caught.value) == "it: the password does not open it, or it is damaged"
    assert caught.value.exit_status == 9


def test_what_openssl_ecparam_writes_before_a_key_is_read() -> None:
    curve = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    assert read(curve + written(inner(P256), FORMATS["sec1"])).public == P256.public


def test_line_ends_of_windows_are_line_ends() -> None:
    assert read(PEM.replace(b"\n", b"\r\n")).public == P256.public


def test_what_is_written_is_read() -> None:
    assert read(ED25519.plaintext_pem()).pkcs8_der() == ED25519.pkcs8_der()


def test_a_key_without_a_password_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(PolicyError) as caught:
        read_private_key(PEM, at="release.key", password=no_password)
    assert str(caught.value) == (
        "release.key: it is not encrypted: whoever reads the file can sign"
    )
    assert caught.value.hint == (
        "builder key import keeps it encrypted; --allow-plaintext takes it as it is"
    )


# --- anything else ----------------------------------------------------------------------------


def test_other_kinds_and_curves_are_refused_by_name() -> None:
    for made, told in (
        (ec.generate_private_key(ec.SECP384R1()), "one on secp384r1"),
        (ec.generate_private_key(ec.SECP256K1()), "one on secp256k1"),
        (rsa.generate_private_key(65537, 2048), "RSA"),
        (ed448.Ed448PrivateKey.generate(), "Ed448"),
    ):
        with pytest.raises(IntegrityError) as caught:
            read(written(made, PrivateFormat.PKCS8))
        assert str(caught.value) == f"it: expected a key on P-256 or Ed25519, got {told}"


def test_rsa_in_its_own_format_is_refused_by_name() -> None:
    made = rsa.generate_private_key(65537, 2048)
    with pytest.raises(IntegrityError, match="expected a key on P-256 or Ed25519, got RSA"):
        read(written(made, PrivateFormat.TraditionalOpenSSL))


def test_a_public_half_of_another_key_is_refused() -> None:
    """Signatures would verify with neither half."""
    point = ec.generate_private_key(ec.SECP256R1()).public_key()
    shape = (Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    own = inner(P256).public_key().public_bytes(*shape)
    swapped = P256.pkcs8_der().replace(own, point.public_bytes(*shape))
    assert swapped != P256.pkcs8_der()
    with pytest.raises(IntegrityError, match=r"^it: not a private key: "):
        read(pem(swapped))


def pem(der: bytes) -> bytes:
    from base64 import encodebytes

    return b"-----BEGIN PRIVATE KEY-----\n%b-----END PRIVATE KEY-----\n" % encodebytes(der)


WHOLE = "it: expected one private key in PEM and nothing else, got "
ODD = {
    "nothing": (b"", WHOLE + "something around it or no whole one"),
    "twice": (PEM + PEM, WHOLE + "several"),
    "two kinds": (PEM + written(inner(P256), PrivateFormat.TraditionalOpenSSL), WHOLE + "several"),
    "a byte order mark": (b"\xef\xbb\xbf" + PEM, WHOLE + "something around it or no whole one"),
    "something behind": (PEM + b"x", WHOLE + "something around it or no whole one"),
    "something before": (b"x\n" + PEM, WHOLE + "something around it or no whole one"),
    "no end": (PEM[:-30], WHOLE + "something around it or no whole one"),
    "two labels": (
        PEM.replace(b"-----END PRIVATE", b"-----END EC PRIVATE"),
        WHOLE + "something around it or no whole one",
    ),
    "UTF-16": (PEM.decode().encode("utf-16"), WHOLE + "something around it or no whole one"),
    "a public key": (P256.public.pem, "it: a public key, where a private one is wanted"),
    "a public key of OpenSSH": (
        ED25519.public.openssh,
        "it: a public key, where a private one is wanted",
    ),
    "huge": (PEM + b"\n" * KEY_LIMIT, f"it: {len(PEM) + KEY_LIMIT} bytes, the limit"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_file_of_one_key_is_refused(name: str) -> None:
    data, message = ODD[name]
    with pytest.raises(IntegrityError, match=r"^" + re.escape(message)):
        read(data)


def test_bytes_behind_the_key_inside_of_the_block_are_refused() -> None:
    with pytest.raises(IntegrityError, match=r"^it: not a private key: "):
        read(pem(P256.pkcs8_der() + b"\0"))


@settings(max_examples=300)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_is_a_key_that_signs(data: st.DataObject) -> None:
    """No flip and no cut is anything else than an error of ours; what is read is whole."""
    key = data.draw(st.sampled_from([P256, ED25519]))
    forms = ["pkcs8", "openssh"] if key is ED25519 else [*FORMATS]
    form = FORMATS[data.draw(st.sampled_from(forms))]
    whole = bytearray(written(inner(key), form))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    damaged = bytes(whole)[: data.draw(st.integers(len(whole) // 2, len(whole)))]
    try:
        found = read_private_key(damaged, at="it", password=lambda: b"x", allow_plaintext=True)
    except BuilderError:
        return
    assert found.public.verifies(found.sign(b"it"), b"it")


# --- secrets ----------------------------------------------------------------------------------


def test_a_key_shows_its_fingerprint_and_nothing_else() -> None:
    assert repr(P256) == str(P256) == f"PrivateKey({P256.public.fingerprint})"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="is not copied"):
            copied(P256)


def test_no_error_has_anything_of_a_key_or_a_password() -> None:
    secrets = {PEM[60:90].decode(), CANARY}
    encrypted = written(inner(P256), PrivateFormat.PKCS8, b"x")
    for data in (PEM[:-30], PEM + PEM, PEM.replace(b"MIG", b"NIG"), encrypted):
        with pytest.raises(BuilderError) as caught:
            read_private_key(data, at="it", password=CANARY.encode, allow_plaintext=True)
        told = "".join(traceback.format_exception(caught.value))
        assert not [secret for secret in secrets if secret in told]
