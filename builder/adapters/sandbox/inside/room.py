"""The file system of a sandbox made of namespaces: what a program sees, and how little of it can
be written to.

The caller is process 1 of new namespaces, with all capabilities in its own user namespace and
none outside. Everything is mounted on a tmpfs; what is the host's is bound read-only.
"""

from __future__ import annotations

import os

from builder.adapters.sandbox.inside import calls

PYTHON = "/builder/python"
"""Where the Python of the host is: its own place may be one that a job writes to."""
INPUTS = "/builder/in"
SCRATCH = "/builder/scratch"
USER = 1000

_STAGE = "/sys"
"""A directory that every system has, and that no Python is in."""

_HOST = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *(f"/usr/{name}" for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")),
    *("/usr/libexec", "/usr/share", "/nix/store", "/gnu/store"),
    *("/etc/ld.so.cache", "/etc/alternatives"),
)
"""What programs need to start. Not ``/usr/local``, ``/opt`` or ``/srv``, which a user fills."""

_ETC = {
    "passwd": "root:x:0:0::/:/bin/sh\nbuilder:x:1000:1000::/tmp/home:/bin/sh\n",
    "group": "root:x:0:\nbuilder:x:1000:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
}
_PLAIN = calls.NO_SETUID | calls.NO_DEVICES
_DEVICES = ("null", "zero", "full", "random", "urandom")


class Python:
    """The Python to show: the directory that it is installed in, its program, its version."""

    def __init__(self, prefix: str, program: str, version: str, platform_library: str) -> None:
        self._prefix = prefix
        self._program = program
        self._version = version
        self._libraries = dict.fromkeys(("lib", platform_library))

    @property
    def inside(self) -> str:
        """Its program, as the sandbox names it."""
        return f"{PYTHON}/bin/python{self._version}"

    def show(self, root: str) -> None:
        """The program and its standard library, without what was installed into it."""
        _bind(self._program, root + self.inside)
        for name in self._libraries:
            source, target = f"{self._prefix}/{name}", f"{root}{PYTHON}/{name}"
            if not os.path.isdir(source):
                continue
            _bind(source, target)
            for packages in (
                f"{target}/python{self._version}/site-packages",
                f"{target}/python{self._version}/dist-packages",
                f"{target}/python3/dist-packages",
            ):
                if os.path.isdir(packages):
                    calls.mount_new("tmpfs", packages, calls.READ_ONLY)
        os.makedirs(f"{root}/builder/bin")
        for name in ("python", "python3", f"python{self._version}"):
            os.symlink(self.inside, f"{root}/builder/bin/{name}")


def furnish(python: Python, roots: list[str]) -> None:
    """Mount everything that is only read, and make it the root directory."""
    # A limit of this user namespace, and through the host's proc: the room's own has no settings.
    with open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
        file.write("0")
    calls.make_private()
    calls.mount_new("tmpfs", _STAGE, _PLAIN, "mode=0755,size=4m,nr_inodes=10000")
    for path in _HOST:
        _mirror(path, _STAGE + path, roots)
    python.show(_STAGE)
    _write_etc()
    _make_devices()
    os.mkdir(f"{_STAGE}/proc")
    # Only processes: nothing of the machine or its kernel, and nothing to set.
    calls.mount_new("proc", f"{_STAGE}/proc", _PLAIN | calls.NO_EXEC, "subset=pid")
    calls.restrict(f"{_STAGE}/proc", calls.READ_ONLY)
    calls.enter(_STAGE)


def _mirror(source: str, target: str, roots: list[str]) -> None:
    """Show ``source``; where a root is inside of it, show what is beside that root."""
    if os.path.islink(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(os.readlink(source), target)
    elif source[1:] in roots or not os.path.exists(source):
        return
    elif not any(root.startswith(f"{source[1:]}/") for root in roots):
        _bind(source, target)
    else:
        os.makedirs(target, exist_ok=True)
        for name in sorted(os.listdir(source)):
            _mirror(f"{source}/{name}", f"{target}/{name}", roots)


def _bind(source: str, target: str, flags: int = _PLAIN | calls.READ_ONLY) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _touch(target)
    calls.bind(source, target)
    calls.restrict(target, flags, below=True)


def _touch(path: str, text: str = "") -> None:
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)


def _write_etc() -> None:
    os.makedirs(f"{_STAGE}/etc", exist_ok=True)
    for name, text in _ETC.items():
        _touch(f"{_STAGE}/etc/{name}", text)


def _make_devices() -> None:
    # A user namespace cannot make device files; those of the host are bound, one by one.
    os.mkdir(f"{_STAGE}/dev")
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{_STAGE}/dev/{name}", calls.NO_SETUID)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{_STAGE}/dev/{name}")
    os.symlink("/proc/self/fd", f"{_STAGE}/dev/fd")
    os.symlink("/tmp", f"{_STAGE}/dev/shm")


def open_places(roots: list[str], *, size: int, files: int) -> None:
    """Make what a program may write to: its roots and ``/tmp``, on one file system of ``size``
    bytes and as many ``files``; and make the rest read-only. Inputs can be laid after this, and
    until :func:`close_inputs`."""
    os.makedirs(SCRATCH)
    owner = f"mode=0755,uid={USER},gid={USER}"
    calls.mount_new("tmpfs", SCRATCH, _PLAIN, f"{owner},size={size},nr_inodes={files}")
    for number, path in enumerate(("tmp", *roots)):
        os.mkdir(f"{SCRATCH}/{number}")
        os.chown(f"{SCRATCH}/{number}", USER, USER)
        os.makedirs(f"/{path}", exist_ok=True)
        calls.bind(f"{SCRATCH}/{number}", f"/{path}")
    calls.detach(SCRATCH)
    os.makedirs(INPUTS)
    calls.mount_new("tmpfs", INPUTS, _PLAIN, owner)
    calls.restrict("/", calls.READ_ONLY)


def close_inputs() -> None:
    """Inputs are as they are."""
    calls.restrict(INPUTS, calls.READ_ONLY)
