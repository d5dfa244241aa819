"""Who may do what to a store at a time: locks by name, and the lease."""

from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from builder.adapters.store import disk, locks
from builder.adapters.store.paths import Paths


class Guards:
    """The locks and the lease of one store, which is made where it does not exist yet.

    There is one lease for the store, shared by builds and writers and taken alone by ``gc``: no
    clock and no list of what was touched, hence no window between a look and an unlink. The price
    is that ``gc`` waits for the builds under way, and new builds for ``gc``. A build that begins
    while ``gc`` waits does not queue behind it: a build that takes its lease in pieces would wait
    for a ``gc`` that waits for it.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._made = False
        self._held: set[tuple[int, str]] = set()

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Keep ``alone`` out, together with any others that do. Leases nest."""
        path = self._paths.lease
        with self._hold(
            path,
            alone=False,
            waiting=lambda: f"{self._paths.at}: waiting for {locks.holder(path)} to clean up",
        ):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody holds a lease, then keep everybody out. Not while holding a lease."""
        with self._hold(
            self._paths.lease,
            alone=True,
            waiting=lambda: f"{self._paths.at}: waiting for the builds that use it to end",
        ):
            yield

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Exclude whoever takes the same name, under the lease.

        Raises:
            RuntimeError: This thread has the lock already, and would wait for itself.
        """
        mine = (get_ident(), name)
        if mine in self._held:
            raise RuntimeError(f"{self._paths.at}: this thread holds the lock {name!r} already")
        path = f"{self._paths.locks}/{name}"
        with (
            self.lease(),
            self._hold(
                path,
                alone=True,
                waiting=lambda: (
                    f"{self._paths.at}: waiting for the lock {name!r},"
                    f" which {locks.holder(path)} holds"
                ),
            ),
        ):
            self._held.add(mine)
            try:
                yield
            finally:
                self._held.discard(mine)

    @contextmanager
    def _hold(self, path: str, *, alone: bool, waiting: Callable[[], str]) -> Iterator[None]:
        if not self._made:
            self._paths.make()
            self._made = True
        with disk.faults(self._paths.at):
            fd = locks.acquire(path, alone=alone, waiting=waiting)
        try:
            yield
        finally:
            locks.release(fd)
