"""A server that is never silent, and never done: it sends what it is given bit by bit."""

import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

HEAD = b"HTTP/1.1 200 OK\r\n"
FIELDS = [HEAD] + [b"X-A: b\r\n"] * 10_000
"""A head that does not end."""
BODY = [HEAD + b"Content-Length: 100000\r\n\r\n"] + [b"x"] * 10_000
CHUNKED = [HEAD + b"Transfer-Encoding: chunked\r\n\r\n"] + [b"1\r\nx\r\n"] * 10_000


@dataclass
class Dripping:
    """Where it is, and how often it was asked."""

    host: str
    asked: list[bytes] = field(default_factory=list)


@contextmanager
def dripping(
    parts: Sequence[bytes], *, gap: float = 0.05, tls: ssl.SSLContext | None = None
) -> Iterator[Dripping]:
    """Serve ``parts`` to whoever asks, each ``gap`` seconds after the one before."""
    done = threading.Event()
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            if tls is not None:
                connection = tls.wrap_socket(connection, server_side=True)
            with connection:
                there.asked.append(connection.recv(65536))
                for part in parts:
                    connection.sendall(part)
                    if done.wait(gap):
                        return

    def listen() -> None:
        with suppress(OSError):  # it is closed
            while True:
                connection, _ = server.accept()
                threads.append(threading.Thread(target=serve, args=(connection,)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        there = Dripping(host=f"127.0.0.1:{server.getsockname()[1]}")
        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield there
        finally:
            done.set()
            server.shutdown(socket.SHUT_RDWR)
            for thread in (listener, *threads):
                thread.join()
