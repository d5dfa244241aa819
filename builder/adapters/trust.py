"""Which policies this user accepted: a file a project, in the user's state directory.

The store is no place for it: what is there may be deleted at any time.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from builder import canonical, durable
from builder.digest import Digest
from builder.errors import EnvironmentFault, IntegrityError
from builder.trust.names import FILE

_LIMIT = 1 << 20


def state_directory(environment: Mapping[str, str]) -> Path:
    """``builder/trust`` in the user's state directory (XDG Base Directory Specification)."""
    state = Path(environment.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        home = Path(environment.get("HOME", ""))
        state = (home if home.is_absolute() else Path.home()) / ".local" / "state"
    return state / "builder" / "trust"


class FileMemory:
    """What was accepted of one project, which is known by where it lies. It is a
    :class:`builder.trust.chain.Memory`."""

    def __init__(self, directory: Path, project: Path) -> None:
        self._project = os.path.realpath(project)
        self.path = directory / f"{Digest.of(os.fsencode(self._project)).hex}.json"

    def recall(self) -> bytes | None:
        """The text of the highest version that was accepted.

        Raises:
            EnvironmentFault, IntegrityError: There is one, and it cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                data = file.read(_LIMIT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise EnvironmentFault(f"{self.path}: cannot be read: {error.strerror}") from error
        hint = f"builder trust forget drops it; then accept {FILE} again, after a look at it"
        try:
            value = canonical.decode(data, at=str(self.path), limit=_LIMIT)
        except IntegrityError as error:
            raise IntegrityError(error.message, hint=hint) from error
        if not isinstance(value, dict) or not isinstance(value.get("policy"), str):
            raise IntegrityError(f"{self.path}: not a policy that was accepted", hint=hint)
        return str(value["policy"]).encode()

    def remember(self, raw: bytes) -> None:
        """Keep the text of an accepted version; a higher one that is there stays.

        Raises:
            EnvironmentFault: It cannot be written.
            IntegrityError: What is there cannot be read.
        """
        from builder.trust.codec import read_policy  # noqa: PLC0415 - where one is accepted

        version = read_policy(raw).version
        document = {"project": self._shown, "version": version, "policy": raw.decode()}
        data = canonical.encode(document) + b"\n"
        with self._exclusive():
            there = self.recall()
            if there is None or read_policy(there).version < version:
                self._write(data)

    def forget(self) -> bool:
        """Drop what was accepted; returns whether there was anything.

        Raises:
            EnvironmentFault: It cannot be removed.
        """
        try:
            self.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise EnvironmentFault(f"{self.path}: cannot be removed: {error.strerror}") from error
        return True

    @property
    def _shown(self) -> str:
        """For people who look into the file."""
        return os.fsencode(self._project).decode("utf-8", "backslashreplace")

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with ExitStack() as stack:
            with self._writing():
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                stack.enter_context(durable.held(self.path.parent))
            yield

    def _write(self, data: bytes) -> None:
        with self._writing(), durable.staged(self.path.with_suffix(".tmp"), data, 0o600) as ready:
            durable.rename(ready, self.path)

    def _writing(self) -> AbstractContextManager[None]:
        return durable.writing(self.path, hint="XDG_STATE_HOME moves it")
