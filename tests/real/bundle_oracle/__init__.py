"""Bundles by npm's own verifier of them, ``@sigstore/verify``.

npm puts it among the downloads that are kept, as package-lock.json beside this file has it: by
digests, from the registry that npm is set up for, and without running anything of it.
"""

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.digest import Digest
from builder.oci import Manifest
from builder.reference import Reference
from builder.signatures.registry import RegistryPlace
from builder.sigstore import bundle
from tests.commands import CommandError, clean_environment, download_cache, run
from tests.signed_images import place

_HERE = Path(__file__).parent
_PACKAGE = ("package.json", "package-lock.json")
_PROGRAM = _HERE / "verify.mjs"
_QUIET = ("--ignore-scripts", "--engine-strict", "--no-audit", "--no-fund", "--loglevel=error")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleOracle:
    """The library, with a program around it that asks about the subject, too."""

    library: Path
    """A package.json that has it installed beside it."""

    def refusals(self, bundles: list[bytes], image: Digest, key: bytes) -> list[str | None]:
        """Why each of the bundles is refused as one of ``key`` (PEM) about ``image``, or ``None``.

        Raises:
            CommandError: The program itself fails.
        """
        asked = {
            "key": key.decode(),
            "image": image.hex,
            "bundles": [raw.decode() for raw in bundles],
        }
        said = run(("node", _PROGRAM, self.library), given=json.dumps(asked).encode()).stdout
        answers: list[str | None] = json.loads(said)
        return answers

    def verify(self, image: str, key: Path) -> None:
        """Hold every bundle that refers to an image to a key.

        Raises:
            CommandError: There is none, or none that the key vouches for.
            AssertionError: It vouches for some of them: no image here is like that.
        """
        with RegistryClient(RegistryConfiguration()) as client:
            there = place(client, Reference.parse(image))
            digest = _digest(there)
            refusals = self.refusals(_bundles(there, digest), digest, key.read_bytes())
        if None not in refusals:
            raise CommandError(f"{image}: {refusals or 'no bundle'}")
        assert not any(refusals), refusals


def bundle_oracle() -> BundleOracle:
    """Get it.

    Raises:
        CommandError: There is no node, no npm, an older Node than it wants, or no registry.
    """
    run(("node", "--version"))  # its library may be there from before
    lock = Digest.of((_HERE / "package-lock.json").read_bytes())
    target = download_cache() / "npm" / lock.hex
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as name:
            fresh = Path(name) / "fresh"
            fresh.mkdir()
            for file in _PACKAGE:
                shutil.copy(_HERE / file, fresh)
            run(("npm", "ci", *_QUIET), directory=fresh, environment=clean_environment())
            try:
                fresh.rename(target)
            except OSError:  # another run was faster
                if not target.is_dir():
                    raise
    return BundleOracle(library=target / "package.json")


def _digest(there: RegistryPlace) -> Digest:
    if there.repository.digest is not None:
        return there.repository.digest
    found = there.registry.tagged(there.repository)
    assert found is not None
    return found.digest


def _bundles(there: RegistryPlace, image: Digest) -> list[bytes]:
    found = []
    for entry in there.referrers(image, bundle.MEDIA_TYPE):
        manifest = there.manifest(entry.digest)
        assert isinstance(manifest, Manifest)
        found += [there.blob(layer) for layer in manifest.layers]
    return found
