"""A sandbox made of Linux namespaces, with nothing but this Python and the kernel.

Two processes: the first leaves our namespaces and waits; its child is process 1 of the new ones
and does the rest (:mod:`builder.adapters.sandbox.inside.main`). Everything that a program can write
to is memory of those namespaces. They end with process 1, and that ends when our end of its
standard input closes, however we end.
"""

import contextlib
import fcntl
import os
import select
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable
from pathlib import Path

from builder.adapters.sandbox.conversation import COMMAND, ask, hear, program
from builder.adapters.sandbox.inside import main, room, wire
from builder.errors import EnvironmentFault
from builder.sandbox import Finished, Job

NOBODY = 65534
"""Who a program is outside, where we are root: nobody, to whom nothing belongs."""

_PIPE = 1 << 20
_GRACE = 30.0
"""Seconds beyond the limit of a job that making a sandbox and taking files back may take."""


class NamespaceSandbox:
    """Runs jobs as a user of a user namespace; needs Linux 5.14 and the right to make one."""

    @property
    def name(self) -> str:
        return "linux-namespaces"

    def run(self, job: Job) -> Finished:
        """See :meth:`builder.sandbox.Sandbox.run`."""
        python = _Python()
        try:
            process = python.start()
        except OSError as error:
            raise _fault(f"{python.program}: {error.strerror}") from error
        try:
            return _talk(process, python, job)
        except wire.CutError as error:
            raise _fault(_last_line(process) or "process 1 did not start") from error
        finally:
            _end(process)


class _Python:
    """The Python that is shown, and that runs process 1: ours, without what is installed in it."""

    def __init__(self) -> None:
        self.prefix = sys.base_prefix
        # The program of a virtual environment is a link to this one.
        self.program = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        shared = sysconfig.get_config_var("Py_ENABLE_SHARED") and self.prefix != "/usr"
        self._library = f"{self.prefix}/lib" if shared else None

    def start(self) -> "subprocess.Popen[bytes]":
        environment = {"PATH": str(Path(self.program).parent)}
        if self._library:
            environment["LD_LIBRARY_PATH"] = self._library
        return subprocess.Popen(
            COMMAND,
            executable=self.program,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Nothing is kept back that a close would have to wait for.
            bufsize=0,
            cwd="/",
            # An interrupt of the terminal is ours to pass on.
            start_new_session=True,
        )

    def described(self) -> tuple[str, ...]:
        """What process 1 must know of it, and what a program must have to start it."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        added = ("LD_LIBRARY_PATH", f"{room.PYTHON}/lib") if self._library else ()
        return (self.prefix, self.program, version, sys.platlibdir, *added)


def _talk(process: "subprocess.Popen[bytes]", python: _Python, job: Job) -> Finished:
    assert process.stdin is not None
    assert process.stdout is not None
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # more than this user's pipes may hold
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
    source = _Timed(process.stdout.fileno(), time.monotonic() + job.limits.seconds + _GRACE)
    _send(process, (program(by_text=False), wire.table(("namespaces", *python.described()))))
    answer = wire.take(source)
    if answer != main.READY:
        raise _fault(answer.split(b"\0")[1].decode("utf-8", "replace"))
    _map_users(process.pid)
    _send(process, ask(job))
    try:
        return hear(source, job)
    except EnvironmentFault as error:
        raise _fault(error.message.removeprefix("sandbox: ")) from error


def _send(process: "subprocess.Popen[bytes]", data: Iterable[bytes]) -> None:
    assert process.stdin is not None
    # What process 1 says before it ends tells more than a broken pipe.
    with contextlib.suppress(BrokenPipeError):
        for part in data:
            view = memoryview(part)
            while view:
                view = view[os.write(process.stdin.fileno(), view) :]


def _map_users(pid: int) -> None:
    """Say who the users of the new namespace are outside: of root's powers none is left, and an
    ordinary user stays who they are."""
    proc = Path(f"/proc/{pid}")
    user, group = os.geteuid(), os.getegid()
    try:
        if user == 0 and _knows(NOBODY):
            # Root lays the floor, because only root may look into root's directories.
            users = groups = f"0 0 1\n{room.USER} {NOBODY} 1\n"
        else:
            users, groups = f"{room.USER} {user} 1\n", f"{room.USER} {group} 1\n"
            (proc / "setgroups").write_text("deny")
        (proc / "uid_map").write_text(users)
        (proc / "gid_map").write_text(groups)
    except OSError as error:
        raise _fault(f"{error.filename or proc}: {error.strerror}") from error


def _knows(user: int) -> bool:
    """Whether a user id means somebody in our own user namespace."""
    rows = (map(int, line.split()) for line in Path("/proc/self/uid_map").read_text().splitlines())
    return any(first <= user < first + count for first, _, count in rows)


class _Timed:
    """Bytes of a pipe, up to a deadline."""

    def __init__(self, pipe: int, deadline: float) -> None:
        self._pipe = pipe
        self._deadline = deadline

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; fewer only at the end.

        Raises:
            EnvironmentFault: It takes too long.
        """
        data = bytearray()
        while len(data) < size:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._pipe], [], [], left)[0]:
                raise EnvironmentFault("sandbox: process 1 does not answer")
            part = os.read(self._pipe, min(size - len(data), _PIPE))
            if not part:
                break
            data += part
        return bytes(data)


def _last_line(process: "subprocess.Popen[bytes]") -> str:
    """Of what process 1 said on stderr: why it ended, where it did so by itself."""
    process.kill()
    assert process.stderr is not None
    lines = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave: process 1 ends for it, and all others with it."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
    if process.poll() is None:
        # Popen.wait with a time limit asks again and again, up to 15 ms late.
        ended = os.pidfd_open(process.pid)
        if not select.select([ended], [], [], _GRACE)[0]:
            process.kill()
        os.close(ended)
    process.wait()


def _fault(text: str) -> EnvironmentFault:
    return EnvironmentFault(f"sandbox: linux-namespaces: {text}", hint=_hint())


_SETTINGS = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "15000"),
)
"""Settings of the kernel that forbid it, and what allows it again."""


def _hint() -> str:
    """What keeps an ordinary user of this machine from making namespaces."""
    for path, forbids, allows in _SETTINGS:
        with contextlib.suppress(OSError):
            if Path("/proc/sys", path).read_text().strip() == forbids:
                return f"sudo sysctl -w {path.replace('/', '.')}={allows}, or start a Docker Engine"
    return "a container may not make namespaces: run it outside of one, or start a Docker Engine"
