"""Where other people's code may run: the port, and the values that pass through it.

A program gets a copy of some directories of the image, and nothing else of the world: what it did
to that copy comes back as values, which nobody has believed yet.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from builder.value import field, value

INPUTS = "/builder/in"
"""Where a program finds its inputs."""


@value
class Laid:
    """A file as the program finds it. ``path`` is from the root, without a leading slash.

    ``data`` is ``None`` for a file whose content does not matter: it is there, with ``size`` zero
    bytes. Parents are made, with mode 0755.
    """

    path: str
    data: bytes | None = field(repr=False)
    size: int = 0
    """Of a file without data."""
    mode: int = 0o644


@value
class Limits:
    """What a program may use, all of its processes together."""

    seconds: float = 120.0
    memory: int = 2 << 30
    """Bytes."""
    processes: int = 64
    output: int = 16 << 20
    """Bytes of stdout and of stderr, each."""
    disk: int = 256 << 20
    """Bytes by which its directories may grow. What it leaves is held in memory."""


@value
class Job:
    """A program and what it works on.

    The word ``python`` at the start of ``command`` stands for whatever Python 3.11 or later the
    sandbox has, ``sh`` for its POSIX shell; any other first word is the path of a program in it.

    ``environment`` is all of the program's environment, but for what the sandbox must add to let
    Python start. Its home (``/tmp/home``), its temporary directory (``/tmp``) and its time zone
    (UTC) are always the same, and gone with it.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[str, ...]
    """The directories that it may write to, without leading slashes; none is inside another. They
    hold ``files`` and nothing else. Everything else that it sees is read-only."""
    files: tuple[Laid, ...] = field(repr=False)
    """All of them inside of ``roots``."""
    inputs: tuple[Laid, ...] = field(default=(), repr=False)
    """Read-only files; their paths are relative to :data:`INPUTS`."""
    working: str = "/"
    limits: Limits = Limits()


@value
class LeftFile:
    """A regular file that is new, or is not as it was laid (by content or permission bits)."""

    path: str
    data: bytes = field(repr=False)
    mode: int


@value
class LeftLink:
    """A symbolic link that was not there."""

    path: str
    target: str


@value
class LeftOther:
    """Something that is neither: a device, a pipe, a socket, a hard link into another place."""

    path: str
    kind: str
    """For a message: ``a named pipe``."""


Left: TypeAlias = LeftFile | LeftLink | LeftOther


@value
class Finished:
    """How a program ended, by itself, and what it left. Empty directories are not told of."""

    status: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    left: tuple[Left, ...] = field(default=(), repr=False)
    """What differs from ``Job.files``, sorted by path."""
    removed: tuple[str, ...] = ()
    """The files of ``Job.files`` that are gone, sorted."""


class Sandbox(Protocol):
    """No network, a process tree and a view of the file system of its own, nothing of the user's
    environment or home."""

    @property
    def name(self) -> str:
        """What it is, for the record of a build: ``linux-namespaces`` or ``docker-engine``."""

    def run(self, job: Job) -> Finished:
        """Run a program to its end. Neither a process nor a file of it is left on this machine
        when this returns or raises.

        Raises:
            SandboxError: It took more than it may, was killed by a signal, or left more than can
                be taken back.
            EnvironmentFault: This machine cannot make such a sandbox.
        """
