"""Real services for the tests: each on a port of its own, checked to be our own child's."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "correct horse"
_HTPASSWD = "alice:$2y$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n"
"""bcrypt of ``PASSWORD`` at its lowest cost."""
_START_LIMIT = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRegistry:
    """A Debian ``docker-registry`` that answers."""

    host: str
    """``127.0.0.1:PORT``"""
    pid: int
    storage: Path
    """Where its files are (distribution's own layout)."""
    access_log: Path
    """What was asked of it, one line a request, as Apache writes them (:mod:`tests.access_log`)."""


@contextmanager
def running_registry(directory: Path, *, password: bool = False) -> Iterator[RunningRegistry]:
    """Run a registry with its storage below ``directory``, deletion allowed.

    Args:
        directory: An existing, empty directory; configuration, storage and log go there.
        password: Demand Basic authentication: user ``alice``, password ``PASSWORD``.
    """
    storage = directory / "storage"
    configuration = directory / "config.yml"
    auth = ""
    if password:
        (directory / "htpasswd").write_text(_HTPASSWD)
        auth = f"auth: {{htpasswd: {{realm: test, path: '{directory}/htpasswd'}}}}\n"
    configuration.write_text(
        "version: 0.1\n"
        "log: {level: warn}\n"
        f"storage: {{filesystem: {{rootdirectory: '{storage}'}}, delete: {{enabled: true}}}}\n"
        "http: {addr: '127.0.0.1:0', secret: tests}\n" + auth
    )
    access_log = directory / "access.log"
    with (directory / "log").open("wb") as log, access_log.open("wb") as access:
        process = subprocess.Popen(
            ["docker-registry", "serve", str(configuration)], stdout=access, stderr=log
        )
    try:
        port = listening_port(process)
        yield RunningRegistry(
            host=f"127.0.0.1:{port}", pid=process.pid, storage=storage, access_log=access_log
        )
    finally:
        process.terminate()
        process.wait(timeout=10)


def listening_port(process: subprocess.Popen[bytes]) -> int:
    """The loopback port on which the child listens, once it does.

    The child binds port 0 and the kernel's table says what it got: nothing else can be listening
    there, because the socket is found among the child's own descriptors.
    """
    end = time.monotonic() + _START_LIMIT
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"{process.args!r} ended with status {process.returncode}")
        ports = _ports(process.pid)
        if ports:
            return ports[0]
        time.sleep(0.01)
    raise AssertionError(f"{process.args!r} does not listen after {_START_LIMIT} s")


def _ports(pid: int) -> list[int]:
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(str(descriptor.readlink()))
        except OSError:  # closed meanwhile
            continue
    ports = []
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        local, state, inode = fields[1], fields[3], fields[9]
        if state == "0A" and f"socket:[{inode}]" in sockets:  # TCP_LISTEN
            ports.append(int(local.partition(":")[2], 16))
    return ports
