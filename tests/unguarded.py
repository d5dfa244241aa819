"""A sandbox that guards nothing: :class:`builder.sandbox.Sandbox` for honest programs of tests."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from builder.sandbox import INPUTS, Finished, Job, Laid, Left, LeftFile, LeftLink, LeftOther


@dataclass
class Unguarded:
    """Runs programs in a temporary directory that stands for the root. Arguments and values of the
    environment that begin with a slash are led there; what a program has written into itself is
    not, and nothing holds it back. ``jobs`` are those that were run."""

    name: str = "unguarded"
    jobs: list[Job] = field(default_factory=list)

    def run(self, job: Job) -> Finished:
        self.jobs.append(job)
        with tempfile.TemporaryDirectory() as temporary:
            root = Path(temporary)
            for item in job.files:
                _lay(item, root)
            for item in job.inputs:
                _lay(item, Path(f"{root}{INPUTS}"))
            for directory in (*job.roots, "tmp/home"):
                (root / directory).mkdir(parents=True, exist_ok=True)
            word = job.command[0]
            program = {"python": sys.executable, "sh": "/bin/sh"}.get(word, word)
            home = {"PATH": os.defpath, "HOME": f"{root}/tmp/home", "LC_ALL": "C.UTF-8"}
            done = subprocess.run(
                (program, *(_led(word, root) for word in job.command[1:])),
                env=home | {name: _led(word, root) for name, word in job.environment.items()},
                cwd=f"{root}{job.working}",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=job.limits.seconds,
                check=False,
            )
            there = {path: root / path for path in _walk(root, job.roots)}
            return Finished(
                status=done.returncode,
                stdout=done.stdout,
                stderr=done.stderr,
                left=tuple(_left(job, there)),
                removed=tuple(sorted({item.path for item in job.files} - there.keys())),
            )


def _lay(item: Laid, root: Path) -> None:
    path = root / item.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(item.size) if item.data is None else item.data)
    path.chmod(item.mode)


def _led(word: str, root: Path) -> str:
    return f"{root}{word}" if word.startswith("/") else word


def _walk(root: Path, directories: tuple[str, ...]) -> Iterator[str]:
    for directory in directories:
        for path in sorted((root / directory).rglob("*")):
            if path.is_symlink() or not path.is_dir():
                yield str(path.relative_to(root))


def _left(job: Job, there: dict[str, Path]) -> Iterator[Left]:
    before = {
        item.path: (bytes(item.size) if item.data is None else item.data, item.mode)
        for item in job.files
    }
    for name, path in sorted(there.items()):
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            yield LeftLink(path=name, target=os.readlink(path))
        elif not stat.S_ISREG(info.st_mode):
            yield LeftOther(path=name, kind="neither file nor link")
        elif before.get(name) != (now := (path.read_bytes(), stat.S_IMODE(info.st_mode))):
            yield LeftFile(path=name, data=now[0], mode=now[1])
