"""A program that takes more than it may is ended, with all that it started."""

import errno
import os
import time

import pytest

from builder.errors import SandboxError
from builder.sandbox import Job, Laid, Limits, Sandbox
from tests.adapters.sandbox.jobs import QUICK, ROOT, python

DAEMON = """
    import os, signal, sys, time
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                open("alive", "a").write("x")
                time.sleep(0.001)
        os._exit(0)
    time.sleep({seconds})
"""


def ended(sandbox: Sandbox, text: str, limits: Limits) -> SandboxError:
    """How a Python program is ended that does not end by itself."""
    with pytest.raises(SandboxError) as caught:
        sandbox.run(python(text, limits=limits))
    assert caught.value.exit_status == 6
    return caught.value


@pytest.mark.parametrize(
    "text, limits, reason",
    [
        pytest.param(
            DAEMON.format(seconds=3600),
            Limits(seconds=0.5),
            "it ran longer than 0.5 seconds",
            id="a daemon that ignores signals",
        ),
        pytest.param(
            "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
            Limits(seconds=20, processes=20),
            "it had more than 20 processes",
            id="a fork bomb",
        ),
        pytest.param(
            "import os\nfor _ in range(4): os.fork()\nx = b'x' * (50 << 20)\nos.read(0, 1)\n"
            "import time; time.sleep(60)",
            Limits(seconds=20, memory=300 << 20),
            "it used more than 314572800 bytes of memory",
            id="memory of many processes",
        ),
        pytest.param(
            "x = []\nwhile True: x.append(b'x' * (1 << 20))",
            Limits(seconds=20, memory=100 << 20),
            "it used more than 104857600 bytes of memory",
            id="memory of one process",
        ),
        pytest.param(
            "while True: print('y' * 1000)",
            Limits(seconds=20, output=100_000),
            "it wrote more than 100000 bytes of output",
            id="stdout",
        ),
        pytest.param(
            "import os\nwhile True: os.write(2, b'y' * 1000)",
            Limits(seconds=20, output=100_000),
            "it wrote more than 100000 bytes of output",
            id="stderr",
        ),
        pytest.param(
            "file = open('x', 'wb')\nwhile True: file.write(bytes(1 << 16))",
            Limits(seconds=20, disk=10 << 20),
            "its directories grew by more than 10485760 bytes",
            id="disk",
        ),
        pytest.param(
            "file = open('/tmp/x', 'wb')\nwhile True: file.write(bytes(1 << 16))",
            Limits(seconds=20, disk=10 << 20),
            "its directories grew by more than 10485760 bytes",
            id="disk in /tmp",
        ),
        pytest.param(
            "import os; os.abort()", QUICK, "it was ended by signal SIGABRT", id="a signal"
        ),
    ],
)
def test_more_than_it_may(sandbox: Sandbox, text: str, limits: Limits, reason: str) -> None:
    started = time.monotonic()
    assert ended(sandbox, text, limits).message.endswith(f": {reason}")
    assert time.monotonic() - started < limits.seconds + 15


def test_the_last_words_are_told(sandbox: Sandbox) -> None:
    text = "import os, sys; print('no\\nanchor in x.py', file=sys.stderr, flush=True); os.abort()"
    assert ended(sandbox, text, QUICK).hint == "its last words: 'anchor in x.py'"


def test_a_program_is_named_by_what_its_interpreter_runs(sandbox: Sandbox) -> None:
    job = Job(
        command=("python", "-s", "-B", "/builder/in/fix.py", "--all"),
        roots=("opt/a",),
        files=(),
        inputs=(Laid(path="fix.py", data=b"import os; os.abort()"),),
    )
    with pytest.raises(SandboxError) as caught:
        sandbox.run(job)
    assert caught.value.message == ("sandbox: '/builder/in/fix.py': it was ended by signal SIGABRT")


def test_pages_that_are_shared_are_counted_once(sandbox: Sandbox) -> None:
    """Eight processes with the same 40 MB use 40 MB."""
    text = """
    import os, time
    x = b"x" * (40 << 20)
    for _ in range(7):
        if os.fork() == 0:
            time.sleep(0.3)
            os._exit(0)
    for _ in range(7):
        os.wait()
    """
    done = sandbox.run(python(text, limits=Limits(seconds=20, memory=200 << 20)))
    assert (done.status, done.stderr) == (0, b"")


def test_exactly_what_it_may_is_no_fault(sandbox: Sandbox) -> None:
    text = "import sys; sys.stdout.write('y' * 100_000); open('x', 'wb').write(bytes(8 << 20))"
    done = sandbox.run(python(text, limits=Limits(seconds=20, output=100_000, disk=9 << 20)))
    assert (done.status, len(done.stdout)) == (0, 100_000)


def test_what_a_program_leaves_running_ends_with_it_and_changes_nothing_more(
    sandbox: Sandbox,
) -> None:
    done = sandbox.run(python(DAEMON.format(seconds=0.1)))
    assert done.status == 0
    assert [each.path for each in done.left] == [f"{ROOT}/alive"]


@pytest.mark.parametrize("status", [0, 1, 2, 127, 255])
def test_the_exit_status_is_the_programs(sandbox: Sandbox, status: int) -> None:
    done = sandbox.run(python(f"raise SystemExit({status})"))
    assert (done.status, done.stdout, done.stderr, done.left) == (status, b"", b"", ())


def test_standard_input_is_empty_and_nothing_else_is_open(sandbox: Sandbox) -> None:
    text = """
    import os, sys
    print(repr(sys.stdin.read()), sorted(os.listdir("/proc/self/fd")))
    print(os.readlink("/proc/self/fd/0"))
    """
    done = sandbox.run(python(text))
    # 3 is the directory that is being listed.
    assert done.stdout == b"'' ['0', '1', '2', '3']\n/dev/null\n", done.stderr


def test_a_program_that_breaks_process_1_gets_nothing(sandbox: Sandbox) -> None:
    """prlimit(2) of process 1 is the one thing that the same user may do to it."""
    text = """
    import resource, time
    resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))
    time.sleep(10)
    """
    # Whichever comes first: the next open(2) is refused with EMFILE, the next poll(2) with EINVAL.
    _, _, told = ended(sandbox, text, QUICK).message.partition("its process 1 was disturbed: ")
    assert told.startswith("[Errno 24]") or told == os.strerror(errno.EINVAL)
