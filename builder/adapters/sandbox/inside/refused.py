"""The system calls that a program is refused, as a classic BPF program for seccomp(2).

Namespaces and the absence of capabilities do most of it. What is left for this list: memory that
belongs to no process, and so to no limit; addresses that no network namespace bounds (AF_VSOCK
reaches the host of a virtual machine); keys, which are the user's and not the process's; and the
calls behind most ways out of a container, none of which a patch script needs. The answer is EPERM.
"""

import struct

_CALLS = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""Their numbers on x86_64 and aarch64."""
_SOCKET = (41, 198)
_AF_UNIX = 1
_X32 = 0x40000000
"""On x86_64: from here on the numbers are those of the x32 ABI, and name all calls again."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Which number, and AUDIT_ARCH_*: a program may also call by another ABI of its processor."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data."""


def program(machine: str) -> bytes:
    """The filter for ``machine``.

    Raises:
        OSError: Its system calls are not known here.
    """
    if machine not in _MACHINES:
        raise OSError(f"no list of system calls for {machine!r}, only for {sorted(_MACHINES)}")
    column, architecture = _MACHINES[machine]
    checks = [(_EQUAL, numbers[column]) for numbers in _CALLS.values()] + [(_AT_LEAST, _X32)]
    # Jumps are counted from the next instruction. REFUSE is the last one, ALLOW the one before.
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _REFUSE)]
    lines.append((_LOAD, 0, 0, _NUMBER))
    for done, (test, number) in enumerate(checks):
        lines.append((test, len(checks) - done + 3, 0, number))
    lines += [
        (_EQUAL, 0, 2, _SOCKET[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
