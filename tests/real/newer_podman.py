"""podman of a newer Debian than this one: it reads signatures, which bookworm's was built without.

It starts itself again to unpack a layer, so that another C library has to be where it looks for it:
the packages are put together to a root directory, and it runs in there, in a mount namespace of its
own.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.commands import run
from tests.real.debian_tool import STABLE, debian_packages

_PACKAGES = ("podman", "conmon", "netavark", "runc", "libc6")
_LIBRARIES = (
    *("libgpgme11t64", "libassuan9", "libgpg-error0"),
    *("libsqlite3-0", "libseccomp2", "libsubid5", "libaudit1", "libcap-ng0", "libselinux1"),
    *("libpcre2-8-0", "libcrypt1", "libpam0g", "libacl1", "libattr1", "libsemanage2", "libsepol2"),
    *("libbz2-1.0", "libeconf0", "libbsd0", "libmd0", "libgcc-s1"),
)
_INSIDE = """\
mount --bind "$0" "$0"
mount --bind /proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" /usr/bin/podman --root /storage --runroot /running --storage-driver vfs "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerPodman:
    """One with a root directory of its own, images and configuration included."""

    root: Path

    def configure(self, exported: Path) -> None:
        """Have what was exported for it where it looks."""
        target = self.root / "etc/containers"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(exported, target)

    def pull(self, image: str) -> None:
        """Pull an image and unpack it.

        Raises:
            CommandError: It refuses.
        """
        self._run("pull", "--quiet", "--tls-verify=false", image)

    def files(self, image: str, *paths: str) -> list[bytes]:
        """What these files of an image that it has are."""
        mounted = self._run("image", "mount", image)
        return [(self.root / mounted.lstrip("/") / path).read_bytes() for path in paths]

    def images(self) -> list[str]:
        """The names of those that it has."""
        listed = json.loads(self._run("images", "--format", "json"))
        return [name for entry in listed for name in entry.get("Names", [])]

    def _run(self, *arguments: str) -> str:
        shell = ("unshare", "--mount", "--fork", "sh", "-ec", _INSIDE, self.root)
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "PODMAN_IGNORE_CGROUPSV1_WARNING": "1",
        }
        return run((*shell, *arguments), environment=environment).text


def newer_podman(root: Path) -> NewerPodman:
    """Put it together in an empty directory.

    Raises:
        CommandError: A package cannot be had, or it does not start here.
    """
    unpacked = debian_packages((*_PACKAGES, *_LIBRARIES), STABLE)
    for name in ("lib", "lib64", "bin", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    for package in unpacked.values():
        run(("cp", "-a", f"{package}/.", root))
    for name in ("proc", "dev", "sys/fs/cgroup", "tmp", "run", "root", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    made = NewerPodman(root=root)
    made.images()
    return made
