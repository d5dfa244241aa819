"""Process 1 of a sandbox: make the room, lay the files, run the program, tell what became of it.

In a container the room is the container's own. The order is the point: what needs privileges comes
first, then they are dropped for good, and only then comes anything of the job.
"""

from __future__ import annotations

import os
import signal
import sys

from builder.adapters.sandbox.inside import calls, refused, room, tree, watch, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from builder.adapters.sandbox.inside.wire import Source

READY = b"ready"
STARTED = b"started"
ENDED, REFUSED, FAULT = "ended", "refused", "fault"

_SLACK = 16 << 20
"""Bytes that a program finds room for beyond its limit, so that it is seen to pass it."""
_PAGE = 4096
_READABLE = 0o555
_NEW_FILES = 100_000
_HOME = "/tmp/home"
_LAST_WORDS = 4096

DEFAULTS = {
    "LC_ALL": "C.UTF-8",
    "PATH": "/builder/bin:/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": str(tree.EPOCH),
}
"""What a job may set otherwise."""
FIXED = {"HOME": _HOME, "TMPDIR": "/tmp", "TZ": "UTC"}


class Job:
    """What is to be done; see :class:`builder.sandbox.Job`."""

    def __init__(self, source: Source) -> None:
        self.command = wire.take_table(source)
        pairs = wire.take_table(source)
        self.environment = dict(zip(pairs[::2], pairs[1::2], strict=True))
        self.roots = wire.take_table(source)
        self.working, *self.limits = wire.take_table(source)
        self.inputs = [
            # A container has no read-only mounts of its own: its inputs are of another user.
            (path, mode & _READABLE, size, has_data)
            for path, mode, size, has_data in tree.announced(wire.take_table(source))
        ]
        self.files = tree.announced(wire.take_table(source))

    @property
    def size(self) -> int:
        """See :func:`places_size`."""
        laid = (size for _, _, size, has_data in self.files if has_data)
        return places_size(laid, int(self.limits[4]))


def main(source: Source) -> None:
    """Do what ``source`` says, and answer on the standard output."""
    kind, *details = wire.take_table(source)
    try:
        if kind == "namespaces":
            _serve_in_namespaces(source, details)
        else:
            _serve(source, None)
    except OSError as error:
        _say(wire.table([FAULT, error.args[-1] if error.filename is None else str(error)]))
    except wire.CutError:
        pass
    # There is nothing to put in order: the memory, the files and the processes end with this one.
    os._exit(0)


def _serve_in_namespaces(source: Source, details: list[str]) -> None:
    prefix, program, version, platform_library, *libraries = details
    # Where memory runs out, the kernel ends this before anything of the user's.
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    calls.unshare(calls.NEW_NAMESPACES | calls.NEW_NETWORK)
    calls.set_host_name("builder")
    _say(wire.frame(READY))
    child = os.fork()
    if child:
        os.close(1)
        os.waitpid(child, 0)
        os._exit(0)
    python = room.Python(prefix, program, version, platform_library)
    _serve(source, python, dict(zip(libraries[::2], libraries[1::2], strict=True)))


def _serve(source: Source, python: room.Python | None, added: dict[str, str] | None = None) -> None:
    assert os.getpid() == 1
    job = Job(source)
    os.umask(0o022)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if python is not None:
        _enter(python, job)
    for _ in tree.lay(job.inputs, source):
        pass
    if python is not None:
        room.close_inputs()
    _give_up_privileges(own_namespaces=python is not None)
    laid = {file.path: file for file in tree.lay(job.files, source)}
    os.makedirs(_HOME)
    _say(wire.frame(STARTED))
    words = {"python": python.inside if python else sys.executable, "sh": "/bin/sh"}
    command = [words.get(job.command[0], job.command[0]), *job.command[1:]]
    environment = {**DEFAULTS, **(added or {}), **job.environment, **FIXED}
    limits = watch.Limits([*job.limits, str(_NEW_FILES)], count=python is not None)
    _run(job, laid, command, environment, limits)


def _enter(python: room.Python, job: Job) -> None:
    room.furnish(python, job.roots)
    room.open_places(job.roots, size=job.size, files=2 * len(job.files) + 2 * _NEW_FILES)


def places_size(laid: Iterable[int], disk: int) -> int:
    """How large the file system must be that a program writes to, for files of these sizes."""
    return sum(size // _PAGE + 1 for size in laid) * _PAGE + disk + _SLACK


def _give_up_privileges(*, own_namespaces: bool) -> None:
    calls.drop_bounding()
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(room.USER, room.USER, room.USER)
        os.setresuid(room.USER, room.USER, room.USER)
    calls.drop_capabilities()
    calls.no_new_privileges()
    calls.hide_memory()
    if own_namespaces:
        # Changing the user id would have undone it.
        calls.die_with_parent(signal.SIGKILL)
    calls.filter_calls(refused.program(os.uname().machine))


def _run(
    job: Job,
    laid: dict[str, tree.Laid],
    command: list[str],
    environment: dict[str, str],
    limits: watch.Limits,
) -> None:
    outputs = (b"", b"")
    try:
        places = [f"/{root}" for root in ("tmp", *job.roots)]
        program = watch.Program(command, environment, job.working, limits, places)
        try:
            code = os.waitstatus_to_exitcode(program.finish(caller=0))
        finally:
            outputs = program.outputs
        if code < 0:
            raise watch.ExceededError(f"it was ended by signal {signal.Signals(-code).name}")
        left, removed = tree.changes(job.roots, laid, job.size)
    except (watch.ExceededError, watch.CannotStartError, tree.LeftTooMuchError) as error:
        _say(wire.table([REFUSED, str(error)]), wire.frame(outputs[1][-_LAST_WORDS:]))
    except watch.CallerLeftError:
        pass
    else:
        _say(wire.table([ENDED, str(code)]), *map(wire.frame, outputs))
        _say(wire.table([field for item in left for field in item.row()]), wire.table(removed))
        _say_files(left)


def _say(*frames: bytes) -> None:
    for data in frames:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]


def _say_files(left: list[tree.Left]) -> None:
    for item in left:
        if item.kind == tree.FILE:
            file = tree.open_left(f"/{item.path}")
            for chunk in tree.chunks(file):
                _say(chunk)
            os.close(file)
