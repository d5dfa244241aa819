"""A real containerd of the test's own: the programs of an unpacked package, with its own root,
state, socket and configuration.

There is no CRI, no NRI and no other snapshotter than the one that copies files: nothing is made or
mounted outside its directories.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.commands import CommandError, run
from tests.services_docker import check_peer, end, tail, unmount_below

_START_LIMIT = 30.0
_VERIFIER = "io.containerd.image-verifier.v1.bindir"
_LEFT_OUT = (
    "io.containerd.cri.v1.images",
    "io.containerd.cri.v1.runtime",
    "io.containerd.grpc.v1.cri",
    "io.containerd.internal.v1.opt",
    "io.containerd.nri.v1.nri",
    *(f"io.containerd.snapshotter.v1.{name}" for name in ("blockfile", "btrfs", "devmapper")),
    *(f"io.containerd.snapshotter.v1.{name}" for name in ("erofs", "overlayfs", "zfs")),
)
_UNPACKING = """\
[[plugins."io.containerd.transfer.v1.local".unpack_config]]
  platform = "linux/amd64"
  snapshotter = "native"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningContainerd:
    """One that answers. ``address`` is its socket, ``ctr`` the client beside it."""

    ctr: Path
    address: Path

    def pull(self, image: str) -> None:
        """Pull and unpack an image over plain http, through the daemon's transfer service.

        Raises:
            CommandError: The daemon refuses; the message has its reason.
        """
        self._ask("image", "pull", "--plain-http", "--snapshotter", "native", image)

    def images(self) -> list[str]:
        """The names of what was pulled."""
        return self._ask("image", "ls", "-q").split()

    def _ask(self, *arguments: str) -> str:
        return run((self.ctr, "--address", self.address, *arguments)).text


@contextlib.contextmanager
def running_containerd(
    programs: Path, configuration: Path, environment: Mapping[str, str]
) -> Iterator[RunningContainerd]:
    """Run the ``containerd`` of ``programs``; it is gone afterwards, with its images.

    Args:
        configuration: What it is configured with besides: a file that its own one imports. The
            image verifier has to come of it.
        environment: That of the daemon, and of the verifiers that it starts.

    Raises:
        CommandError: It does not start, with the end of its log.
        RuntimeError: The listener is not ours.
    """
    # Socket paths are limited to 107 bytes.
    place = Path(tempfile.mkdtemp(prefix="bc-", dir="/tmp"))
    own, address = place / "config.toml", place / "s.sock"
    own.write_text(
        "version = 3\n"
        f"imports = {json.dumps([str(configuration)])}\n"
        f"disabled_plugins = {json.dumps(_LEFT_OUT)}\n"
        f"required_plugins = {json.dumps([_VERIFIER])}\n" + _UNPACKING
    )
    directories = ("--root", place / "root", "--state", place / "state", "--address", address)
    log = place / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [programs / "containerd", "--config", own, *directories],
            cwd="/",
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        if not _answers(process, address):
            raise CommandError(f"containerd does not start: {tail(log)}", said=tail(log))
        check_peer(address, process.pid)
        yield RunningContainerd(ctr=programs / "ctr", address=address)
    finally:
        end(process)
        unmount_below(place)
        shutil.rmtree(place, ignore_errors=True)


def _answers(process: "subprocess.Popen[bytes]", address: Path) -> bool:
    deadline = time.monotonic() + _START_LIMIT
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            if client.connect_ex(str(address)) == 0:
                return True
        time.sleep(0.02)
    return False
