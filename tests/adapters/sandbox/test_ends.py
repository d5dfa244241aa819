"""However we end, nothing of a sandbox is left."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import docker
import pytest

from builder.adapters.sandbox import EngineSandbox, NamespaceSandbox
from builder.errors import SandboxError
from builder.sandbox import Finished, Job
from tests.adapters.sandbox.conftest import ENGINE
from tests.adapters.sandbox.jobs import ROOT, python

REPOSITORY = Path(__file__).parents[3]

_SLEEP = f"sleep 4111.{os.getpid()}"
"""A command line that no other run of these tests has."""

SLEEPER = """
import sys
from builder.adapters.sandbox import EngineSandbox, NamespaceSandbox
from builder.sandbox import Job, Limits
image, host, sleep = sys.argv[1:]
sandbox = EngineSandbox(image, base_url=host) if image else NamespaceSandbox()
sandbox.run(Job(command=("sh", "-c", f"{sleep} & {sleep}"), roots=("opt/a",), files=(),
                limits=Limits(seconds=3000)))
"""


def sleepers() -> list[int]:
    """The processes on this machine that a :data:`SLEEPER` started in its sandbox."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                if (directory / "cmdline").read_bytes() == _SLEEP.replace(
                    " ", "\0"
                ).encode() + b"\0":
                    found.append(int(directory.name))
            except OSError:
                continue
    return found


def until(condition: object, *, seconds: float = 30.0) -> None:
    """Wait for something to be so."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(params=["namespaces", pytest.param("engine", marks=ENGINE)])
def arguments(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The image and the engine for a :data:`SLEEPER`; empty for namespaces."""
    if request.param == "namespaces":
        return "", ""
    sandbox: EngineSandbox = request.getfixturevalue("engine_sandbox")
    return sandbox._image, str(sandbox._base_url)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_process_outlives_us(arguments: tuple[str, str], number: signal.Signals) -> None:
    """SIGKILL leaves us no time to do anything about it."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, *arguments, _SLEEP],
        cwd=REPOSITORY,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: len(sleepers()) == 2)
        process.send_signal(number)
        process.wait(30)
        until(lambda: not sleepers())
    finally:
        process.kill()
        process.wait()
    if arguments[0]:
        until(lambda: not containers(arguments[1]))


def containers(host: str) -> list[object]:
    """All containers of an engine."""
    with closing(docker.DockerClient(base_url=host)) as client:
        return list(client.api.containers(all=True))


@ENGINE
def test_no_container_is_left_after_a_job(engine_sandbox: EngineSandbox, engine_host: str) -> None:
    engine_sandbox.run(python("pass"))
    until(lambda: not containers(engine_host))


def test_process_1_ends_with_the_process_that_waits_for_it() -> None:
    """The out-of-memory killer of the kernel may choose that one."""

    def end_the_first() -> None:
        until(lambda: len(sleepers()) == 1)
        task = Path("/proc/self/task")
        children = " ".join(path.read_text() for path in task.glob("*/children")).split()
        for pid in children:
            if Path("/proc", pid, "cmdline").read_bytes().startswith(b"python3\x00-I\x00-S\x00"):
                os.kill(int(pid), signal.SIGKILL)

    thread = threading.Thread(target=end_the_first)
    thread.start()
    job = Job(command=("sh", "-c", f"exec {_SLEEP}"), roots=("opt/a",), files=())
    with pytest.raises(SandboxError, match="its process 1 was ended"):
        NamespaceSandbox().run(job)
    thread.join()
    until(lambda: not sleepers())


def test_no_directory_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    NamespaceSandbox().run(python("open('x', 'w')"))
    assert list(tmp_path.iterdir()) == []
    assert not Path("/", ROOT, "keep").exists()


def test_two_at_once(tmp_path: Path) -> None:
    ends: list[Finished] = []

    def work() -> None:
        ends.append(NamespaceSandbox().run(python("import time; time.sleep(0.2); open('x', 'w')")))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 4
    assert len(set(map(repr, ends))) == 1
