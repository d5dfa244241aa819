"""What a script shows: each claim with its evidence as soon as it is checked, and at the end an
exit status that says whether all of them hold."""

import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from tests.commands import CommandError


class Claims:
    """The claims of one run. What cannot be checked here is said and counted, never left out.

    Args:
        unavailable: How many claims may be left unchecked before that is a failure, too; any number
            where it is left out.
        without: What this machine need not have: claims that want it are not among those.
    """

    def __init__(
        self, title: str, *, unavailable: int | None = None, without: Collection[str] = ()
    ) -> None:
        self._held = 0
        self._failed: list[str] = []
        self._not_run: list[tuple[str, str | None]] = []
        self._unavailable = unavailable
        self._without = without
        self._start = time.monotonic()
        print(title, flush=True)

    def holds(self, claim: str, true: bool, evidence: object = "") -> bool:
        """Take a claim to be true or not, and say so."""
        self.count(claim, true)
        said = f"{claim}: {evidence}" if evidence != "" else claim
        print(f"  {'ok  ' if true else 'FAIL'}  {said}", flush=True)
        return true

    def count(self, claim: str, true: bool) -> None:
        """Take a claim to be true or not, where a row of a table says it."""
        if true:
            self._held += 1
        else:
            self._failed.append(claim)

    def equal(self, claim: str, got: object, wanted: object) -> bool:
        """Take a claim to be that two values are equal; both are shown where they are not."""
        same = got == wanted
        return self.holds(claim, same, got if same else f"got {got}, wanted {wanted}")

    def noted(self, claim: str, true: bool, evidence: object) -> None:
        """Say whether something holds, without taking it for a claim of this run."""
        print(f"  {'(ok)' if true else '(no)'}  {claim}: {evidence}", flush=True)

    def not_run(self, claim: str, why: str, *, wants: str | None = None) -> None:
        """Say that a claim is not checked on this machine. ``wants`` names what it takes, where
        somebody may state that a machine goes without it."""
        self._not_run.append((claim, wants))
        print(f"  --    not run: {claim}: {why}", flush=True)

    @contextmanager
    def group(self, claim: str) -> Iterator[None]:
        """A command that fails inside makes ``claim`` a failed one, and the rest goes on."""
        try:
            yield
        except CommandError as error:
            self.holds(claim, False, error)

    def finish(self) -> int:
        """Say how it ended; returns the exit status."""
        seconds = time.monotonic() - self._start
        without = [wants for _, wants in self._not_run if wants and wants in self._without]
        names = ", ".join(sorted(set(without)))
        apart = f", {len(without)} of them without {names}" if without else ""
        print(
            f"{self._held} hold, {len(self._failed)} fail, {len(self._not_run)} not run{apart}"
            f" ({seconds:.0f} s)",
            flush=True,
        )
        for claim in self._failed:
            print(f"failed: {claim}", file=sys.stderr)
        return 1 if self._too_many() or self._failed else 0

    def _too_many(self) -> bool:
        """Say which claims were not checked where they are more than may be."""
        counted = [
            claim for claim, wants in self._not_run if not wants or wants not in self._without
        ]
        if self._unavailable is None or len(counted) <= self._unavailable:
            return False
        for claim in counted:
            print(f"not run: {claim}", file=sys.stderr)
        print(
            f"{len(counted)} claims were not run that this machine should have run, and"
            f" {self._unavailable or 'none'} may be: provide what they want, or state it"
            " (--unavailable, --without)",
            file=sys.stderr,
        )
        return True
