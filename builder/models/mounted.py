"""Whether a file system tells that a file was changed.

Where it has no time of change, it gives the one of modification for it, which anybody sets; an
image that is mounted has the times that whoever made it wrote, and another image in its place may
have the same device, inodes and times. In memory (tmpfs) a mapped file may be written to for ever
after without a new time. Nothing that was hashed there is remembered.
"""

import os
from collections.abc import Container
from pathlib import Path

_SILENT = frozenset(
    {
        *("squashfs", "erofs", "iso9660", "udf", "cramfs", "romfs"),
        *("vfat", "msdos", "exfat", "hfs", "vboxsf", "fuse"),
        *("tmpfs", "ramfs"),
    }
)
"""Types without a time of change of their own: images, and what knows no inodes. Of FUSE nobody
knows; fuseblk is NTFS, which has one. What is in memory is never written to a disk, after which
alone a mapped page tells of the next write."""
_MOUNTS = Path("/proc/self/mountinfo")


class _All:
    """Every device."""

    def __contains__(self, _: object) -> bool:
        return True


def silent_devices(mounts: Path = _MOUNTS) -> Container[int]:
    """The devices (``st_dev``) of such file systems; all, where it cannot be known.

    Args:
        mounts: A table as proc_pid_mountinfo(5) has it.
    """
    try:
        text = mounts.read_text(errors="replace")
    except OSError:
        return _All()
    found = set()
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        kind = rest.partition(" ")[0]
        major, colon, minor = (fields.split(" ") + [""] * 3)[2].partition(":")
        if colon and kind.partition(".")[0] in _SILENT and major.isdecimal() and minor.isdecimal():
            found.add(os.makedev(int(major), int(minor)))
    return found
