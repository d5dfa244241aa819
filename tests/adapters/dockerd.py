"""A Docker Engine of the tests' own: Debian's dockerd, without a network, ended by its id."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@contextmanager
def running_engine(data: Path) -> Iterator[str]:
    """Yield the ``DOCKER_HOST`` of an engine that keeps everything below ``data``.

    Skips the test, with the reason, where there is no dockerd or where it needs another user.
    """
    program = shutil.which("dockerd", path=_PATH)
    if program is None or os.geteuid() != 0:
        pytest.skip("needs dockerd (Debian: docker.io) and root")
    state = Path(tempfile.mkdtemp(prefix="bd-", dir="/tmp"))  # socket paths are short
    host = state / "docker.sock"
    with (data / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(
            (
                *(program, f"--data-root={data / 'root'}", f"--exec-root={state}"),
                *(f"--pidfile={state / 'pid'}", f"--host=unix://{host}", "--storage-driver=vfs"),
                *("--bridge=none", "--iptables=false", "--ip6tables=false"),
            ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": _PATH, "HOME": str(data)},
            start_new_session=True,
        )
    try:
        _wait(process, host)
        yield f"unix://{host}"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(state, ignore_errors=True)


def _wait(process: "subprocess.Popen[bytes]", host: Path) -> None:
    """Until it listens; the process behind the socket must be our child."""
    for _ in range(600):
        if process.poll() is not None:
            break
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            if client.connect_ex(str(host)) == 0:
                credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                assert int.from_bytes(credentials[:4], "little") == process.pid
                return
        time.sleep(0.05)
    raise RuntimeError("dockerd does not start")
