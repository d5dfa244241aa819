"""What a private key's file may ask for: looked at before a password is asked for or stretched."""

import subprocess
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import BuilderError, IntegrityError
from builder.keys import kdf
from builder.keys.private import read_private_key
from tests.commands import run
from tests.keys.samples import P256, no_password

DAMAGED = "not an encrypted private key, or damaged"
MILLION = bytes.fromhex("02030f4240")
"""1000000, as DER has it."""


def body(pem: bytes) -> bytes:
    return b64decode(b"".join(pem.split(b"-----")[2].split()))


def armoured(data: bytes, label: str = "ENCRYPTED PRIVATE KEY") -> bytes:
    return (
        f"-----BEGIN {label}-----\n{b64encode(data).decode()}\n-----END {label}-----\n"
    ).encode()


def openssl(*options: str) -> bytes:
    """The key of RFC 6979, encrypted by ``openssl pkcs8``."""
    command = ("openssl", "pkcs8", "-topk8", "-passout", "pass:secret", *options)
    return run(command, given=P256.plaintext_pem()).stdout


def refused(pem: bytes) -> str:
    """That it is, with nobody asked for a password; the message."""
    with pytest.raises(IntegrityError) as caught:
        read_private_key(pem, at="it.key", password=no_password)
    assert caught.value.message.startswith("it.key: ")
    return caught.value.message.removeprefix("it.key: ")


# --- what real tools make -----------------------------------------------------------------------


@pytest.mark.requires("openssl")
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("-iter", "1000000"),
        ("-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512"),
        ("-scrypt",),
        ("-scrypt", "-scrypt_N", "1024", "-scrypt_r", "16", "-scrypt_p", "16"),
        ("-v1", "PBE-SHA1-3DES", "-iter", "100000"),
    ],
    ids=" ".join,
)
def test_what_openssl_makes_is_read(options: tuple[str, ...]) -> None:
    key = read_private_key(openssl(*options), at="it", password=lambda: b"secret")
    assert key.public == P256.public


@pytest.mark.requires("openssl")
def test_what_openssl_genpkey_makes_is_read() -> None:
    curve = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    pem = run(("openssl", "genpkey", *curve, "-aes256", "-pass", "pass:secret")).stdout
    read_private_key(pem, at="it", password=lambda: b"secret")


def ssh_keygen(rounds: int, file: Path) -> bytes:
    command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-a", str(rounds), "-f", file)
    subprocess.run(command, check=True, capture_output=True)
    return file.read_bytes()


def with_rounds(pem: bytes, old: int, new: int) -> bytes:
    """The same file with another count of rounds: it follows the salt of 16 bytes."""
    data = body(pem)
    at = data.index(b"bcrypt") + len("bcrypt") + 4 + 4 + 16
    assert data[at : at + 4] == old.to_bytes(4, "big")
    return armoured(data[:at] + new.to_bytes(4, "big") + data[at + 4 :], "OPENSSH PRIVATE KEY")


@pytest.mark.requires("ssh-keygen")
def test_what_ssh_keygen_makes_is_read_and_bounded(tmp_path: Path) -> None:
    """A thousand rounds take seconds: that they are allowed is looked at alone."""
    pem = ssh_keygen(20, tmp_path / "key")
    read_private_key(pem, at="it", password=lambda: b"secret")
    for rounds in (1, 1000, kdf.BCRYPT_ROUNDS):
        kdf.check_openssh(body(with_rounds(pem, 20, rounds)), at="it")
    for rounds in (0, kdf.BCRYPT_ROUNDS + 1, 2**32 - 1):
        told = f"{rounds} rounds of bcrypt, allowed are 1 to 4000"
        assert refused(with_rounds(pem, 20, rounds)) == told


@pytest.mark.requires("openssl")
@pytest.mark.parametrize("scheme", [(), ("-v1", "PBE-SHA1-3DES")], ids=["PBKDF2", "PKCS#12"])
def test_too_many_rounds_are_refused(scheme: tuple[str, ...]) -> None:
    pem = openssl(*scheme, "-iter", "1000000")
    assert body(pem).count(MILLION) == 1
    for rounds, encoded in (
        (8_388_607, "02037fffff"),
        (5_000_001, "02034c4b41"),
        (0, "0203000000"),
    ):
        message = refused(armoured(body(pem).replace(MILLION, bytes.fromhex(encoded))))
        what = "iterations" if scheme else "iterations of PBKDF2"
        assert message == f"{rounds} {what}, allowed are 1 to 5000000"
    kdf.check_pkcs8(body(pem).replace(MILLION, bytes.fromhex("02034c4b40")), at="it")


@pytest.mark.requires("openssl")
@pytest.mark.parametrize(
    ("n", "r", "p", "message"),
    [
        ("7f00", "08", "01", "N 32512, r 8, p 1: expected N a power of two, r and p positive"),
        ("0001", "08", "01", "N 1, r 8, p 1: expected N a power of two, r and p positive"),
        ("4000", "00", "01", "N 16384, r 0, p 1: expected N a power of two, r and p positive"),
        ("4000", "08", "00", "N 16384, r 8, p 0: expected N a power of two, r and p positive"),
        (
            "4000",
            "7f",
            "40",
            "N 16384, r 127, p 64: N * r * p is 133169152, allowed is 8388608",
        ),
        ("4000", "08", "41", "N 16384, r 8, p 65: N * r * p is 8519680, allowed is 8388608"),
    ],
)
def test_scrypt_without_measure_is_refused(n: str, r: str, p: str, message: str) -> None:
    real = body(openssl("-scrypt"))
    told = bytes.fromhex("02024000020108020101")
    assert real.count(told) == 1
    asked = bytes.fromhex(f"0202{n}0201{r}0201{p}")
    assert refused(armoured(real.replace(told, asked))) == f"scrypt with {message}"


def test_an_rsa_key_is_refused_for_what_it_is_before_its_primes_are_tested() -> None:
    """Of a large one that takes minutes. These are no primes, which nobody looks at."""
    numbers = (0, 15 * 21, 5, 5, 15, 21, 5, 5, 5)
    raw = der(0x30, *(integer(number << (2048 if number > 100 else 0)) for number in numbers))
    message = refused_plain(armoured(raw, "RSA PRIVATE KEY"))
    assert message == "it.key: expected a key on P-256 or Ed25519, got RSA"


def refused_plain(pem: bytes) -> str:
    with pytest.raises(IntegrityError) as caught:
        read_private_key(pem, at="it.key", password=no_password, allow_plaintext=True)
    return caught.value.message


# --- what nobody's tool makes -------------------------------------------------------------------

PBES2, PBKDF2, SCRYPT = (
    "06092a864886f70d01050d",
    "06092a864886f70d01050c",
    "06092b06010401da47040b",
)
SALT = "04080102030405060708"


def der(tag: int, *parts: bytes | str) -> bytes:
    content = b"".join(bytes.fromhex(part) if isinstance(part, str) else part for part in parts)
    size = len(content)
    width = 1 if size < 256 else 2
    long = b"" if size < 128 else bytes([0x80 | width])
    return bytes([tag]) + long + size.to_bytes(width, "big") + content


def integer(number: int) -> bytes:
    return der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def info(kdf_id: str, *parameters: bytes | str, scheme: str = PBES2) -> bytes:
    """``EncryptedPrivateKeyInfo`` of 64 zeros."""
    derived = der(0x30, kdf_id, der(0x30, *parameters))
    cipher = der(0x30, "060960864801650304012a", "0410" + "00" * 16)
    return der(0x30, der(0x30, scheme, der(0x30, derived, cipher)), der(4, bytes(64)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            info(SCRYPT, SALT, integer(1 << 19), integer(8), integer(1)),
            "scrypt with N 524288, r 8, p 1 takes 536870912 bytes of memory, allowed are 268435456",
            id="much memory",
        ),
        pytest.param(
            info(SCRYPT, SALT, integer(2), integer(1), integer(1 << 22)),
            "scrypt with N 2, r 1, p 4194304 takes 536870912 bytes of memory, allowed are"
            " 268435456",
            id="much memory for p",
        ),
        pytest.param(
            info(SCRYPT, SALT, integer(1 << 62), integer(1 << 62), integer(1 << 62)),
            f"scrypt with N {1 << 62}, r {1 << 62}, p {1 << 62} takes {1 << 131} bytes of memory,"
            " allowed are 268435456",
            id="all of it",
        ),
        pytest.param(
            info(SCRYPT, SALT, integer(1 << 70), integer(8), integer(1)),
            "a number of 9 bytes in its key derivation, expected a positive one of at most 8",
            id="a number that no machine has",
        ),
        pytest.param(
            info(PBKDF2, SALT, der(2, b"\x01" * 5000)),
            "a number of 5000 bytes in its key derivation, expected a positive one of at most 8",
            id="a number that Python prints in no time",
        ),
        pytest.param(
            info(PBKDF2, SALT, "0201ff"),
            "a number of 1 bytes in its key derivation, expected a positive one of at most 8",
            id="a negative number",
        ),
        pytest.param(
            info(PBKDF2, SALT, integer(2048), integer(1 << 30)),
            "a derived key of 1073741824 bytes, allowed are 1 to 64",
            id="a long key",
        ),
        pytest.param(
            info(PBKDF2, SALT), "0 iterations of PBKDF2, allowed are 1 to 5000000", id="no number"
        ),
        pytest.param(
            info(SCRYPT, SALT, integer(16384)),
            DAMAGED,
            id="one number of three",
        ),
        pytest.param(
            info("06092a864886f70d01050e", SALT, integer(1)),
            "its key derivation is not known (object identifier 2a864886f70d01050e)",
            id="another derivation",
        ),
        pytest.param(
            info(PBKDF2, SALT, integer(1), scheme="06092a864886f70d01050e"),
            "its encryption is not known (object identifier 2a864886f70d01050e)",
            id="another encryption",
        ),
        pytest.param(
            info(PBKDF2, der(0x30, PBKDF2), integer(1)),
            DAMAGED,
            id="a salt from elsewhere",
        ),
        pytest.param(
            info(PBKDF2, SALT, integer(1)) + b"\0",
            DAMAGED,
            id="more behind it",
        ),
        pytest.param(b"", DAMAGED, id="nothing"),
        pytest.param(b"\x30\x80\0\0", DAMAGED, id="BER"),
        pytest.param(b"\x30\x81\x05\x30\3\6\1\0", DAMAGED, id="a longer form than needed"),
        pytest.param(b"\x30\x84\xff\xff\xff\xff", DAMAGED, id="4 GiB"),
    ],
)
def test_hostile_parameters_are_refused(data: bytes, message: str) -> None:
    # What has no body at all is refused by the form of PEM already.
    if data:
        assert refused(armoured(data)) == message
    with pytest.raises(IntegrityError) as caught:
        kdf.check_pkcs8(data, at="it")
    assert caught.value.message == f"it: {message}"


def string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"openssh-key-v2\0", "not a private key of OpenSSH"),
        (b"openssh-key-v1\0", None),
        (b"openssh-key-v1\0\xff\xff\xff\xff", None),
        (
            b"openssh-key-v1\0" + string(b"aes256-ctr") + string(b"argon2") + string(b""),
            "key derivation b'argon2' is not known",
        ),
        (b"openssh-key-v1\0" + string(b"aes256-ctr") + string(b"bcrypt") + string(b""), None),
        (
            b"openssh-key-v1\0"
            + string(b"aes256-ctr")
            + string(b"bcrypt")
            + string(string(b"salt") + b"\0\0\0\x10\0"),
            None,
        ),
    ],
)
def test_what_is_not_openssh_is_refused(data: bytes, message: str | None) -> None:
    assert refused(armoured(data, "OPENSSH PRIVATE KEY")) == (message or DAMAGED)


def test_what_is_looked_at_is_what_is_opened() -> None:
    """Text around the base64 that one reader passes over and another does not."""
    good = armoured(info(PBKDF2, SALT, integer(2048)))
    for more in (b"Proc-Type: 4,ENCRYPTED\n\n", b"!", b"=\n"):
        changed = good.replace(b"KEY-----\n", b"KEY-----\n" + more, 1)
        assert refused(changed).startswith("not a private key: ")


@given(data=st.binary(max_size=80))
def test_whatever_a_file_has_it_is_no_bug(data: bytes) -> None:
    for check in (kdf.check_pkcs8, kdf.check_openssh):
        for given_ in (data, b"openssh-key-v1\0" + data, der(0x30, der(0x30, PBES2, data))):
            with suppress(BuilderError):
                check(given_, at="it")


@given(place=st.integers(0, 120), byte=st.integers(0, 255))
def test_what_passes_can_be_tried_at_once(place: int, byte: int) -> None:
    """With any byte changed, the key is refused for what it asks, or opened without delay."""
    data = bytearray(info(PBKDF2, SALT, integer(2048)))
    data[place % len(data)] = byte
    with pytest.raises(BuilderError):
        read_private_key(armoured(bytes(data)), at="it", password=lambda: b"secret")
