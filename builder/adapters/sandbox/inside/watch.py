"""Running one program to its end, with an eye on what all of its processes use."""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TICK = 0.01
"""Seconds between two looks at what the processes use."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_DESCRIPTORS = 1024
_BACKSTOP = 16
"""How much more than its limits the kernel lets a program have, until the next look."""


class Limits:
    """What may be used; see :class:`builder.sandbox.Limits`. ``files`` is how many may be new;
    ``count`` says whether the kernel counts processes for this sandbox alone."""

    __slots__ = ("count", "disk", "files", "memory", "output", "processes", "seconds")

    def __init__(self, numbers: list[str], *, count: bool) -> None:
        self.seconds = float(numbers[0])
        self.memory, self.processes, self.output, self.disk, self.files = map(int, numbers[1:])
        self.count = count


class ExceededError(Exception):
    """The program took more than it may, and was ended."""


class CannotStartError(Exception):
    """There is no such program, or it is none."""


class CallerLeftError(Exception):
    """Nobody waits for the answer any more."""


class Program:
    """A program that was started, its outputs, and what its file systems held before."""

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        working: str,
        limits: Limits,
        places: list[str],
    ) -> None:
        self._limits = limits
        self._places = places
        self._before = _used(places)
        self._deadline = time.monotonic() + limits.seconds
        out, err = os.pipe(), os.pipe()
        self._outputs = {out[0]: bytearray(), err[0]: bytearray()}
        self.pid = _start(command, environment, working, limits, (out[1], err[1]))
        os.close(out[1])
        os.close(err[1])
        self._status: int | None = None

    @property
    def outputs(self) -> tuple[bytes, bytes]:
        """What it has said so far on stdout and stderr."""
        out, err = self._outputs.values()
        return bytes(out), bytes(err)

    def finish(self, caller: int) -> int:
        """Wait for its end, then end all that it started; the wait status.

        Raises:
            ExceededError: It had to be ended.
            CallerLeftError: The other side of the descriptor ``caller`` is closed.
        """
        try:
            self._wait(caller)
        finally:
            _end_all()
        for descriptor in self._outputs:
            while self._read(descriptor):
                pass
        self._look()
        assert self._status is not None
        return self._status

    def _wait(self, caller: int) -> None:
        poll = select.poll()
        ended = os.pidfd_open(self.pid)
        for descriptor in (caller, ended, *self._outputs):
            poll.register(descriptor, select.POLLIN)
        next_look = time.monotonic()
        while self._status is None:
            events = poll.poll(_TICK * 1000)
            for descriptor, _ in events:
                if descriptor == caller:
                    raise CallerLeftError
                if descriptor in self._outputs and not self._read(descriptor):
                    poll.unregister(descriptor)
            self._reap()
            if time.monotonic() >= next_look:
                self._look()
                next_look = time.monotonic() + _TICK
        os.close(ended)

    def _read(self, descriptor: int) -> bool:
        """Take what is there; whether there may be more."""
        data = os.read(descriptor, 1 << 16)
        kept = self._outputs[descriptor]
        kept += data
        if len(kept) > self._limits.output:
            del kept[self._limits.output :]
            raise ExceededError(f"it wrote more than {self._limits.output} bytes of output")
        return bool(data)

    def _reap(self) -> None:
        # All orphans of a PID namespace are children of its process 1.
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == self.pid:
                self._status = status
                return
            if pid == 0:
                return

    def _look(self) -> None:
        limits = self._limits
        pids = [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        if len(pids) > limits.processes:
            raise ExceededError(f"it had more than {limits.processes} processes")
        if time.monotonic() > self._deadline:
            raise ExceededError(f"it ran longer than {limits.seconds:g} seconds")
        # A page that is mapped twice counts twice in the quick sum, and once in the exact one.
        if sum(map(_resident, pids)) > limits.memory < sum(map(_proportional, pids)):
            raise ExceededError(f"it used more than {limits.memory} bytes of memory")
        size, files = _used(self._places)
        if size - self._before[0] > limits.disk:
            raise ExceededError(f"its directories grew by more than {limits.disk} bytes")
        if files - self._before[1] > limits.files:
            raise ExceededError(f"it made more than {limits.files} files")


def _used(places: list[str]) -> tuple[int, int]:
    """The bytes and the files of the file systems that ``places`` are on."""
    systems = {os.stat(place).st_dev: os.statvfs(place) for place in places}
    return (
        sum((each.f_blocks - each.f_bfree) * each.f_frsize for each in systems.values()),
        sum(each.f_files - each.f_ffree for each in systems.values()),
    )


def _resident(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _proportional(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            lines = (line.split() for line in file)
            return next(int(words[1]) for words in lines if words[0] == b"Pss:") * 1024
    except ProcessLookupError:
        return 0
    except (OSError, StopIteration):
        return _resident(pid)


def _end_all() -> None:
    """Every process but this one, which is process 1, and all that is left of them."""
    assert os.getpid() == 1, "-1 is everybody"
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _start(
    command: list[str],
    environment: Mapping[str, str],
    working: str,
    limits: Limits,
    outputs: tuple[int, int],
) -> int:
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            number = _become(command, environment, working, limits, outputs)
            os.write(tells, str(number).encode())
        finally:
            os._exit(127)
    os.close(tells)
    said = os.read(told, 16)
    os.close(told)
    if said:
        os.waitpid(pid, 0)
        raise CannotStartError(os.strerror(int(said)))
    return pid


def _become(
    command: list[str],
    environment: Mapping[str, str],
    working: str,
    limits: Limits,
    outputs: tuple[int, int],
) -> int:
    """Be the program, or say by number why not."""
    try:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        os.umask(0o022)
        os.chdir(working)
        for signal_number in (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(signal_number, signal.SIG_DFL)
        _restrict(limits)
        os.execve(command[0], command, environment)
    except OSError as error:
        return error.errno or errno.EIO


def _restrict(limits: Limits) -> None:
    """What the kernel bounds by itself, for each process: a backstop between two looks."""
    bounds = {
        resource.RLIMIT_AS: limits.memory * 2,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _DESCRIPTORS,
    }
    if limits.count:
        bounds[resource.RLIMIT_NPROC] = limits.processes * _BACKSTOP
    for kind, bound in bounds.items():
        hard = resource.getrlimit(kind)[1]
        new = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (new, new))
