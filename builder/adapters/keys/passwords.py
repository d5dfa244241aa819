"""Where the password of a private key comes from."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from builder.adapters.given_file import read_given
from builder.errors import PasswordError, UsageError

FILE = "BUILDER_KEY_PASSWORD_FILE"
VARIABLES = ("BUILDER_KEY_PASSWORD", "COSIGN_PASSWORD")
LIMIT = 4096

_AGAIN = "run it again, and type it once more"
_WITHHELD = "a secret that this job is not given? without it, a person is asked on a terminal"

Ask = Callable[[str, bool], str]
"""Ask a person: the question, and whether they shall type the answer twice."""


class Passwords:
    """The passwords of one run. A person is asked at most once for each key.

    The file that ``BUILDER_KEY_PASSWORD_FILE`` names comes first, then ``BUILDER_KEY_PASSWORD``,
    then ``COSIGN_PASSWORD``, then the person. One that is set and empty is an empty password: a
    secret that a CI lost must not turn into a question.
    """

    def __init__(self, environment: Mapping[str, str], *, ask: Ask | None) -> None:
        """Take the environment; ``ask`` is ``None`` where nobody is there."""
        self._environment = environment
        self._ask = ask
        self._asked: dict[str, bytes] = {}

    def existing(self, key: str) -> bytes:
        """The password of a key that there is.

        Raises:
            PasswordError: There is none, and nobody to ask.
            UsageError: The environment contradicts itself, or names no file.
        """
        return self._password(key, f"password of {key}", twice=False)

    def fresh(self, key: str) -> bytes:
        """A password for a key that was encrypted with none before.

        Raises:
            PasswordError: There is none, it is empty, or there is nobody to ask.
            UsageError: As for :meth:`existing`.
        """
        password = self._password(key, f"new password for {key}", twice=True)
        if not password:
            told = "" if self._given is None else f"{_empty(self._given[1])}; "
            raise PasswordError(
                f"{key}: the password is empty, which protects nothing",
                hint=f"{told}--allow-plaintext keeps a key without a password",
            )
        return password

    @contextmanager
    def opening(self, key: str) -> Iterator[None]:
        """For what opens a key with a password of ours: where that does not, the hint names the
        place that it came from, or says that it can be typed again.

        Raises:
            PasswordError: As it was raised within, with that hint.
        """
        try:
            yield
        except PasswordError as error:
            if self._given is None:
                if key in self._asked:
                    error.hint = _AGAIN
                raise
            password, place = self._given
            if password:
                raise PasswordError(
                    error.message, hint=f"the password is that of {place}"
                ) from error
            raise PasswordError(f"{key}: {_empty(place)}", hint=_WITHHELD) from error

    def _password(self, key: str, question: str, *, twice: bool) -> bytes:
        if self._given is not None:
            return self._given[0]
        if key not in self._asked:
            if self._ask is None:
                raise PasswordError(f"{key}: no password, and nobody to ask")
            answer = self._ask(question, twice)
            self._asked[key] = answer.encode("utf-8", "surrogateescape")
        return self._asked[key]

    @cached_property
    def _given(self) -> tuple[bytes, str] | None:
        """The password of the environment, and its place; read once, as a pipe can be."""
        file = self._environment.get(FILE)
        if file is not None:
            if VARIABLES[0] in self._environment:
                raise UsageError(
                    f"{FILE} and {VARIABLES[0]} are both set", hint="unset one of them"
                )
            return _without_last_line_end(_read(Path(file))), f"the file {file!r} ({FILE})"
        for name in VARIABLES:
            if name in self._environment:
                return os.fsencode(self._environment[name]), name
        return None


def _empty(place: str) -> str:
    return f"{place} is {'set and ' if place in VARIABLES else ''}empty"


def _read(path: Path) -> bytes:
    data = read_given(path, limit=LIMIT, at=f"{FILE}: {str(path)!r}")
    if len(data) > LIMIT:
        raise UsageError(f"{FILE}: {str(path)!r} has more than {LIMIT} bytes")
    return data


def _without_last_line_end(data: bytes) -> bytes:
    """Editors end the last line; what else is in the file is the password, line ends too."""
    return data[:-2] if data.endswith(b"\r\n") else data.removesuffix(b"\n")
