"""Derivations: a step with every input named by content.

Two names that never mix (Nix: *derivation* and *realisation*; Mokhov et al., "Build Systems à la
Carte": constructive traces):

- :attr:`Derivation.id` is the hash of what was *asked*, down to the base: the key under which a
  build that repeats itself finds its output without looking at any file.
- :func:`resolved_id` is the hash of the question and of every *answer* that the parent tree gave
  while the step ran. Where another parent gives the same answers, the output is the same, and the
  step is not run again: early cut-off.
"""

from collections.abc import Sequence
from typing import TypeAlias

from builder import ASSEMBLY, canonical
from builder.digest import Digest
from builder.value import value

Read: TypeAlias = tuple[str, str, object]
"""One question to the parent tree and its answer: operation, path, answer as canonical JSON."""

OPERATIONS = ("stat", "children", "below", "resolve", "python")
"""The questions that there are (:mod:`builder.observed`)."""


@value
class Derivation:
    """What one step asks for. ``inputs`` is canonical JSON (see ``Request.record``)."""

    assembly: int = ASSEMBLY
    kind: str
    inputs: bytes
    parent: Digest | None
    """The id of the derivation below, the digest of the base's manifest, or ``None`` on
    ``scratch``."""

    @property
    def question(self) -> Digest:
        """The hash of everything but the parent."""
        return Digest.of(canonical.encode(self._question()))

    @property
    def id(self) -> Digest:
        """The hash of everything."""
        parent = None if self.parent is None else str(self.parent)
        return Digest.of(canonical.encode(self._question() | {"parent": parent}))

    def _question(self) -> dict[str, object]:
        return {
            "assembly": self.assembly,
            "kind": self.kind,
            "inputs": str(Digest.of(self.inputs)),
        }


def resolved_id(question: Digest, reads: Sequence[Read]) -> Digest:
    """The name of a step together with what it saw. The order of the reads does not matter."""
    answers = sorted(canonical.encode(list(read)).decode() for read in reads)
    return Digest.of(canonical.encode({"question": str(question), "reads": answers}))
