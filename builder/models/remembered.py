"""What was hashed before: a memo in the store for each directory.

A digest is believed as long as device, inode, size, mtime and ctime of the file are the same. A
file whose ctime is of just now is not remembered, because another write could leave it the same
clock tick (git has the same rule for its index, "racy git").
"""

import os
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from builder import canonical, json_text
from builder.digest import Digest
from builder.models.place import Identity
from builder.notes import MALFORMED, MODEL
from builder.ports import Store

SETTLED = 2_000_000_000
"""Nanoseconds: the coarsest clock of a file system (FAT)."""


class Remembered:
    """The digests of the files below one directory, and what was judged of them together."""

    def __init__(self, store: Store, directory: Path, *, silent: Container[int]) -> None:
        """
        Args:
            silent: Devices of whose files nothing is remembered
                (:func:`builder.models.mounted.silent_devices`).
        """
        self._store = store
        self._silent = silent
        self._key = Digest.of(os.fsencode(directory)).hex
        self._before: Mapping[Identity, Digest] = {}
        self._judged: frozenset[str] = frozenset()
        try:
            note = store.note(MODEL, self._key)
            if note is not None:
                self._read(json_text.loads(note))
        except MALFORMED:
            self._before = {}
            self._judged = frozenset()

    def _read(self, value: Mapping[str, Any]) -> None:
        self._before = {
            Identity(*map(int, identity)): Digest.parse(digest)
            for *identity, digest in value["files"]
        }
        self._judged = frozenset(map(str, value["judged"]))

    def digest(self, identity: Identity) -> Digest | None:
        """That of a file which is as it was."""
        return None if identity.device in self._silent else self._before.get(identity)

    def judged(self, question: Digest) -> bool:
        """Whether the files were found to be in order, for a question that covers them."""
        return question.hex in self._judged

    def keep(
        self, files: Iterable[tuple[Identity, Digest]], *, judged: Digest | None, now: int
    ) -> None:
        """Replace the memo by what is known now.

        Args:
            files: All files that were hashed or remembered.
            judged: The question that they are in order for.
            now: Nanoseconds since 1970 before the first of them was opened.
        """
        settled = {
            identity: digest
            for identity, digest in files
            if max(identity.ctime_ns, identity.mtime_ns) < now - SETTLED
            and identity.device not in self._silent
        }
        questions = frozenset() if judged is None else frozenset({judged.hex})
        if settled == self._before and questions == self._judged:
            return
        value = {
            "files": sorted([*identity, str(digest)] for identity, digest in settled.items()),
            "judged": sorted(questions),
        }
        self._store.take_note(MODEL, self._key, canonical.encode(value))
