"""The Wheels port: wheels through pip, kept by digest; and wheels of the project's own."""

import logging
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from builder import durable
from builder.adapters.pip import check_words, pip
from builder.adapters.wheel_index import Offer, look
from builder.adapters.wheel_target import Target, target_of, usual
from builder.digest import Digest, Hasher
from builder.errors import IntegrityError, OfflineError, ProjectError
from builder.upstream import FoundWheel
from builder.wheel_archive import WheelName
from builder.wheel_pack import pack

_log = logging.getLogger(__name__)


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
        check_words(project=project, version=version, at=at)
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="new-") as temporary:
            fresh = _download(Path(temporary), project, version, name, digest=digest, at=at)
            self._keep(fresh, digest, filename)
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
            self._keep(fresh, digest, filename)
        return kept

    def find(self, *, project: str, version: str | None, like: str | None) -> FoundWheel:
        """See :meth:`builder.ports.Wheels.find`.

        Nothing is remembered: the index is asked each time. The digest is the index's word until
        the wheel is fetched; where the index has none, the wheel is fetched, hashed and kept.
        """
        at = f"wheel {project}" if version is None else f"wheel {project}=={version}"
        check_words(project=project, version=version, at=at)
        target = usual() if like is None else target_of(WheelName.parse(like).tags)
        if self._offline:
            raise OfflineError(f"{at}: the index cannot be asked, --offline is set")
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._cache, prefix="new-") as temporary:
            directory = Path(temporary)
            offer = look(directory, project=project, version=version, target=target, at=at)
            digest = offer.digest or self._unhashed(directory, project, offer, target, at=at)
        if offer.yanked:
            _log.warning("%s: %s was yanked from the index", at, offer.filename)
        kept = self._cache / digest.hex / offer.filename
        return FoundWheel(
            filename=offer.filename,
            version=offer.version,
            digest=digest,
            size=kept.stat().st_size if kept.is_file() else None,
        )

    def _unhashed(
        self, directory: Path, project: str, offer: Offer, target: Target, *, at: str
    ) -> Digest:
        """The digest of what an index offers without one."""
        _log.info("%s: the index has no sha256, fetching %s", at, offer.filename)
        wanted = f"{project}=={offer.version}"
        path = _one_wheel(directory, *target.options(), "--", wanted, at=at)
        if path.name != offer.filename:
            raise IntegrityError(f"{at}: pip offers {offer.filename!r} and brings {path.name!r}")
        digest = _hashed(path)
        self._keep(path, digest, path.name)
        return digest

    def _keep(self, fresh: Path, digest: Digest, filename: str) -> None:
        directory = self._cache / digest.hex
        directory.mkdir(exist_ok=True)
        fresh.replace(directory / filename)
        durable.sync_directory(directory)

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
    requirements = directory / "requirements.txt"
    requirements.write_text(f"{project}=={version} --hash=sha256:{digest.hex}\n")
    _log.info("fetching %s", at)
    # Another machine's Python: the tags decide, and the image is checked at the install.
    options = ("--require-hashes", "--ignore-requires-python", *_tag_options(name))
    path = _one_wheel(directory, *options, "-r", str(requirements), at=at)
    if (got := _hashed(path)) != digest:
        raise IntegrityError(f"{at}: expected {digest}, got {got}")
    return path


def _one_wheel(directory: Path, *arguments: str, at: str) -> Path:
    target = directory / "wheels"
    pip("download", "--dest", str(target), *arguments, at=at)
    files = list(target.glob("*.whl"))
    if len(files) != 1:
        raise IntegrityError(f"{at}: pip brought {[file.name for file in files]}, wanted one wheel")
    return files[0]


def _hashed(path: Path) -> Digest:
    """The digest of a file, which is on disk afterwards."""
    with path.open("rb") as file:
        digest = Digest.of_stream(file)
        os.fsync(file.fileno())
    return digest


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
