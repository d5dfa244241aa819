"""From words to signers: names, files, variables, commands."""

import os
from base64 import b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from builder.adapters.keys.directory import KeyDirectory
from builder.adapters.keys.passwords import Passwords
from builder.adapters.keys.signers import Keyring
from builder.errors import (
    BuilderError,
    IntegrityError,
    PasswordError,
    PolicyError,
    UsageError,
)
from builder.keys import cosign_box
from builder.keys.private import PrivateKey, generate
from tests.keys.samples import COSIGN_BOX, ED25519, P256, PASSWORD


class Asked:
    """Counts how often a person is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, question: str, twice: bool) -> str:
        self.times += 1
        return PASSWORD.decode()


@pytest.fixture
def keys(tmp_path: Path) -> KeyDirectory:
    directory = KeyDirectory(tmp_path / "keys")
    directory.put("release", COSIGN_BOX, P256.public, force=False)
    directory.put("plain", ED25519.plaintext_pem(), ED25519.public, force=False)
    return directory


def ring(
    keys: KeyDirectory,
    asked: Asked | None = None,
    *,
    plain: bool = False,
    environment: dict[str, str] | None = None,
) -> Keyring:
    environment = environment or {}
    passwords = Passwords(environment, ask=asked)
    return Keyring(keys, passwords, environment=environment, allow_plaintext=plain)


@pytest.mark.parametrize(
    ("environment", "place", "empty"),
    [
        ("BUILDER_KEY_PASSWORD", "BUILDER_KEY_PASSWORD", "set and empty"),
        ("COSIGN_PASSWORD", "COSIGN_PASSWORD", "set and empty"),
        ("BUILDER_KEY_PASSWORD_FILE", "the file {file!r} (BUILDER_KEY_PASSWORD_FILE)", "empty"),
    ],
)
@pytest.mark.parametrize("sealed", ["cosign", "pkcs8"])
def test_a_password_that_does_not_open_a_key_is_told_by_its_place(
    environment: str, place: str, empty: str, sealed: str, tmp_path: Path
) -> None:
    key, secret = tmp_path / "a.key", tmp_path / "secret"
    made = generate()
    if sealed == "cosign":
        key.write_bytes(cosign_box.seal(made.pkcs8_der(), b"pw", random=os.urandom))
    else:
        whole = load_pem_private_key(made.plaintext_pem(), None)
        key.write_bytes(
            whole.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))
        )
    key.chmod(0o600)
    place = place.format(file=str(secret))
    withheld = "a secret that this job is not given? without it, a person is asked on a terminal"
    for given, message, hint in (
        ("", f"{key}: {place} is {empty}", withheld),
        (
            "other",
            f"{key}: the password does not open it, or it is damaged",
            f"the password is that of {place}",
        ),
    ):
        secret.write_text(given)
        variables = {environment: str(secret) if environment.endswith("FILE") else given}
        ring = Keyring(
            KeyDirectory(tmp_path), Passwords(variables, ask=None), environment=variables
        )
        with pytest.raises(PasswordError) as caught:
            ring.signer(str(key))
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_an_empty_password_that_opens_a_key_is_no_protection(tmp_path: Path) -> None:
    key = tmp_path / "a.key"
    key.write_bytes(cosign_box.seal(generate().pkcs8_der(), b"", random=os.urandom))
    key.chmod(0o600)
    passwords = Passwords({"BUILDER_KEY_PASSWORD": ""}, ask=None)
    with pytest.raises(PolicyError) as caught:
        Keyring(KeyDirectory(tmp_path), passwords, environment={}).signer(str(key))
    assert caught.value.message == f"{key}: its password is empty: whoever reads the file can sign"
    ring = Keyring(KeyDirectory(tmp_path), passwords, environment={}, allow_plaintext=True)
    assert ring.signer(str(key)).public.fingerprint


def test_a_password_in_a_pipe_is_for_all_keys_of_a_run(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"pw\n")
    os.close(writing)
    passwords = Passwords({"BUILDER_KEY_PASSWORD_FILE": f"/dev/fd/{reading}"}, ask=None)
    assert passwords.existing("a") == passwords.existing("b") == b"pw"
    os.close(reading)


def test_a_key_is_opened_once_a_run(keys: KeyDirectory) -> None:
    asked = Asked()
    opened = ring(keys, asked)
    one, other = opened.signer("release"), opened.signer("release")
    assert one is other
    assert one.sign(b"it") == P256.sign(b"it")
    assert asked.times == 1


def test_a_path_and_a_variable_name_keys_too(keys: KeyDirectory) -> None:
    variables = {"KEY": COSIGN_BOX.decode(), "COSIGN_PASSWORD": PASSWORD.decode()}
    found = ring(keys, environment=variables)
    for text in (str(keys.path / "release.key"), "env://KEY"):
        assert found.signer(text).public == P256.public


def test_a_command_needs_the_public_half(keys: KeyDirectory, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        ring(keys).signer("exec:kms")
    assert str(caught.value) == "exec: wants the public half of its key"
    answer = tmp_path / "answer"
    answer.write_bytes(b64encode(P256.sign(b"it")))
    signer = ring(keys).signer(f"exec:cat {answer}", public=keys.path / "release.pub")
    assert signer.sign(b"it") == P256.sign(b"it")


def test_a_public_half_that_is_named_is_compared(keys: KeyDirectory) -> None:
    opened = ring(keys, plain=True)
    assert opened.signer("plain", public=keys.path / "plain.pub").public == ED25519.public
    with pytest.raises(IntegrityError, match=f"^plain: expected .* {P256.public.fingerprint} "):
        opened.signer("plain", public=keys.path / "release.pub")


def test_a_revoked_key_signs_nothing(keys: KeyDirectory) -> None:
    keys.succeed("plain", "next", COSIGN_BOX, P256.public)
    assert isinstance(ring(keys, plain=True).signer("plain"), PrivateKey)
    keys.revoke("plain", reason="a lost laptop")
    with pytest.raises(PolicyError) as caught:
        ring(keys, plain=True).signer("plain")
    assert str(caught.value) == "key 'plain' is revoked: a lost laptop"
    assert str(caught.value.hint).startswith("use next: ")


def test_a_public_half_of_another_key_beside_it_is_noticed(keys: KeyDirectory) -> None:
    (keys.path / "plain.pub").write_bytes(P256.public.pem)
    with pytest.raises(
        IntegrityError, match=r"^plain.pub in .* is not the public half of plain.key"
    ):
        ring(keys, plain=True).signer("plain")


@pytest.mark.parametrize(
    ("text", "environment", "kind", "message"),
    [
        ("none", {}, UsageError, "no key 'none' in "),
        ("./none", {}, UsageError, "no file 'none'"),
        ("cosign.key", {}, UsageError, "no file 'cosign.key'"),
        ("", {}, UsageError, "'' names no key"),
        ("env://NONE", {}, UsageError, "env://NONE: no such variable, or it is empty"),
        ("env://NONE", {"NONE": ""}, UsageError, "env://NONE: no such variable, or it is empty"),
        ("env://KEY", {"KEY": "canary"}, IntegrityError, "env://KEY: expected one private key"),
        ("exec:", {}, UsageError, "exec: wants the public half"),
        ("awskms://x", {}, UsageError, "awskms://: no such kind of key"),
        ("plain", {}, PolicyError, "plain.key: it is not encrypted"),
        ("release", {"COSIGN_PASSWORD": "canary"}, PasswordError, "release.key: the password does"),
        (
            "release",
            {"COSIGN_PASSWORD": ""},
            PasswordError,
            "release.key: COSIGN_PASSWORD is set and empty",
        ),
        ("release", {}, PasswordError, "release.key: no password, and nobody to ask"),
    ],
)
def test_what_names_no_key_is_said(
    text: str,
    environment: dict[str, str],
    kind: type[BuilderError],
    message: str,
    keys: KeyDirectory,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        ring(keys, environment=environment).signer(text)
    assert message in str(caught.value)
    assert caught.value.hint, "it says what to do"
    assert "canary" not in f"{caught.value} {caught.value.hint}"
