"""Connections on which the head of an answer has an end.

urllib3's time-out is for each silence, and a head is read before anybody gets to see a byte of it.
So one thread of this process shuts a connection down where the head is not there after twice that
time.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from builder.adapters.registry.http import urllib3

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection as _Base
else:
    _Base = object


_LOOKS = 0.05
"""Seconds between two looks at what is due."""


class Overdue(TimeoutError):
    """The head of an answer was not there in time, and yet there was no silence."""


class _Head:
    """One that is waited for, until ``by``."""

    def __init__(self, sock: socket.socket, by: float) -> None:
        self.sock = sock
        self.by = by
        self.cut = False

    def cut_off(self) -> None:
        self.cut = True
        with suppress(OSError, TypeError):  # no socket any more
            # Not that of an SSLSocket, which drops its state under the reader's feet.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


class _Watch:
    """The thread, and what it looks after. It ends soon after the last head: where it is, a process
    cannot be forked without care."""

    def __init__(self) -> None:
        self._heads: set[_Head] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, sock: socket.socket, seconds: float) -> Iterator[_Head]:
        """Cut the connection off where the block takes longer."""
        head = _Head(sock, time.monotonic() + seconds)
        with self._lock:
            self._heads.add(head)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="heads", daemon=True)
                self._thread.start()
        try:
            yield head
        finally:
            with self._lock:
                self._heads.discard(head)

    def _run(self) -> None:
        while True:
            time.sleep(_LOOKS)
            now = time.monotonic()
            with self._lock:
                if not self._heads:
                    self._thread = None
                    return
                for head in [head for head in self._heads if head.by <= now]:
                    self._heads.discard(head)
                    head.cut_off()


_WATCH = _Watch()


class _Watched(_Base):
    def getresponse(self) -> Any:
        seconds = 2 * self.timeout if self.timeout else None
        if seconds is None:
            return super().getresponse()
        # TLS inside of a proxy's TLS keeps the socket inside.
        with _WATCH.over(getattr(self.sock, "socket", self.sock), seconds) as head:
            response = None
            try:
                response = super().getresponse()
            except Exception:
                if not head.cut:
                    raise
        if response is None or head.cut:  # a head that was cut off looks like a short one
            if response is not None:
                response.close()
            raise Overdue(f"no head within {seconds:g} s")
        return response


class _Connection(_Watched, urllib3.connection.HTTPConnection):
    pass


class _SecureConnection(_Watched, urllib3.connection.HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection  # type: ignore[mutable-override]  # the way urllib3 has for it


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection  # type: ignore[mutable-override]  # as above


def watched(manager: "urllib3.PoolManager") -> "urllib3.PoolManager":
    """The manager, whose connections are watched from now on."""
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return manager
