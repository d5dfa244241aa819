"""``builder key``: what it keeps, what it prints, and what it never prints."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from builder.keys.private import PrivateKey, read_private_key
from builder.keys.public import read_public_key
from tests.cli.conftest import DEMO, Builder, tree
from tests.keys.samples import COSIGN_BOX, ED25519, P256, PASSWORD

CANARY = "a-canary-sings"


@pytest.fixture
def keys(environment: dict[str, str]) -> Path:
    """The directory of keys; it is not there yet."""
    return Path(environment["HOME"], ".config/builder/keys")


@pytest.fixture
def password(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The password of this test, in the environment of the command line in this process."""
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", CANARY)


def opened(file: Path, password: str = CANARY) -> PrivateKey:
    return read_private_key(file.read_bytes(), at="it", password=password.encode)


@pytest.mark.usefixtures("password")
def test_a_key_is_made_listed_and_exported(builder: Builder, keys: Path) -> None:
    made = builder("key", "generate", "release")
    public = read_public_key((keys / "release.pub").read_bytes(), at="it")
    assert (made.status, made.out, made.err) == (
        0,
        f"release: ecdsa-p256 {public.fingerprint} (active)\n",
        f"whoever verifies needs {keys / 'release.pub'}\n",
    )
    assert opened(keys / "release.key").public == public
    assert builder("key", "export", "release").out == public.pem.decode()
    assert builder("key", "export", "release", "--format", "ssh").out == public.openssh.decode()
    assert builder("key", "list").out == (
        "NAME     TYPE        FINGERPRINT" + " " * 41 + "STATE\n"
        f"release  ecdsa-p256  {public.fingerprint}  active\n"
    )
    (listed,) = builder("key", "list", "--json").json["keys"]
    assert listed == {
        "name": "release",
        "type": "ecdsa-p256",
        "fingerprint": public.fingerprint,
        "state": "active",
        "successor": None,
        "reason": None,
        "public": str(keys / "release.pub"),
        "private": str(keys / "release.key"),
    }
    exported = builder("key", "export", "release", "--json").json
    assert exported == listed | {
        "hint": public.hint,
        "pem": public.pem.decode(),
        "ssh": public.openssh.decode(),
    }


def test_no_keys_are_no_error(builder: Builder, keys: Path) -> None:
    ran = builder("key", "list")
    assert (ran.status, ran.out, ran.err) == (0, "no keys\n", f"in {keys}\n")
    assert builder("key", "list", "--json").json == {"directory": str(keys), "keys": []}
    assert not keys.exists()


def test_without_a_password_nothing_is_made(builder: Builder, keys: Path) -> None:
    for arguments in (("generate", "release"), ("rotate", "release")):
        ran = builder("key", *arguments)
        assert ran.status in (2, 9)
        assert not keys.exists()
    ran = builder("key", "generate", "release", "--json")
    assert ran.json["error"] == {
        "message": "release: no password, and nobody to ask",
        "hint": "BUILDER_KEY_PASSWORD_FILE names a file with the password;"
        " on a terminal it is asked for",
        "exit_status": 9,
    }


def test_a_key_without_a_password_is_one_that_was_asked_for(builder: Builder, keys: Path) -> None:
    ran = builder("key", "generate", "throwaway", "--allow-plaintext", "--type", "ed25519")
    assert ran.status == 0
    assert (keys / "throwaway.key").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")
    refused = builder("key", "export", "throwaway", "--private")
    assert (refused.status, refused.out) == (5, "")


@pytest.mark.usefixtures("password")
def test_a_name_that_is_taken_is_refused_before_anything_is_derived(
    builder: Builder, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder("key", "generate", "release", "--allow-plaintext")
    before = tree(keys)
    monkeypatch.delattr("builder.keys.cosign_box.crypto_pwhash_scryptsalsa208sha256_ll")
    for arguments in (("generate", "release"), ("import", "release", "/no/file")):
        ran = builder("key", *arguments)
        assert (ran.status, ran.err.partition(" in ")[0]) == (
            2,
            "builder: error: there is a key 'release'",
        )
    assert tree(keys) == before
    assert builder("key", "generate", "release", "--force", "--allow-plaintext").status == 0
    assert tree(keys) != before


@pytest.mark.usefixtures("password")
def test_a_plain_key_is_imported_under_a_password(
    builder: Builder, keys: Path, tmp_path: Path
) -> None:
    file = tmp_path / "plain.pem"
    file.write_bytes(ED25519.plaintext_pem())
    ran = builder("key", "import", "mine", file)
    assert ran.out == f"mine: ed25519 {ED25519.public.fingerprint} (active)\n"
    assert f"{file}: others can read it" in ran.err
    assert opened(keys / "mine.key").public == ED25519.public


def test_a_key_of_cosign_stays_as_it_is(
    builder: Builder, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cosign.key"
    file.write_bytes(COSIGN_BOX)
    file.chmod(0o600)
    monkeypatch.setenv("COSIGN_PASSWORD", PASSWORD.decode())
    assert builder("key", "import", "mine", file).status == 0
    assert (keys / "mine.key").read_bytes() == COSIGN_BOX
    monkeypatch.setenv("COSIGN_PASSWORD", CANARY)
    before = tree(keys)
    ran = builder("key", "import", "other", file)
    assert (ran.status, ran.err.splitlines()[0]) == (
        9,
        f"builder: error: {file}: the password does not open it, or it is damaged",
    )
    assert tree(keys) == before


@pytest.mark.usefixtures("password")
def test_another_encryption_is_replaced_and_the_password_stays(
    builder: Builder, keys: Path, tmp_path: Path
) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key(P256.plaintext_pem(), None)
    how = BestAvailableEncryption(CANARY.encode())
    (tmp_path / "a.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how))
    assert builder("key", "import", "mine", tmp_path / "a.pem").status == 0
    assert b"SIGSTORE" in (keys / "mine.key").read_bytes()
    assert opened(keys / "mine.key").public == P256.public


def test_a_key_comes_from_stdin(command: Builder, environment: dict[str, str], keys: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "builder", "key", "import", "mine", "-", "--allow-plaintext"],
        env=environment | {"PYTHONPATH": str(DEMO)},
        input=P256.plaintext_pem(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert P256.public.fingerprint in done.stdout.decode()
    assert (keys / "mine.key").read_bytes() == P256.plaintext_pem()


@pytest.mark.usefixtures("password")
def test_the_private_half_leaves_encrypted_or_into_a_file_of_its_own(
    builder: Builder, keys: Path, tmp_path: Path
) -> None:
    builder("key", "generate", "release")
    box = (keys / "release.key").read_text()
    assert builder("key", "export", "release", "--private").out == box
    for arguments, message in (
        (("--plaintext",), "--plaintext goes with --private"),
        (("--private", "--plaintext"), "--plaintext: expected --out FILE, so that no terminal"),
        (("--private", "--json"), "--private and --json: documents hold no private keys"),
        (("--private", "--format", "ssh"), "--private: expected --format pem, got ssh"),
    ):
        ran = builder("key", "export", "release", *arguments)
        assert ran.status == 2
        assert message in ran.err
        assert "PRIVATE KEY" not in ran.out
    out = tmp_path / "plain.pem"
    ran = builder("key", "export", "release", "--private", "--plaintext", "--out", out)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert out.stat().st_mode & 0o777 == 0o600
    key = read_private_key(out.read_bytes(), at="it", password=bytes, allow_plaintext=True)
    assert key.public == opened(keys / "release.key").public
    again = builder("key", "export", "release", "--out", out)
    assert (again.status, again.err.splitlines()[0]) == (
        2,
        f"builder: error: there is a file {str(out)!r}",
    )


def test_a_rotation_makes_a_successor_and_says_what_to_do(builder: Builder) -> None:
    plain = "--allow-plaintext"
    builder("key", "generate", "release", plain)
    ran = builder("key", "rotate", "release", plain, "--json").json
    old, new = ran["old"], ran["new"]
    assert (old["state"], old["successor"]) == ("superseded", "release-2")
    assert (new["name"], new["state"]) == ("release-2", "active")
    assert old["fingerprint"] != new["fingerprint"]
    assert ran["steps"] == [
        "builder key export release-2 --format ssh prints its line 'public' for trust.yaml",
        f"add {new['fingerprint']} to the keys and roles of trust.yaml, in a new version of it",
        "until everybody has that version, sign with both, release and release-2",
        f"then give {old['fingerprint']} the state retired there, in a next version",
    ]
    again = builder("key", "rotate", "release", plain)
    assert again.status == 2
    assert again.err == (
        "builder: error: key 'release' has a successor: 'release-2'\n"
        "  hint: builder key rotate release-2\n"
    )
    named = builder("key", "rotate", "release-2", "--to", "ci", plain)
    assert "sign with both, release-2 and ci" in named.out
    taken = builder("key", "rotate", "ci", "--to", "release", plain)
    assert (taken.status, "there is a key 'release' in " in taken.err) == (2, True)
    assert taken.err.endswith("\n  hint: --to takes another name\n"), "there is no --force"
    assert builder("key", "rotate", "ci", "--to", "a/b", plain).status == 2


def test_a_revocation_says_what_to_do_and_stays(builder: Builder) -> None:
    builder("key", "generate", "release", "--allow-plaintext")
    ran = builder("key", "revoke", "release", "--reason", "a lost laptop")
    fingerprint = ran.out.split()[2]
    assert ran.out.splitlines() == [
        f"release: ecdsa-p256 {fingerprint} (revoked: a lost laptop)",
        f"1. give {fingerprint} the state revoked in trust.yaml, in a new version of it",
        "2. then nothing that it signed is accepted, new or old",
        "3. what builder trust export wrote for other tools still has the key: write it anew",
        "4. sign again, with another key, what is to stay in use",
        "5. if the key may be in other hands, ask who could use it, and since when",
    ]
    rotated = builder("key", "rotate", "release", "--allow-plaintext", "--json").json
    assert rotated["old"]["state"] == "revoked"
    assert rotated["steps"][2:] == ["until everybody has that version, sign with release-2 alone"]
    for reason in ("two\nlines", "\x1b[31mred"):
        assert builder("key", "revoke", "release", "--reason", reason).status == 2


def test_a_directory_where_others_write_is_looked_at_and_not_used(
    builder: Builder, keys: Path, tmp_path: Path
) -> None:
    builder("key", "generate", "release", "--allow-plaintext")
    keys.chmod(0o777)
    ran = builder("key", "list")
    assert (ran.status, len(ran.out.splitlines())) == (0, 2)
    assert f"{keys}: others can write there; chmod 700 {keys}" in ran.err
    for words in (
        ("key", "export", "release"),
        ("key", "export", "release", "--private", "--plaintext", "--out", tmp_path / "out"),
        ("key", "revoke", "release"),
        ("key", "certificate", "release", "--subject", "CN=a,O=a,ST=a,C=DE", "--allow-plaintext"),
        ("trust", "new", "--key", "release", "--repository", "*"),
        ("trust", "sign", "--key", "release"),
    ):
        ran = builder(*words)
        assert (ran.status, ran.err) == (
            9,
            f"builder: error: {keys}: others can write there\n  hint: chmod 700 {keys}\n",
        ), words
    assert not (tmp_path / "out").exists()


def test_a_private_key_in_the_place_of_a_public_one_is_a_matter_of_usage(
    builder: Builder, keys: Path
) -> None:
    builder("key", "generate", "release", "--allow-plaintext")
    file = keys / "release.key"
    for words in (
        ("verify", "127.0.0.1:9/a/b:t", "--key", file),
        ("trust", "new", f"--key=me={file}", "--repository=*"),
    ):
        ran = builder(*words)
        assert (ran.status, ran.err.splitlines()[0]) == (
            2,
            f"builder: error: {file}: a private key, where the public half is wanted",
        ), words


def test_a_damaged_key_does_not_hide_the_others(builder: Builder, keys: Path) -> None:
    for name in ("a", "b"):
        builder("key", "generate", name, "--allow-plaintext")
    (keys / "a.pub").write_bytes(b"x")
    ran = builder("key", "list")
    assert ran.status == 4
    assert ran.out.splitlines()[1].startswith("b ")
    assert ran.err.startswith(f"builder: error: {keys / 'a.pub'}: expected one key")
    assert ran.err.endswith("hint: builder key export NAME prints that of a key of yours\n")
    document = builder("key", "list", "--json").json
    assert [key["name"] for key in document["keys"]] == ["b"]
    assert document["error"]["exit_status"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "none"), "no key 'none' in "),
        (("revoke", "none"), "no key 'none' in "),
        (("generate", "a/b", "--allow-plaintext"), "'a/b' is no name for a key"),
        (("generate", "a", "--type", "rsa"), "invalid value for '--type': 'rsa' is not one of"),
        (("import", "a", "/no/file"), "no file '/no/file'"),
        (("revok", "a"), "no command 'revok' in builder key"),
    ],
)
def test_what_is_not_there_is_a_usage_error(
    arguments: tuple[str, ...], message: str, builder: Builder
) -> None:
    ran = builder("key", *arguments)
    assert ran.status == 2
    assert message in ran.err


def test_nothing_that_is_printed_has_a_secret(command: Builder, keys: Path, tmp_path: Path) -> None:
    """Neither a password nor a private key, in any stream, document or log, of what works and of
    what fails."""
    plain = ED25519.plaintext_pem()
    (tmp_path / "plain.pem").write_bytes(plain)
    (tmp_path / "cut.pem").write_bytes(plain[:-20])
    (tmp_path / "box.key").write_bytes(COSIGN_BOX)
    said = ""
    statuses = []
    for arguments in (
        ("generate", "release", "-vv", "--json"),
        ("import", "plain", tmp_path / "plain.pem", "-vv"),
        ("import", "cut", tmp_path / "cut.pem", "--json"),
        ("import", "box", tmp_path / "box.key", "--json"),  # another password
        ("export", "release", "--json"),
        ("list", "-vv", "--json"),
    ):
        ran = command("key", *arguments, BUILDER_KEY_PASSWORD=CANARY)
        statuses.append(ran.status)
        said += ran.out + ran.err
    assert statuses == [0, 0, 4, 9, 0, 0]
    secrets = [CANARY, plain.decode().splitlines()[1][20:], "BEGIN PRIVATE"]
    assert not [secret for secret in secrets if secret in said]
    kept = b"".join(path.read_bytes() for path in keys.iterdir())
    assert not [secret for secret in secrets if secret.encode() in kept]


def test_a_person_is_asked_twice_and_what_they_type_is_not_shown(
    environment: dict[str, str], keys: Path
) -> None:
    typed = f"{CANARY} \u2603"
    shown = _typing(["key", "generate", "mine"], [typed, typed], environment)
    assert "new password for mine: " in shown
    assert "new password for mine, again: " in shown
    assert "mine: ecdsa-p256 SHA256:" in shown
    assert CANARY not in shown
    assert opened(keys / "mine.key", typed).public.fingerprint in shown


# The first terminal that the leader of a session opens is the one that /dev/tty means.
_AT_A_TERMINAL = (
    "import os, sys; os.open(os.ttyname(0), os.O_RDWR); os.execv(sys.argv[1], sys.argv[1:])"
)


def _typing(arguments: list[str], answers: list[str], environment: dict[str, str]) -> str:
    """What a terminal shows while somebody answers ``builder``'s questions."""
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "builder", *arguments]
    child = subprocess.Popen(
        [sys.executable, "-c", _AT_A_TERMINAL, *command],
        env=environment | {"PYTHONPATH": str(DEMO)},
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
    )
    os.close(end)
    shown = b""
    try:
        while select.select([terminal], [], [], 30)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # the child is gone
                break
            if answers and shown.endswith(b": "):  # the echo is off before the blank comes
                os.write(terminal, answers.pop(0).encode() + b"\n")
    finally:
        os.close(terminal)
        status = child.wait(30)
    assert status == 0, shown
    return shown.decode()
