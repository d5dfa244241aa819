"""From what a person writes to a signer."""

import os
from collections.abc import Mapping
from pathlib import Path

from builder.adapters.given_file import read_given
from builder.adapters.keys.command import CommandSigner
from builder.adapters.keys.directory import NAME, KeyDirectory
from builder.adapters.keys.files import read_private_file
from builder.adapters.keys.passwords import Passwords
from builder.errors import IntegrityError, UsageError
from builder.keys.private import PrivateKey, is_encrypted, read_private_key
from builder.keys.public import KEY_LIMIT, PublicKey, read_public_key
from builder.keys.signer import Signer


class Keyring:
    """The signers of one run, each opened once: to derive a key from a password takes a third of a
    second, and a person is not asked twice."""

    def __init__(
        self,
        directory: KeyDirectory,
        passwords: Passwords,
        *,
        environment: Mapping[str, str],
        allow_plaintext: bool = False,
    ) -> None:
        self._directory = directory
        self._passwords = passwords
        self._environment = environment
        self._allow_plaintext = allow_plaintext
        self._opened: dict[tuple[str, Path | None], Signer] = {}

    def signer(self, text: str, *, public: Path | None = None) -> Signer:
        """The signer that ``text`` names.

        Args:
            text: The name of a key in the directory; the path of a key file, with a slash or a dot
                in it; ``env://VARIABLE``, which has the text of a key file; ``exec:COMMAND``
                (:mod:`builder.adapters.keys.command`).
            public: The file of its public half: needed with ``exec:``, elsewhere compared.

        Raises:
            UsageError: There is no such key, file, variable or command.
            PasswordError: No password, or another.
            PolicyError: The key is revoked, or not encrypted.
            IntegrityError: It is no key, or not the private half of ``public``.
            EnvironmentFault: It cannot be read, or others can write where it is kept.
        """
        key = text, public
        if key not in self._opened:
            self._opened[key] = self._open(text, public)
        return self._opened[key]

    def _open(self, text: str, public: Path | None) -> Signer:
        if not text:
            raise UsageError("'' names no key", hint="builder key list shows names")
        wanted = None if public is None else read_public_file(public)
        if text.startswith("exec:"):
            if wanted is None:
                raise UsageError(
                    "exec: wants the public half of its key", hint="--public FILE names it"
                )
            return CommandSigner(text.removeprefix("exec:"), public=wanted)
        if "://" in text and not text.startswith("env://"):
            raise UsageError(
                f"{text.partition('://')[0]}://: no such kind of key",
                hint="a key management service signs through exec:COMMAND and --public FILE",
            )
        if text.startswith("env://"):
            signer = self._of_variable(text.removeprefix("env://"))
        elif NAME.fullmatch(text):
            signer = self._of_name(text)
        else:
            signer = self.of_file(Path(text))
        if wanted is not None and signer.public != wanted:
            raise IntegrityError(
                f"{text}: expected the private half of {wanted.fingerprint} ({public}),"
                f" got that of {signer.public.fingerprint}",
                hint="name another key, or leave --public out",
            )
        return signer

    def _of_name(self, name: str) -> PrivateKey:
        entry = self._directory.usable(name)
        key = self.of_file(self._directory.private(name))
        if key.public != entry.public:
            raise IntegrityError(
                f"{name}.pub in {self._directory.path} is not the public half of {name}.key",
                hint="a key was replaced half way, or by hand: import it again with --force",
            )
        return key

    def of_file(self, path: Path) -> PrivateKey:
        """The private key in a file. Raises as :meth:`signer` does."""
        at = str(path)
        data = read_private_file(path, encrypted=lambda data: is_encrypted(data, at=at))
        return self.of_bytes(data, at=at)

    def of_bytes(self, data: bytes, *, at: str) -> PrivateKey:
        """The private key in the bytes of a file. Raises as :meth:`signer` does."""
        with self._passwords.opening(at):
            return read_private_key(
                data,
                at=at,
                password=lambda: self._passwords.existing(at),
                allow_plaintext=self._allow_plaintext,
            )

    def _of_variable(self, name: str) -> PrivateKey:
        if not (text := self._environment.get(name)):
            raise UsageError(
                f"env://{name}: no such variable, or it is empty",
                hint="it has the text of a key file, as builder key export --private prints it",
            )
        return self.of_bytes(os.fsencode(text), at=f"env://{name}")


def read_public_file(path: Path) -> PublicKey:
    """The public key in a file.

    Raises:
        UsageError: There is no such file, or it has a private key.
        IntegrityError: It has no key.
    """
    data = read_given(path, limit=KEY_LIMIT)
    if b"PRIVATE KEY-----" in data:
        raise UsageError(
            f"{path}: a private key, where the public half is wanted",
            hint="that may be given to anybody, and is what stands in a .pub; of a key of builder"
            " key: builder key export NAME",
        )
    return read_public_key(data, at=str(path))
