"""The run fails when it leaves child processes or listening sockets behind.

After each test the new ones are noted under its name; what is still there after the last fixture
of the session is gone was left by that test. Services of wider scope are therefore no offence
while they run. Where there is no /proc, nothing is checked. Where the tests run in several
processes, each looks after its own, and tells the one that started them.
"""

import contextlib
from pathlib import Path
from typing import Any

import pytest

_PROC = Path("/proc/self")
# Started by multiprocessing once per process, and ended with it.
_PYTHONS_OWN = (b"multiprocessing.resource_tracker", b"multiprocessing.forkserver")
_LISTEN = "0A"
_KEY = "left behind"


def children() -> dict[int, str]:
    """The living children of this process, by pid: their command lines."""
    found: dict[int, str] = {}
    for listing in _PROC.glob("task/*/children"):
        with contextlib.suppress(OSError):
            for pid in listing.read_text().split():
                if (command := _command(pid)) is not None:
                    found[int(pid)] = command
    return found


def _command(pid: str) -> str | None:
    """What a process runs, or ``None`` for one that has ended or is Python's own affair."""
    with contextlib.suppress(OSError):
        name, _, fields = Path("/proc", pid, "stat").read_text().rpartition(")")
        line = Path("/proc", pid, "cmdline").read_bytes()
        if not fields.startswith(" Z") and not any(own in line for own in _PYTHONS_OWN):
            # The line is empty for a moment while a program starts; the name is not.
            arguments = line.replace(b"\0", b" ").decode(errors="replace").strip()
            return arguments or name.partition("(")[2]
    return None


def listeners() -> dict[int, str]:
    """The TCP sockets on which this process listens, by inode: their addresses."""
    mine = set()
    for descriptor in _PROC.glob("fd/*"):
        with contextlib.suppress(OSError):
            mine.add(str(descriptor.readlink()))
    found: dict[int, str] = {}
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTEN and f"socket:[{fields[9]}]" in mine:
                    found[int(fields[9])] = f"port {int(fields[1].rpartition(':')[2], 16)}"
    return found


class Leftovers:
    """Who started what."""

    def __init__(self, told: dict[str, Any] | None) -> None:
        self._told = told
        """What a worker tells the process that started it."""
        self._before = children().keys() | listeners().keys()
        self._seen: dict[int, str] = {}
        self.rows: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        for key in children().keys() | listeners().keys():
            self._seen.setdefault(key, nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        for kind, left in (("process", children()), ("listener", listeners())):
            for key, what in left.items():
                if key not in self._before:
                    since = self._seen.get(key, "the end of the run")
                    self.rows.append(f"{kind} {key}: {what} (there since {since})")
        if self._told is not None:
            self._told[_KEY] = self.rows
        elif self.rows and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.rows:
            terminalreporter.section("left behind")
            for row in self.rows:
                terminalreporter.line(row, red=True)


class LeftoversOfWorkers:
    """What the workers tell of what they left."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        self.rows += getattr(node, "workeroutput", {}).get(_KEY, [])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.rows and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    pytest_terminal_summary = Leftovers.pytest_terminal_summary


def pytest_configure(config: pytest.Config) -> None:
    if not _PROC.is_dir():
        return
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(LeftoversOfWorkers(), "leftovers")
    else:
        told = getattr(config, "workeroutput", None)
        config.pluginmanager.register(Leftovers(told), "leftovers")
