"""A program of a newer Debian than this one, run where it was unpacked: nothing is installed.

apt does the fetching, in directories of its own, from the archive that this machine is set up for,
and checks what it gets against Debian's key.
"""

import atexit
import functools
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.commands import CommandError, clean_environment, download_cache, run

STABLE, LATEST = "trixie", "sid"
"""The suites that tools come from: one that stands, and one that moves and may lack something."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SOURCES = Path("/etc/apt")
_ARCHIVE = re.compile(r"^(?:URIs:|deb\b).*?(https?://\S+/debian)/?(?:\s|$)", re.MULTILINE)
"""Debian's archive in a list of sources, in its old form or in deb822."""

_LIBRARIES = "usr/lib/x86_64-linux-gnu"


def debian_tool(package: str, suite: str, program: str) -> Path:
    """The path of ``program``, a path in the newest ``package`` of ``suite``.

    Raises:
        CommandError: It cannot be had.
    """
    return _inside(debian_packages((package,), suite)[package], package, program)


def debian_packages(packages: Sequence[str], suite: str) -> dict[str, Path]:
    """Where the newest ``packages`` of ``suite`` are unpacked. They are kept in the download cache
    under their sha256; without a network those of an earlier run serve.

    Raises:
        CommandError: One cannot be had.
    """
    kept = download_cache() / "debs" / suite
    try:
        return _fetched(packages, suite, kept)
    except CommandError:
        earlier = {package: _latest(kept / package) for package in packages}
        if None in earlier.values():
            raise
        return {package: path for package, path in earlier.items() if path is not None}


def with_libraries(
    unpacked: Mapping[str, Path], package: str, program: str
) -> tuple[Path | str, ...]:
    """The start of a command line for a program that wants another C library than this machine's:
    that of the ``libc6`` in ``unpacked``, and the libraries of the other packages there.

    Raises:
        CommandError: A part is not there.
    """
    loader = _inside(unpacked["libc6"], "libc6", f"{_LIBRARIES}/ld-linux-x86-64.so.2")
    paths = ":".join(str(path / _LIBRARIES) for path in unpacked.values())
    return loader, "--library-path", paths, _inside(unpacked[package], package, program)


def _inside(directory: Path, package: str, program: str) -> Path:
    path = directory / program
    if not path.is_file():
        raise CommandError(f"{package} has no {program}")
    return path


def _latest(directory: Path) -> Path | None:
    there = [path for path in directory.glob("*") if path.is_dir()]
    return max(there, key=lambda path: path.stat().st_mtime, default=None)


def _fetched(packages: Sequence[str], suite: str, kept: Path) -> dict[str, Path]:
    options = _suite(suite)
    if isinstance(options, CommandError):
        raise options
    return {package: _unpacked(package, options, kept) for package in packages}


@functools.cache
def _suite(suite: str) -> tuple[str, ...] | CommandError:
    """Apt's options for a suite whose lists were read, or why they cannot be: found out once in a
    run, as it takes a while."""
    scratch = Path(tempfile.mkdtemp(prefix="builder-apt-"))
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    try:
        options = _apt(scratch, suite)
        run(("apt-get", *options, "update"), environment=clean_environment(LC_ALL="C"))
    except CommandError as error:
        return error
    return options


def _unpacked(package: str, options: Sequence[str], kept: Path) -> Path:
    """The directory of one package."""
    said = run(("apt-cache", *options, "show", "--no-all-versions", package)).text
    digest = next(
        line.partition(": ")[2] for line in said.splitlines() if line.startswith("SHA256: ")
    )
    target = kept / package / digest
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(prefix="builder-deb-") as name:
        _unpack(package, options, Path(name), target)
    return target


def _unpack(package: str, options: Sequence[str], place: Path, target: Path) -> None:
    environment = clean_environment(LC_ALL="C")
    run(("apt-get", *options, "download", package), environment=environment, directory=place)
    (archive,) = place.glob("*.deb")
    run(("dpkg-deb", "-x", archive, place / "unpacked"))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.move(place / "unpacked", target)
    except OSError:  # another run was faster
        if not target.is_dir():
            raise


def _archive() -> str:
    for file in (_SOURCES / "sources.list", *sorted((_SOURCES / "sources.list.d").glob("*"))):
        if file.is_file() and (found := _ARCHIVE.search(file.read_text(errors="replace"))):
            return found[1]
    raise CommandError(f"{_SOURCES}: no source of Debian's archive")


def _apt(scratch: Path, suite: str) -> tuple[str, ...]:
    for directory in ("state/lists/partial", "cache/archives/partial"):
        (scratch / directory).mkdir(parents=True)
    sources = scratch / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {_archive()} {suite} main\n")
    settings = {
        "Dir::State": scratch / "state",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": scratch / "cache",
        # Containers are made to do without; each question would take seconds.
        "Dir::Cache::pkgcache": "packages.bin",
        "Dir::Cache::srcpkgcache": "source-packages.bin",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "APT::Sandbox::User": "root",
        "APT::Update::Error-Mode": "any",  # else lists that cannot be read are no error
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "20",
    }
    return tuple(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))
