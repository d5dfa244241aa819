"""The Pythons of this machine, each with what builder needs from the hash-locked requirements."""

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.digest import Digest
from tests.commands import ROOT, CommandError, clean_environment, download_cache, run

MINORS = (11, 12, 13, 14)
"""The versions 3.N that builder supports."""
_REQUIREMENTS = ROOT / "requirements" / "run.txt"
_ASK = "import os, sys; print(os.path.realpath(sys.executable), *sys.version_info[:3])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python that runs, by its real path."""

    path: Path
    version: tuple[int, int, int]

    @property
    def name(self) -> str:
        return "Python " + ".".join(map(str, self.version))


def interpreters() -> list[Interpreter]:
    """Each Python 3.11 or newer that ``PATH``, the system's place and pyenv have, once."""
    found: dict[Path, Interpreter] = {}
    for candidate in _candidates():
        try:
            path, *version = run((candidate, "-I", "-c", _ASK)).text.split()
        except CommandError:
            continue  # one of pyenv's shims without a version behind it
        major, minor, micro = map(int, version)
        found[Path(path)] = Interpreter(path=Path(path), version=(major, minor, micro))
    return sorted(found.values(), key=lambda item: (item.version, item.path))


def _candidates() -> Iterator[Path]:
    yield Path(getattr(sys, "_base_executable", sys.executable))
    directories = [Path(item) for item in os.environ.get("PATH", "").split(os.pathsep) if item]
    for minor in MINORS:
        places = [*directories, Path("/usr/bin"), Path("/usr/local/bin")]
        pyenv = Path.home() / ".pyenv" / "versions"
        places += sorted(place / "bin" for place in pyenv.glob(f"3.{minor}.*"))
        for place in dict.fromkeys(places):
            if (place / f"python3.{minor}").is_file():
                yield place / f"python3.{minor}"


def environment_of(interpreter: Interpreter, *, below: Path | None = None) -> Path:
    """A virtual environment's Python: made once and kept by what is in it, or made anew in the
    directory ``below``.

    Raises:
        CommandError: It cannot be made, or what it needs is not to be had.
    """
    locked = Digest.of(_REQUIREMENTS.read_bytes() + os.fsencode(interpreter.path))
    name = f"{interpreter.name.replace(' ', '-').lower()}-{locked.hex[:16]}"
    home = (below or download_cache() / "venvs") / name
    python = home / "bin" / "python"
    complete = home / "complete"
    if not complete.is_file():
        shutil.rmtree(home, ignore_errors=True)
        # Debian's Python makes one with pip only where python3-venv is installed; ours has pip.
        run((interpreter.path, "-m", "venv", "--without-pip", home))
        pip = (sys.executable, "-m", "pip", "--python", python, "--quiet", "--no-input")
        install = ("install", "--require-hashes", "--no-deps", "-r", _REQUIREMENTS)
        run((*pip, *install), environment=clean_environment())
        complete.touch()
    return python


def runs_for(python: Path, user: int, *, needs: str = "click") -> bool:
    """Whether another user of the machine can run it and has what it needs."""
    try:
        run((python, "-c", f"import {needs or 'sys'}"), user=user, directory=Path("/"))
    except CommandError:
        return False
    return True
