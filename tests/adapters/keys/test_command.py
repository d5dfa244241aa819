"""Commands that sign: what they get, what they may print, and how long they may take."""

import base64
import os
import sys
import time
from pathlib import Path

import pytest

from builder.adapters.keys.command import CommandSigner
from builder.errors import BuilderError, EnvironmentFault, IntegrityError, UsageError
from builder.keys.private import PrivateKey
from builder.keys.signer import Signer
from tests.keys.samples import ED25519, P256

MESSAGE = b"what is signed\0" * 20_000
"""More than a pipe holds."""


def kms(directory: Path, program: str) -> str:
    """A command of the words in ``program``, which is Python."""
    script = directory / "a kms.py"
    script.write_text(program)
    return f"'{sys.executable}' '{script}'"


def answering(directory: Path, answer: bytes) -> str:
    """A command that prints ``answer`` whatever it gets."""
    file = directory / "answer"
    file.write_bytes(answer)
    return f"cat '{file}'"


@pytest.mark.parametrize("key", [P256, ED25519], ids=["P-256", "Ed25519"])
def test_a_command_signs(key: PrivateKey, tmp_path: Path) -> None:
    (tmp_path / "kept.pem").write_bytes(key.plaintext_pem())
    command = kms(
        tmp_path,
        f"""
import base64, hashlib, os, sys
sys.path[:0] = {sys.path!r}
from builder.keys.private import read_private_key
message = sys.stdin.buffer.read()
assert os.environ["BUILDER_SIGN_SHA256"] == hashlib.sha256(message).hexdigest()
assert os.environ["BUILDER_SIGN_TYPE"] == {str(key.public.type)!r}
assert os.environ["BUILDER_SIGN_KEY"] == {key.public.fingerprint!r}
data = open({str(tmp_path / "kept.pem")!r}, "rb").read()
kept = read_private_key(data, at="it", password=bytes, allow_plaintext=True)
sys.stdout.write(base64.encodebytes(kept.sign(message)).decode())
""",
    )
    signer: Signer = CommandSigner(command, public=key.public)
    assert signer.sign(MESSAGE) == key.sign(MESSAGE)


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        (
            b"",
            "what it printed (0 bytes) is no signature of SHA256:",
            "is --public the public half",
        ),
        (b"?", "expected a signature in base64, got 1 bytes of something else", "docs/signing.md"),
        (b"vault:v1:AAAA", "expected a signature in base64, got 13 bytes", "docs/signing.md"),
        (
            base64.b64encode(P256.sign(b"another message")),
            "what it printed (71 bytes) is no signature of",
            "is --public the public half",
        ),
        (
            base64.b64encode(ED25519.sign(b"it")),
            "what it printed (64 bytes)",
            "64 bytes look like r",
        ),
    ],
    ids=["nothing", "no base64", "another prefix", "another message", "r and s"],
)
def test_what_is_no_signature_of_the_key_is_refused(
    answer: bytes, message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(IntegrityError) as caught:
        CommandSigner(answering(tmp_path, answer), public=P256.public).sign(b"it")
    assert str(caught.value).startswith(f"exec:cat: {message}")
    assert hint in (caught.value.hint or "")


def test_a_command_that_fails_is_not_listened_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    signature = base64.b64encode(P256.sign(b"it")).decode()
    command = kms(
        tmp_path,
        f"import sys; print({signature!r}); print('token is locked', file=sys.stderr); sys.exit(3)",
    )
    with pytest.raises(EnvironmentFault, match="ended with status 3"):
        CommandSigner(command, public=P256.public).sign(b"it")
    assert capfd.readouterr() == ("", "token is locked\n")


@pytest.mark.parametrize(
    "program",
    [
        "import time; time.sleep(60)",
        "import os, time; os.close(1); time.sleep(60)",
        "import sys, time\nwhile True: time.sleep(0.05); print('A', end='', flush=True)",
    ],
    ids=["silent", "stdout closed", "drop by drop"],
)
def test_a_command_that_takes_too_long_is_ended(program: str, tmp_path: Path) -> None:
    command = kms(
        tmp_path, f"import os\nopen('{tmp_path}/pid', 'w').write(str(os.getpid()))\n" + program
    )
    start = time.monotonic()
    with pytest.raises(EnvironmentFault, match="no signature within 1 seconds"):
        CommandSigner(command, public=P256.public, timeout=0.6).sign(b"it")
    assert time.monotonic() - start < 3
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_command_that_never_stops_printing_is_ended() -> None:
    with pytest.raises(EnvironmentFault, match="printed more than 16384 bytes for a signature"):
        CommandSigner("yes", public=P256.public).sign(b"it")


def test_passwords_of_ours_are_not_for_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("BUILDER_KEY_PASSWORD", "BUILDER_KEY_PASSWORD_FILE"):
        monkeypatch.setenv(name, "canary")
    command = kms(tmp_path, "import os, sys; print(dict(os.environ), sys.argv, file=sys.stderr)")
    with pytest.raises(IntegrityError):
        CommandSigner(command, public=P256.public).sign(b"it")
    told = capfd.readouterr().err
    assert "PATH" in told
    assert "canary" not in told


@pytest.mark.parametrize(
    ("command", "kind", "message"),
    [
        ("", UsageError, "exec: names no command"),
        ("  ", UsageError, "exec: names no command"),
        ("kms 'x", UsageError, "exec:kms 'x: no closing quotation"),
        ("/does/not/exist", EnvironmentFault, "exec:exist: cannot be started: No such file"),
        ("/etc", EnvironmentFault, "exec:etc: cannot be started: Permission denied"),
        ("kms\0", EnvironmentFault, "cannot be started: embedded null byte"),
    ],
)
def test_what_is_no_command_is_refused(
    command: str, kind: type[BuilderError], message: str
) -> None:
    with pytest.raises(kind) as caught:
        CommandSigner(command, public=P256.public).sign(b"it")
    assert message in str(caught.value)


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    with pytest.raises(BuilderError):
        CommandSigner(f"echo x > {tmp_path}/x; touch {tmp_path}/y", public=P256.public).sign(b"it")
    assert not list(tmp_path.iterdir())
