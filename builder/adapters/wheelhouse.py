"""The Wheels port: wheels through pip, kept by digest; and wheels of the project's own."""

import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from builder.digest import Digest, Hasher
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
    RateLimitError,
)
from builder.upstream import FoundWheel
from builder.wheel_archive import WheelName
from builder.wheel_pack import pack

_log = logging.getLogger(__name__)

_INDEX = "which index is asked is said by: pip config list"

# What pip says, and what it stands for; the first that matches decides. An index that cannot be
# reached looks to pip like one without the project, so connections stand before "no match".
_KINDS: Sequence[tuple[str, type[BuilderError], str]] = (
    (r"No module named pip", EnvironmentFault, "install pip into this Python: python -m ensurepip"),
    (r"No space left on device", EnvironmentFault, "free some space"),
    (r"DO NOT MATCH THE HASHES", IntegrityError, f"the index has another file now; {_INDEX}"),
    (r"\b40[137] Client Error|HTTP error 40[137]", AuthError, _INDEX),
    (r"\b429 Client Error|HTTP error 429", RateLimitError, "try again later"),
    (r"Could not fetch URL \S+ (?!404 )|HTTP error 5", NetworkError, f"try again; {_INDEX}"),
    (r"No matching distribution|Could not find a version", GoneError, _INDEX),
)


class Wheelhouse:
    """Wheels of one project.

    Args:
        root: The project's directory; wheels of its own are below it.
        cache: Where fetched wheels are kept, as ``HEX/FILENAME``. Deletable at any time.
        offline: Whether to use only what is in ``cache``.
    """

    def __init__(self, root: Path, *, cache: Path, offline: bool) -> None:
        self._root = root
        self._cache = cache
        self._offline = offline

    def fetch(self, *, project: str, version: str, filename: str, digest: Digest) -> Path:
        """See :meth:`builder.ports.Wheels.fetch`. The file has the name ``filename``.

        Which index is asked is the user's pip configuration's affair.

        Raises:
            EnvironmentFault: This Python has no pip.
        """
        kept = self._cache / digest.hex / filename
        at = f"wheel {filename}"
        if kept.is_file():
            with kept.open("rb") as file:
                got = Digest.of_stream(file)
            if got == digest:
                return kept
            if self._offline:
                raise IntegrityError(
                    f"{at}: {str(kept)!r} is damaged: expected {digest}, got {got}",
                    hint="run once without --offline to fetch it again",
                )
            _log.warning("%s: the kept file is damaged (%s); fetching it again", at, got)
        if self._offline:
            raise OfflineError(
                f"{at}: no {digest} at hand, and --offline is set",
                hint="run once without --offline",
            )
        name = WheelName.parse(filename)
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="new-") as temporary:
            fresh = _download(Path(temporary), project, version, name, digest=digest, at=at)
            kept.parent.mkdir(exist_ok=True)
            fresh.replace(kept)
        _sync(kept.parent)
        return kept

    def keep(self, chunks: Iterator[bytes], *, filename: str, digest: Digest) -> Path:
        """See :meth:`builder.ports.Wheels.keep`."""
        kept = self._cache / digest.hex / filename
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="new-") as temporary:
            fresh = Path(temporary) / filename
            hasher = Hasher()
            with fresh.open("wb") as file:
                for chunk in chunks:
                    hasher.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            if (got := hasher.digest()) != digest:
                raise IntegrityError(f"wheel {filename}: expected {digest}, got {got}")
            kept.parent.mkdir(exist_ok=True)
            fresh.replace(kept)
        _sync(kept.parent)
        return kept

    def find(self, *, project: str, version: str | None, like: str | None) -> FoundWheel:
        """See :meth:`builder.ports.Wheels.find`."""
        raise NotImplementedError

    def pack(self, path: str) -> bytes:
        """The wheel made of the unpacked wheel in the project's directory ``path``.

        See :func:`builder.wheel_pack.pack`.
        """
        directory = self._root / path
        if not directory.resolve().is_relative_to(self._root.resolve()):
            raise ProjectError(f"wheel: {path!r}: leads out of the project")
        return pack(directory)


def _download(
    directory: Path, project: str, version: str, name: WheelName, *, digest: Digest, at: str
) -> Path:
    for what, text in (("project", project), ("version", version)):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+!-]*", text):
            raise ProjectError(f"{at}: not a {what}: {text!r}")
    requirements = directory / "requirements.txt"
    requirements.write_text(f"{project}=={version} --hash=sha256:{digest.hex}\n")
    target = directory / "wheels"
    _log.info("fetching %s", at)
    done = subprocess.run(
        (
            # Only with -vv does pip say why it could not read an index.
            *(sys.executable, "-m", "pip", "download", "-vv", "--no-deps"),
            "--only-binary=:all:",
            *("--require-hashes", "--no-input", "--no-cache-dir", "--disable-pip-version-check"),
            # Another machine's Python: the tags decide, and the image is checked at the install.
            *("--ignore-requires-python", *_tag_options(name)),
            *("--dest", str(target), "-r", str(requirements)),
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=os.environ | {"LC_ALL": "C", "PIP_NO_COLOR": "1"},
        check=False,
    )
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode != 0:
        raise _fault(said, at=at)
    files = list(target.glob("*.whl"))
    if len(files) != 1:
        raise IntegrityError(f"{at}: pip brought {[file.name for file in files]}, wanted one wheel")
    with files[0].open("rb") as file:
        got = Digest.of_stream(file)
        os.fsync(file.fileno())
    if got != digest:
        raise IntegrityError(f"{at}: expected {digest}, got {got}")
    return files[0]


def _tag_options(name: WheelName) -> tuple[str, ...]:
    """What makes pip choose this wheel, whatever Python and platform run it."""
    interpreters = sorted({tag.interpreter for tag in name.tags})
    # "py2.py3" and the like: the highest stands for all, in the one family that pip takes.
    match = re.fullmatch(r"([a-z]+)(\d+)(?:_(\d+))?", interpreters[-1])
    options: list[str] = []
    if match:
        family, digits, minor = match.groups()
        python = f"{digits}.{minor}" if minor else digits
        options += ["--implementation", family, "--python-version", python]
    for abi in sorted({tag.abi for tag in name.tags}):
        options += ["--abi", abi]
    for platform in sorted({tag.platform for tag in name.tags}):
        options += ["--platform", platform]
    return tuple(options)


def _fault(said: str, *, at: str) -> BuilderError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    text = re.sub(r"://[^/@\s]+@", "://", "; ".join(errors or lines[-1:]))[:500]
    for pattern, kind, hint in _KINDS:
        if re.search(pattern, said):
            return kind(f"{at}: {text}", hint=hint)
    return NetworkError(f"{at}: pip download: {text}", hint=_INDEX)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
