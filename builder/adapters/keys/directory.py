"""Keys by name, in a directory of the user's: ``NAME.key``, ``NAME.pub``, and ``NAME.json`` where
there is more to say.

A key is there once its ``.key`` is, which is written last. Files appear whole; processes that write
wait for one another. The directory is not the trust policy: its states say what this user shall not
sign or verify with any more, and nobody else reads them.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path

from builder import canonical, durable
from builder.adapters.keys.files import read_regular, staged, write_whole
from builder.errors import EnvironmentFault, IntegrityError, PolicyError, UsageError
from builder.keys.public import KEY_LIMIT, PublicKey, read_public_key
from builder.value import value

NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A name. It has no dot and no slash: what has one is a file."""


class KeyState(StrEnum):
    """What its owner does with a key."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    """It has a successor, and signs beside it for a while."""
    REVOKED = "revoked"
    """Nothing is signed with it."""


@value
class KeptKey:
    """A key of the directory, as far as can be said without its password."""

    name: str
    public: PublicKey
    state: KeyState = KeyState.ACTIVE
    successor: str | None = None
    reason: str | None = None


def keys_directory(environment: Mapping[str, str]) -> Path:
    """``BUILDER_KEYS``, or ``builder/keys`` in the user's configuration (XDG Base Directory
    Specification)."""
    if path := environment.get("BUILDER_KEYS"):
        return Path(path)
    configuration = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(configuration):  # noqa: PTH117 - "" is no path; as for the store
        configuration = os.path.expanduser("~/.config")  # noqa: PTH111 - as above
    return Path(configuration) / "builder" / "keys"


class KeyDirectory:
    """The keys in ``path``, which is made with the first of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> tuple[str, ...]:
        """The names of all keys, sorted."""
        try:
            found = [path.stem for path in self.path.iterdir() if path.suffix == ".key"]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise EnvironmentFault(f"{self.path}: cannot be listed: {error.strerror}") from error
        return tuple(sorted(name for name in found if NAME.fullmatch(name)))

    def has(self, name: str) -> bool:
        """Whether there is a key of that name."""
        return self._path(name, "key").exists()

    def entry(self, name: str) -> KeptKey:
        """What is known of a key.

        Raises:
            UsageError: There is none of that name.
            IntegrityError: A file of it is not what it must be.
            EnvironmentFault: Others can write there: it may be another key than yours.
        """
        self._there(name)
        self._refuse_others()
        return self.shown(name)

    def usable(self, name: str) -> KeptKey:
        """As :meth:`entry`, of a key that its owner has not revoked.

        Raises:
            PolicyError: It is revoked.
        """
        found = self.entry(name)
        if found.state is KeyState.REVOKED:
            because = f": {found.reason}" if found.reason else ""
            raise PolicyError(
                f"key {name!r} is revoked{because}",
                hint=f"use {found.successor or 'another key'}: of this one nothing counts any more,"
                " since no signature tells when it was made",
            )
        return found

    def shown(self, name: str) -> KeptKey:
        """As :meth:`entry`, whoever can write there: to be looked at, and for nothing else."""
        self._there(name)
        path = self._path(name, "pub")
        public = read_public_key(_read(path), at=str(path))
        return _noted(name, public, self._path(name, "json"))

    def private(self, name: str) -> Path:
        """The file of the private half.

        Raises:
            UsageError: There is none of that name.
            EnvironmentFault: Others can write there.
        """
        self._there(name)
        self._refuse_others()
        return self._path(name, "key")

    def check_free(self, name: str, *, force: bool) -> None:
        """Refuse a name that is taken, before anybody is asked for a password.

        Raises:
            UsageError: There is one of that name, or it is no name.
        """
        if self.has(name) and not force:
            raise UsageError(
                f"there is a key {name!r} in {self.path}",
                hint="take another name; --force puts the new key in its place, for good",
            )

    def put(self, name: str, private: bytes, public: PublicKey, *, force: bool) -> None:
        """Keep a key. With ``force`` the one of that name is gone for good.

        Raises:
            UsageError: As for :meth:`check_free`.
            EnvironmentFault: The directory cannot be written, or others can write there.
        """
        with self._exclusive():
            self._put(name, private, public, force=force)

    def succeed(
        self, name: str, successor: str, private: bytes, public: PublicKey
    ) -> tuple[KeptKey, KeptKey]:
        """Keep a key as the successor of another; returns both. A revoked key stays revoked.

        Raises:
            UsageError: The other has a successor that is there, or as for :meth:`put`.
            IntegrityError: As for :meth:`entry`.
        """
        with self._exclusive():
            old = self.check_no_successor(name)
            self._put(successor, private, public, force=False)
            state = old.state if old.state is KeyState.REVOKED else KeyState.SUPERSEDED
            return self._note(name, state, successor, old.reason), self.entry(successor)

    def check_no_successor(self, name: str) -> KeptKey:
        """The key, which nothing has succeeded yet; raises as :meth:`succeed`."""
        old = self.entry(name)
        if old.successor is not None and self.has(old.successor):
            raise UsageError(
                f"key {name!r} has a successor: {old.successor!r}",
                hint=f"builder key rotate {old.successor}",
            )
        return old

    def revoke(self, name: str, *, reason: str | None) -> KeptKey:
        """Note that nothing more is signed with a key. A reason that is known stays where no other
        is given.

        Raises:
            UsageError, IntegrityError: As for :meth:`entry`.
        """
        self._there(name)
        with self._exclusive():
            old = self.entry(name)
            return self._note(name, KeyState.REVOKED, old.successor, reason or old.reason)

    def _put(self, name: str, private: bytes, public: PublicKey, *, force: bool) -> None:
        self.check_free(name, force=force)
        key, pub = self._path(name, "key"), self._path(name, "pub")
        # Both are on the disk before either is in its place.
        with durable.writing(key), staged(pub, public.pem, 0o644) as half:
            with staged(key, private, 0o600) as whole:
                half.replace(pub)
                whole.replace(key)
            # Last: a key that was revoked must not be without its state for a moment.
            self._path(name, "json").unlink(missing_ok=True)
            durable.sync_directory(self.path)

    def _note(
        self, name: str, state: KeyState, successor: str | None, reason: str | None
    ) -> KeptKey:
        said = {"state": str(state), "successor": successor, "reason": reason}
        document = canonical.encode({key: item for key, item in said.items() if item})
        write_whole(self._path(name, "json"), document + b"\n", mode=0o644, force=True)
        return self.entry(name)

    def free_name(self, name: str) -> str:
        """A name for the successor of a key: with the next number behind it that is free."""
        stem, _, last = name.rpartition("-")
        base, number = (stem, int(last)) if stem and last.isdecimal() else (name, 1)
        while self.has(f"{base}-{number + 1}"):
            number += 1
        return f"{base}-{number + 1}"

    def _path(self, name: str, suffix: str) -> Path:
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is no name for a key",
                hint="letters, digits, - and _, up to 64; a file is written with a slash: ./FILE",
            )
        return self.path / f"{name}.{suffix}"

    def _there(self, name: str) -> None:
        if not self.has(name):
            raise UsageError(
                f"no key {name!r} in {self.path}",
                hint="builder key list shows those that are there",
            )

    def others_write(self) -> bool:
        """Whether somebody else can write there, and put a key in the place of another."""
        return self._open_to_others(self.path)

    def _refuse_others(self, opened: int | None = None) -> None:
        if self._open_to_others(self.path if opened is None else opened):
            raise EnvironmentFault(
                f"{self.path}: others can write there", hint=f"chmod 700 {self.path}"
            )

    def _open_to_others(self, where: Path | int) -> bool:
        try:
            return bool(os.stat(where).st_mode & 0o022)  # noqa: PTH116 - also of what is open
        except FileNotFoundError:
            return False
        except OSError as error:
            raise EnvironmentFault(f"{self.path}: cannot be read: {error.strerror}") from error

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                if not self.path.is_dir():
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self.path.mkdir(mode=0o700, exist_ok=True)
                number = stack.enter_context(durable.held(self.path))
            except OSError as error:
                raise EnvironmentFault(f"{self.path}: cannot be used: {error.strerror}") from error
            self._refuse_others(number)
            for left in self.path.glob(".*.tmp"):  # by one that was killed
                left.unlink(missing_ok=True)
            yield


def _read(path: Path) -> bytes:
    try:
        return read_regular(path)[0]
    except FileNotFoundError as error:
        raise IntegrityError(
            f"{path}: the public half is missing",
            hint="builder key import makes it anew, from the .key",
        ) from error


def _noted(name: str, public: PublicKey, path: Path) -> KeptKey:
    if not path.exists():
        return KeptKey(name=name, public=public)
    said = canonical.decode(_read(path), at=str(path), limit=KEY_LIMIT)
    if not isinstance(said, dict) or not {"state"} <= set(said) <= {"state", "successor", "reason"}:
        raise IntegrityError(f"{path}: expected 'state', and perhaps 'successor' and 'reason'")
    if said["state"] not in list(KeyState) or not all(isinstance(x, str) for x in said.values()):
        raise IntegrityError(f"{path}: expected a state of {', '.join(KeyState)}")
    return KeptKey(
        name=name,
        public=public,
        state=KeyState(said["state"]),
        successor=said.get("successor"),
        reason=said.get("reason"),
    )
