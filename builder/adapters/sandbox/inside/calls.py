"""System calls that Python has no function for, or has only in versions later than 3.11.

Each raises OSError with the name of what was asked.
"""

import ctypes
import os
import struct

NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID."""
NEW_NETWORK = 0x40000000
"""CLONE_NEWNET."""

READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
"""MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC; MOUNT_ATTR_* have the same values."""
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = 64

_MOUNT_SETATTR = 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(answer: int, what: str) -> None:
    if answer == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the caller's namespaces for new ones."""
    _check(_libc.unshare(flags), "unshare")


def set_host_name(name: str) -> None:
    """Name the machine, in this UTS namespace."""
    _check(_libc.sethostname(name.encode(), len(name)), "sethostname")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str) -> None:
    answer = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    _check(answer, f"mount {kind or source} on {target}")


def make_private() -> None:
    """No mount that is made from here on shows outside, and none from outside here."""
    _mount("none", "/", None, _RECURSIVE | _PRIVATE, "")


def mount_new(kind: str, target: str, flags: int, data: str = "") -> None:
    """A new file system of ``kind``."""
    _mount(kind, target, kind, flags, data)


def bind(source: str, target: str) -> None:
    """Show ``source``, with what is mounted below it, at ``target``."""
    _mount(source, target, None, _BIND | _RECURSIVE, "")


def restrict(path: str, flags: int, *, below: bool = False) -> None:
    """Add flags to a mount, and to those ``below`` it."""
    attributes = struct.pack("=4Q", flags, 0, 0, 0)
    answer = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.c_uint(_AT_RECURSIVE if below else 0),
        ctypes.c_char_p(attributes),
        ctypes.c_size_t(len(attributes)),
    )
    _check(answer, f"mount_setattr {path}")


def enter(root: str) -> None:
    """Make ``root``, a mount, the root directory, and let go of the old one."""
    os.chdir(root)
    # pivot_root(2): both may be the same directory; the old root is then on top of the new one.
    number = ctypes.c_long(_PIVOT_ROOT[os.uname().machine])
    _check(_libc.syscall(number, b".", b"."), "pivot_root")
    detach(".")
    os.chdir("/")


def detach(path: str) -> None:
    """Unmount ``path``, now here and later where it is in use."""
    _check(_libc.umount2(os.fsencode(path), _DETACH), f"umount {path}")


def _prctl(what: str, option: int, *arguments: int) -> None:
    given = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0)[:4]]
    _check(_libc.prctl(ctypes.c_int(option), *given), f"prctl {what}")


def die_with_parent(signal: int) -> None:
    """Be sent ``signal`` when the parent ends. Lost when the user id changes."""
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal)


def no_new_privileges() -> None:
    """A program that is started can have no more than the one that starts it."""
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


def hide_memory() -> None:
    """Not even a process of the same user may trace this one."""
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, 0)


def drop_bounding() -> None:
    """No program that is started can gain a capability. Without CAP_SETPCAP this does nothing."""
    for number in range(_CAPABILITIES):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) == -1:
            break  # this kernel has no more


def drop_capabilities() -> None:
    """All that this process has."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def filter_calls(instructions: bytes) -> None:
    """Let a classic BPF program judge each system call from here on, of all descendants too."""
    text = ctypes.create_string_buffer(instructions, len(instructions))
    # struct sock_fprog: how many, and where.
    program = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(text))
    held = ctypes.create_string_buffer(program, len(program))
    _prctl("PR_SET_SECCOMP", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(held))
