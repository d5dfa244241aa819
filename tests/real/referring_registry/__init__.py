"""A registry of others that has the referrers API: go-containerregistry's, compiled here.

Debian has its sources and a compiler; both are fetched as tools are, and nothing is installed.
It is not the stand-in's twin: it does not say that it lists referrers when one is pushed
(``OCI-Subject``), does not filter, and tells the type of a config for that of an artifact.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from builder.digest import Digest
from tests.commands import clean_environment, download_cache, run
from tests.real.debian_tool import STABLE, debian_packages
from tests.services import listening_port

_SOURCE = Path(__file__).with_name("main.go")
_COMPILER, _STANDARD_LIBRARY = "golang-1.24-go", "golang-1.24-src"
_LIBRARIES = (
    "golang-github-google-go-containerregistry-dev",
    "golang-github-opencontainers-go-digest-dev",
    "golang-github-opencontainers-image-spec-dev",
)


@contextmanager
def running_referring_registry() -> Iterator[str]:
    """Run one in memory; its ``127.0.0.1:PORT``.

    Raises:
        CommandError: It cannot be made: a package cannot be had.
    """
    program = _program()
    process = subprocess.Popen([program], stderr=subprocess.DEVNULL)
    try:
        yield f"127.0.0.1:{listening_port(process)}"
    finally:
        process.terminate()
        process.wait(timeout=10)


def _program() -> Path:
    """Compiled of these packages once, and kept with the downloads."""
    packages = debian_packages((_COMPILER, _STANDARD_LIBRARY, *_LIBRARIES), STABLE)
    made_of = [_SOURCE.read_bytes(), *(os.fsencode(path.name) for path in packages.values())]
    kept = download_cache() / "referring-registry" / Digest.of(b"\n".join(made_of)).hex
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="builder-go-", dir=kept.parent) as name:
            _compile(packages, Path(name)).replace(kept)
    return kept


def _compile(packages: Mapping[str, Path], scratch: Path) -> Path:
    root = scratch / "root"
    root.mkdir()
    # The package of the compiler has links to where its standard library would be installed.
    for package, part in ((_COMPILER, "usr/lib"), (_STANDARD_LIBRARY, "usr/share")):
        for path in (packages[package] / part / "go-1.24").iterdir():
            if not path.is_symlink():
                (root / path.name).symlink_to(path)
    environment = clean_environment(
        GOROOT=str(root),
        GOPATH=os.pathsep.join(str(packages[name] / "usr/share/gocode") for name in _LIBRARIES),
        GOCACHE=str(scratch / "cache"),
        GO111MODULE="off",
        GOFLAGS="",
        GOTOOLCHAIN="local",
        CGO_ENABLED="0",
    )
    program = scratch / "registry"
    run((root / "bin/go", "build", "-o", program, _SOURCE), environment=environment)
    return program
