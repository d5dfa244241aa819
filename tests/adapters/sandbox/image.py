"""An image with Python in it, made of the files of the Python that runs the tests.

No registry is asked: the program, its standard library, a shell, a few programs, and the shared
libraries that ``ldd`` names, as one tar that ``docker import`` takes.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker

from tests.fakes import File
from tests.flow.images import tar_of

_PROGRAMS = ("sh", "cat", "ls", "sleep")
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LEFT_OUT = {"site-packages", "dist-packages", "test", "idlelib", "__pycache__", "ensurepip"}


def imported(host: str, root: bytes | None = None) -> str:
    """Import a root file system, by default :func:`archive`, into an engine; the image's id."""
    with closing(docker.DockerClient(base_url=host)) as client:
        said = client.api.import_image_from_data(archive() if root is None else root)
    return str(json.loads(said)["status"])


def archive() -> bytes:
    """The tar of its root file system."""
    return tar_of(system())


def system() -> dict[str, File]:
    """The files of its root file system, by path."""
    return {
        inside.lstrip("/"): File(Path(outside).read_bytes(), mode=os.stat(outside).st_mode & 0o777)
        for inside, outside in sorted(_files().items())
    }


def _files() -> dict[str, str]:
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    files = {"/usr/bin/python3": python}
    library = Path(sys.base_prefix, sys.platlibdir, _VERSION)
    files |= {
        f"/usr/{sys.platlibdir}/{_VERSION}/{path}": f"{library}/{path}" for path in _kept(library)
    }
    programs = {f"/bin/{name}": shutil.which(name, path="/usr/bin:/bin") for name in _PROGRAMS}
    files |= {inside: outside for inside, outside in programs.items() if outside}
    linked = {
        each for each in files.values() if each in {python, *programs.values()} or ".so" in each
    }
    for path in {path for each in linked for path in _ldd(each)}:
        # The loader stays in its place. The others are where it looks without a cache.
        inside = path if Path(path).name.startswith("ld-") else f"/usr/lib/{Path(path).name}"
        files.setdefault(inside, path)
    return files


def _kept(library: Path) -> Iterator[str]:
    for directory, directories, names in os.walk(library):
        directories[:] = [
            name for name in directories if name not in _LEFT_OUT and not name.startswith("config-")
        ]
        for name in names:
            yield str(Path(directory, name).relative_to(library))


def _ldd(binary: str) -> list[str]:
    done = subprocess.run(["ldd", binary], capture_output=True, check=False, text=True)
    words = [word for line in done.stdout.splitlines() for word in line.split()]
    return [word for word in words if word.startswith("/") and os.path.exists(word)]
