"""A program that signs for a key which it keeps: the bridge to a KMS or an HSM.

The program gets the message on stdin, all of it, and in its environment ``BUILDER_SIGN_SHA256``
(the sha256 of the message in hex, which is what most such services take for ECDSA),
``BUILDER_SIGN_TYPE`` (``ecdsa-p256`` or ``ed25519``) and ``BUILDER_SIGN_KEY`` (the fingerprint). It
prints the signature in base64 and exits with 0. What it says on stderr is shown. No shell is in
between; what is printed is verified with the public key before anybody gets it.
"""

import os
import selectors
import shlex
import signal
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from tempfile import TemporaryFile

from builder.digest import Digest
from builder.errors import EnvironmentFault, IntegrityError, UsageError
from builder.keys.public import KeyType, PublicKey

TIMEOUT = 120.0
"""Seconds for one signature: somebody may have to touch a token."""
LIMIT = 16 << 10
_LOOK = 0.2
"""Seconds after which it is looked whether a command that prints nothing is still there."""


class CommandSigner:
    """Signs with a command. It is a :class:`builder.keys.signer.Signer`."""

    def __init__(self, command: str, *, public: PublicKey, timeout: float = TIMEOUT) -> None:
        """Take a command line, split as a shell would split it.

        Raises:
            UsageError: It is empty, or a quote is open.
        """
        try:
            self._argv = shlex.split(command)
        except ValueError as error:
            # Without the words: one of them may be the PIN of a token.
            raise UsageError(f"exec: {str(error).lower()} in the command") from error
        if not self._argv:
            raise UsageError("exec: names no command")
        self._name = f"exec:{PurePath(self._argv[0]).name}"
        self._timeout = timeout
        self.public = public

    def sign(self, message: bytes) -> bytes:
        """The command's signature over ``message``, verified.

        Raises:
            EnvironmentFault: There is no such command, it fails, or takes too long.
            IntegrityError: What it prints is not this key's signature.
        """
        printed = self._printed(message)
        try:
            signature = b64decode(b"".join(printed.split()), validate=True)
        except ValueError as error:
            raise IntegrityError(
                f"{self._name}: expected a signature in base64, got {len(printed)} bytes"
                " of something else",
                hint="docs/signing.md says what such a command gets and prints",
            ) from error
        if not self.public.verifies(signature, message):
            raise IntegrityError(
                f"{self._name}: what it printed ({len(signature)} bytes) is no signature of"
                f" {self.public.fingerprint} over the message",
                hint=self._likely(signature),
            )
        return signature

    def _likely(self, signature: bytes) -> str:
        if self.public.type is KeyType.ECDSA_P256 and len(signature) == 64:
            return "64 bytes look like r and s: print them as DER, as openssl does"
        return "is --public the public half of the key that the command signs with?"

    def _printed(self, message: bytes) -> bytes:
        with TemporaryFile() as given:  # a pipe would be waited for by both sides
            given.write(message)
            given.seek(0)
            try:
                child = subprocess.Popen(
                    self._argv, stdin=given, stdout=subprocess.PIPE, env=self._environment(message)
                )
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                raise EnvironmentFault(f"{self._name}: cannot be started: {reason}") from error
        with child:
            try:
                printed = self._read(child)
            except BaseException:
                _end(child.pid)
                raise
        if child.returncode != 0:
            raise EnvironmentFault(
                f"{self._name}: ended with status {child.returncode}",
                hint="what it said stands above",
            )
        return printed

    def _read(self, child: "subprocess.Popen[bytes]") -> bytes:
        """What is on stdout when the command is done. Whoever it leaves behind (an agent that keeps
        a token open) may hold stdout, and is not waited for."""
        assert child.stdout is not None
        deadline = time.monotonic() + self._timeout
        printed, over = bytearray(), False
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while True:
                if (left := deadline - time.monotonic()) <= 0:
                    raise self._late()
                if selector.select(min(left, _LOOK)):
                    if not (chunk := os.read(child.stdout.fileno(), LIMIT)):
                        break
                    printed += chunk
                elif over:
                    break
                else:  # what it printed meanwhile is still to be read
                    over = child.poll() is not None
                if len(printed) > LIMIT:
                    raise EnvironmentFault(
                        f"{self._name}: printed more than {LIMIT} bytes for a signature"
                    )
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise self._late() from error
        return bytes(printed)

    def _late(self) -> EnvironmentFault:
        return EnvironmentFault(f"{self._name}: no signature within {self._timeout:.0f} seconds")

    def _environment(self, message: bytes) -> dict[str, str]:
        """What we have, without passwords that are for us."""
        passed = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("BUILDER_KEY_PASSWORD")
        }
        return passed | {
            "BUILDER_SIGN_KEY": self.public.fingerprint,
            "BUILDER_SIGN_TYPE": str(self.public.type),
            "BUILDER_SIGN_SHA256": Digest.of(message).hex,
        }


def _end(pid: int) -> None:
    """End a command and those that it started: of a shell script, what it waits for. Those that
    left it meanwhile are not found."""
    for each in [pid, *_started_by(pid)]:  # all of them, before the first is ended
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _started_by(pid: int) -> Iterator[int]:
    """The children of a process, theirs, and so on (proc(5), ``children``)."""
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, file.read_text().split()):
                yield child
                yield from _started_by(child)
