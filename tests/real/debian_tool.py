"""A program of a newer Debian than this one, run where it was unpacked: nothing is installed.

apt does the fetching, in directories of its own, and checks what it gets against Debian's key.
"""

import shutil
import tempfile
from pathlib import Path

from tests.commands import CommandError, clean_environment, download_cache, run

ARCHIVE = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def debian_tool(package: str, suite: str, program: str) -> Path:
    """The path of ``program``, a path in the newest ``package`` of ``suite``. It is kept in the
    download cache under the package's sha256; without a network the one of an earlier run serves.

    Raises:
        CommandError: It cannot be had.
    """
    kept = download_cache() / "debs"
    try:
        found = _fetched(package, suite, kept)
    except CommandError:
        earlier = _latest(kept / package)
        if earlier is None:
            raise
        found = earlier
    path = found / program
    if not path.is_file():
        raise CommandError(f"{package} of {suite} has no {program}")
    return path


def _latest(directory: Path) -> Path | None:
    there = [path for path in directory.glob("*") if path.is_dir()]
    return max(there, key=lambda path: path.stat().st_mtime, default=None)


def _fetched(package: str, suite: str, kept: Path) -> Path:
    """The directory of the unpacked package."""
    with tempfile.TemporaryDirectory(prefix="builder-apt-") as name:
        scratch = Path(name)
        options = _apt(scratch, suite)
        environment = clean_environment(LC_ALL="C")
        run(("apt-get", *options, "update"), environment=environment)
        said = run(("apt-cache", *options, "show", "--no-all-versions", package)).text
        digest = next(
            line.partition(": ")[2] for line in said.splitlines() if line.startswith("SHA256: ")
        )
        target = kept / package / digest
        if target.is_dir():
            return target
        run(("apt-get", *options, "download", package), environment=environment, directory=scratch)
        (archive,) = scratch.glob("*.deb")
        run(("dpkg-deb", "-x", archive, scratch / "unpacked"))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.move(scratch / "unpacked", target)
        except OSError:  # another run was faster
            if not target.is_dir():
                raise
        return target


def _apt(scratch: Path, suite: str) -> tuple[str, ...]:
    for directory in ("state/lists/partial", "cache/archives/partial"):
        (scratch / directory).mkdir(parents=True)
    sources = scratch / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {ARCHIVE} {suite} main\n")
    settings = {
        "Dir::State": scratch / "state",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": scratch / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "20",
    }
    return tuple(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))
