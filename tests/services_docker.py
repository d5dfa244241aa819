"""A real Docker Engine of the test's own.

Debian's ``dockerd`` with its own data, state, socket and configuration: no bridge, no firewall
rules, nothing outside its directory but mounts and cgroups, which end with it. Containers run with
``--network none``; the daemon itself pulls from registries on loopback over plain http, as every
Docker Engine does.
"""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.plugins.requires import which

_START_LIMIT = 60.0
_STOP_LIMIT = 30.0


@contextlib.contextmanager
def running_dockerd(tmp: Path) -> Iterator[str]:
    """Run an engine that keeps its images under ``tmp``; yields its ``DOCKER_HOST``.

    The engine is gone afterwards, with its containers, mounts and images.

    Raises:
        RuntimeError: It does not start, with the end of its log, or the listener is not ours.
    """
    data = tmp / "docker-data"
    # Socket paths are limited to 107 bytes and the engine makes deep ones below its state, so
    # that directory is a short one of its own whatever ``tmp`` is.
    state = Path(tempfile.mkdtemp(prefix="bd-", dir="/tmp"))
    host = state / "docker.sock"
    try:
        with _daemon(data, state=state, host=host, log=tmp / "dockerd.log"):
            yield f"unix://{host}"
    finally:
        for root in (state, data):
            unmount_below(root)
            shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def _daemon(data: Path, *, state: Path, host: Path, log: Path) -> Iterator[None]:
    # overlay2 wants a file system that carries an upper directory; vfs works on all of them.
    for driver in ("overlay2", "vfs"):
        with log.open("ab") as stream:
            process = subprocess.Popen(
                _command(data, state=state, host=host, driver=driver),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                # Not the group of the test runner: an interrupt there is ours to pass on.
                start_new_session=True,
            )
        try:
            if _answers(process, host):
                check_peer(host, process.pid)
                yield
                return
        finally:
            end(process)
    raise RuntimeError(f"dockerd does not start: {tail(log)}")


def _command(data: Path, *, state: Path, host: Path, driver: str) -> list[str]:
    configuration = state / "daemon.json"
    configuration.write_text("{}\n")
    return [
        which("dockerd") or "dockerd",
        f"--config-file={configuration}",
        f"--data-root={data}",
        f"--exec-root={state}",
        f"--pidfile={state / 'dockerd.pid'}",
        f"--host=unix://{host}",
        f"--storage-driver={driver}",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--log-level=warn",
    ]


def _answers(process: "subprocess.Popen[bytes]", host: Path) -> bool:
    deadline = time.monotonic() + _START_LIMIT
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if _ping(host) == b"OK":
                return True
        time.sleep(0.05)
    return False


def _ping(host: Path) -> bytes:
    connection = http.client.HTTPConnection("localhost", timeout=5)
    with contextlib.closing(connection):
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(5)
        connection.sock.connect(str(host))
        connection.request("GET", "/_ping")
        return connection.getresponse().read()


def check_peer(host: Path, pid: int) -> None:
    """The process behind the socket is the child that we started, and no other engine."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(host))
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    peer = int.from_bytes(credentials[:4], "little")
    if peer != pid:
        raise RuntimeError(f"{host} belongs to process {peer}, expected our child {pid}")


def end(process: "subprocess.Popen[bytes]") -> None:
    """End an engine, started in a session of its own; it ends what it started."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_LIMIT)
    except subprocess.TimeoutExpired:
        # Its own session, made above, holds it and its containerd and nothing else.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def unmount_below(root: Path) -> None:
    """Detach what a killed engine leaves mounted, innermost first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [line.split()[1].encode().decode("unicode_escape") for line in lines]
    for point in sorted(points, reverse=True):
        if Path(point).is_relative_to(root):
            subprocess.run(["umount", "--lazy", point], check=False, stderr=subprocess.DEVNULL)


def tail(log: Path) -> str:
    """What a log ends with, for messages."""
    return log.read_text(errors="replace")[-2000:] if log.exists() else "no log"
