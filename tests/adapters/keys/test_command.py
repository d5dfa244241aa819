"""Commands that sign: what they get, what they may print, and how long they may take."""

import base64
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

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
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    "program",
    [
        "sleep 60",
        "sleep 60 | cat",
        "sh -c 'sleep 60; true'; true",
        "yes AAAA | head -c 100000; sleep 60",
    ],
    ids=["a child", "a pipe", "a grandchild", "too much, and a child"],
)
def test_with_a_script_ends_what_it_waits_for(program: str, tmp_path: Path) -> None:
    script = tmp_path / "kms"
    script.write_text(f"#!/bin/sh\nexport MARK={tmp_path}\n{program}\n")
    script.chmod(0o755)
    start = time.monotonic()
    with pytest.raises(EnvironmentFault, match=r"no signature within|printed more than"):
        CommandSigner(str(script), public=P256.public, timeout=0.6).sign(b"it")
    assert time.monotonic() - start < 30
    assert marked(tmp_path) == []


def marked(directory: Path) -> list[str]:
    """The processes that have the directory in their environment, once they had time to go."""
    left: list[str] = []
    for _ in range(50):
        left = []
        for process in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if f"MARK={directory}".encode() in process.read_bytes():
                    left.append(process.parent.name)
        if not left:
            break
        time.sleep(0.02)
    return left


def test_what_a_command_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """An agent that holds stdout open, and goes on."""
    file = tmp_path / "answer"
    file.write_bytes(base64.b64encode(P256.sign(b"it")))
    script = tmp_path / "kms"
    script.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/pid\ncat '{file}'\n")
    script.chmod(0o755)
    start = time.monotonic()
    signer = CommandSigner(str(script), public=P256.public, timeout=60)
    try:
        assert signer.sign(b"it") == P256.sign(b"it")
        assert time.monotonic() - start < 30
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_what_a_command_leaves_behind_does_not_print_without_end(tmp_path: Path) -> None:
    script = tmp_path / "kms"
    script.write_text("#!/bin/sh\n(timeout 5 yes) &\nexit 0\n")
    script.chmod(0o755)
    with pytest.raises(EnvironmentFault, match="printed more than 16384 bytes"):
        CommandSigner(str(script), public=P256.public, timeout=60).sign(b"it")


ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def test_the_other_signature_of_the_same_numbers_is_the_keys_too(tmp_path: Path) -> None:
    """HSMs do not agree on which of (r, s) and (r, n - s) they give. Readers take both; nobody
    counts signatures."""
    r, s = decode_dss_signature(P256.sign(b"it"))
    for number in (s, ORDER - s):
        signature = encode_dss_signature(r, number)
        answer = answering(tmp_path, base64.b64encode(signature))
        assert CommandSigner(answer, public=P256.public).sign(b"it") == signature


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s + b"\0",
        lambda s: s[:1] + b"\x81" + s[1:],
        lambda s: encode_dss_signature(*(n + ORDER for n in decode_dss_signature(s))),
        lambda _: encode_dss_signature(0, 0),
        lambda _: P256.sign(b"It"),
    ],
    ids=["a byte behind", "a length in two bytes", "over the order", "zeros", "another message"],
)
def test_another_encoding_of_a_signature_is_none(
    change: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    answer = answering(tmp_path, base64.b64encode(change(P256.sign(b"it"))))
    with pytest.raises(IntegrityError, match="is no signature of SHA256:"):
        CommandSigner(answer, public=P256.public).sign(b"it")


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
        ("kms 'x", UsageError, "exec: no closing quotation in the command"),
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
