"""What OpenSSH and OpenSSL say of our keys and signatures, and we of theirs."""

from pathlib import Path

import pytest

from builder.keys.private import PrivateKey, read_private_key
from builder.keys.public import KeyType, read_public_key
from tests.commands import CommandError, run
from tests.keys.samples import ED25519, P256, no_password

BOTH = pytest.mark.parametrize("key", [P256, ED25519], ids=["P-256", "Ed25519"])


@pytest.mark.requires("ssh-keygen")
@BOTH
def test_ssh_keygen_shows_the_same_fingerprint(key: PrivateKey, tmp_path: Path) -> None:
    line = tmp_path / "key.pub"
    line.write_bytes(key.public.openssh)
    assert run(("ssh-keygen", "-lf", line)).text.split()[1] == key.public.fingerprint
    assert read_public_key(line.read_bytes(), at="it") == key.public


@pytest.mark.requires("ssh-keygen")
@pytest.mark.parametrize("kind", [["ecdsa", "-b", "256"], ["ed25519"]], ids=["P-256", "Ed25519"])
@pytest.mark.parametrize("password", [b"", b"a passphrase"], ids=["plain", "encrypted"])
def test_a_key_of_ssh_keygen_is_read(kind: list[str], password: bytes, tmp_path: Path) -> None:
    file = tmp_path / "key"
    run(("ssh-keygen", "-q", "-t", *kind, "-N", password.decode(), "-f", file))
    key = read_private_key(
        file.read_bytes(),
        at="it",
        password=(lambda: password) if password else no_password,
        allow_plaintext=not password,
    )
    shown = run(("ssh-keygen", "-lf", f"{file}.pub")).text
    assert key.public.fingerprint in shown


@pytest.mark.requires("openssl")
@BOTH
def test_openssl_verifies_our_signatures(key: PrivateKey, tmp_path: Path) -> None:
    public, message, signature = (tmp_path / name for name in ("public", "message", "signature"))
    public.write_bytes(key.public.pem)
    message.write_bytes(b"the message")
    signature.write_bytes(key.sign(b"the message"))
    how = ("-rawin",) if key is ED25519 else ("-rawin", "-digest", "sha256")
    command = ("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, *how)
    given = ("-in", message, "-sigfile", signature)
    assert "Verified Successfully" in run((*command, *given)).text
    message.write_bytes(b"another message")
    with pytest.raises(CommandError):
        run((*command, *given))


@pytest.mark.requires("openssl")
def test_keys_of_openssl_are_read(tmp_path: Path) -> None:
    curve = ("openssl", "ecparam", "-name", "prime256v1", "-genkey")
    plain = run(curve).stdout
    assert plain.startswith(b"-----BEGIN EC PARAMETERS-----")
    key = read_private_key(plain, at="it", password=no_password, allow_plaintext=True)
    assert key.public.type is KeyType.ECDSA_P256
    shape = ("-passout", "pass:secret")
    for command in (
        ("openssl", "ec", "-aes256", *shape),  # SEC1, in the encryption of its PEM
        ("openssl", "pkcs8", "-topk8", "-v2", "aes-256-cbc", *shape),
        ("openssl", "pkcs8", "-topk8", "-scrypt", *shape),
    ):
        encrypted = run(command, given=plain).stdout
        again = read_private_key(encrypted, at="it", password=lambda: b"secret")
        assert again.public == key.public
