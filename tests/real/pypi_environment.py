"""A Python with packages of PyPI that are no dependencies of this project: those of an oracle."""

import sys
from pathlib import Path

from builder.digest import Digest
from tests.commands import download_cache, run


def environment_with(packages: Path) -> Path:
    """A Python that has what a hash-locked file of pip says, in an environment of its own among
    the downloads that are kept; it is made anew where the file is another.

    Raises:
        CommandError: The packages are not to be had.
    """
    locked = Digest.of(packages.read_bytes())
    place = download_cache() / f"{packages.stem.replace('_', '-')}-{locked.short}"
    python = place / "bin/python"
    if not (place / "complete").exists():
        run((sys.executable, "-m", "venv", "--clear", "--without-pip", place))
        pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
        options = ("--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes")
        run((*pip, *options, "-r", packages))
        (place / "complete").touch()
    return python
