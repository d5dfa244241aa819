"""The caller's side of the talk with process 1 of a sandbox."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from builder.adapters.sandbox.inside import load, main, tree, wire
from builder.errors import EnvironmentFault, SandboxError
from builder.sandbox import INPUTS, Finished, Job, Laid, Left, LeftFile, LeftLink, LeftOther

BOOT = "import sys;r=sys.stdin.buffer.read;exec(r(int.from_bytes(r(8),'big')))"
"""What process 1 runs first: the text that it is sent."""
COMMAND = ("python3", "-I", "-S", "-c", BOOT)
"""The command line of process 1, in every sandbox and for every job: patch sets read it."""

_MODULES = ("wire", "calls", "refused", "room", "tree", "watch", "main")
"""In the order of their imports."""


class Source(Protocol):
    """What process 1 says."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; fewer only at the end."""


def program(*, by_text: bool) -> bytes:
    """The text that :data:`BOOT` reads, and what this text reads: the modules of
    :mod:`builder.adapters.sandbox.inside` themselves, or where they are on this machine."""
    here = Path(load.__file__).parent
    if by_text:
        rows = [row for name in _MODULES for row in (name, (here / f"{name}.py").read_text())]
    else:
        rows = [str(here)]
    return wire.frame(Path(load.__file__).read_bytes()) + wire.table(rows)


def ask(job: Job) -> Iterator[bytes]:
    """The job, as it goes over the wire.

    Raises:
        SandboxError: A word, a path or a variable that no program can be given.
    """
    _check_paths(job)
    limits = job.limits
    numbers = (limits.seconds, limits.memory, limits.processes, limits.output, limits.disk)
    inputs = [(f"{INPUTS[1:]}/{each.path}", each) for each in job.inputs]
    laid = [(each.path, each) for each in job.files]
    try:
        yield b"".join(
            (
                wire.table(job.command),
                wire.table(part for pair in sorted(job.environment.items()) for part in pair),
                wire.table(job.roots),
                wire.table((job.working, *map(str, numbers))),
                wire.table(row for path, each in inputs for row in _row(path, each)),
                wire.table(row for path, each in laid for row in _row(path, each)),
            )
        )
    except ValueError as error:
        raise SandboxError(f"sandbox: {error}") from error
    for _, each in (*inputs, *laid):
        if each.data is not None:
            yield each.data


def _check_paths(job: Job) -> None:
    for file in job.files:
        if not any(file.path.startswith(f"{root}/") for root in job.roots):
            raise RuntimeError(f"{file.path!r} is in none of {job.roots!r}")
    # Inputs are laid before privileges are given up.
    for path in (*job.roots, *(file.path for file in (*job.files, *job.inputs))):
        if not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise SandboxError(f"sandbox: expected a path from the root, got {path!r}")


def _row(path: str, file: Laid) -> tuple[str, ...]:
    size = file.size if file.data is None else len(file.data)
    return path, str(file.mode), str(size), "" if file.data is None else "data"


def hear(source: Source, job: Job) -> Finished:
    """What became of ``job``.

    Raises:
        SandboxError: It took more than it may, or what it left cannot be taken.
        EnvironmentFault: The sandbox could not be made.
        CutError: Process 1 ended before the job was started.
    """
    started = wire.take(source)
    if started != main.STARTED:
        raise EnvironmentFault(f"sandbox: {_strings(started)[-1]}")
    try:
        return _ending(source, job)
    except wire.CutError as error:
        raise SandboxError(
            f"sandbox: {_named(job)}: its process 1 was ended",
            hint="the program did it, or this machine is short of memory",
        ) from error


def _ending(source: Source, job: Job) -> Finished:
    kind, detail = wire.take_table(source)
    if kind == main.FAULT:
        raise SandboxError(f"sandbox: {_named(job)}: its process 1 was disturbed: {detail}")
    if kind == main.REFUSED:
        words = wire.take(source).decode("utf-8", "replace").strip()
        raise SandboxError(
            f"sandbox: {_named(job)}: {detail}",
            hint=f"its last words: {words.splitlines()[-1]!r}" if words else None,
        )
    stdout, stderr = wire.take(source), wire.take(source)
    rows = wire.take_table(source)
    removed = wire.take_table(source)
    left = tuple(_left(row, source) for row in zip(*(iter(rows),) * 5, strict=True))
    return Finished(
        status=int(detail), stdout=stdout, stderr=stderr, left=left, removed=tuple(removed)
    )


def _left(row: tuple[str, ...], source: Source) -> Left:
    path, kind, detail, mode, size = row
    if kind == tree.FILE:
        return LeftFile(path=path, data=wire.exactly(source, int(size)), mode=int(mode))
    if kind == tree.LINK:
        return LeftLink(path=path, target=detail)
    return LeftOther(path=path, kind=detail)


def _named(job: Job) -> str:
    """The program: what an interpreter is given to run, or the first word."""
    program, *words = job.command
    return repr(next((word for word in words if not word.startswith("-")), program))


def _strings(frame: bytes) -> list[str]:
    return frame.decode("utf-8", "replace").split("\0")[:-1]
