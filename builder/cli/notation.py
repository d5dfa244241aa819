"""``builder sign --notation``: signatures of the Notary Project, loaded only where asked for."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.adapters.given_file import read_given
from builder.cli.places import Spot
from builder.cli.world import moment
from builder.keys.signer import Signer
from builder.notation.attach import Attached, attach
from builder.notation.certificate import CHAIN_LIMIT, Chain, read_chain
from builder.oci import Descriptor

STORE = "builder"
"""The trust store that the printed commands name."""


def chain_of(file: Path) -> Chain:
    """The certificates in a file.

    Raises:
        UsageError: It cannot be read, or is for a key that Notation has no signatures of.
        IntegrityError: It has no certificates that Notation takes.
    """
    return read_chain(read_given(file, limit=CHAIN_LIMIT), at=str(file))


@dataclass(frozen=True, slots=True, kw_only=True)
class Notary:
    """A signer with the certificates of its key."""

    signer: Signer
    file: Path
    chain: Chain

    def sign(self, spot: Spot, images: Sequence[Descriptor]) -> "Notarised":
        """Sign images where they are, and look whether that holds. Raises as :func:`attach`."""
        attached = attach(
            images, self.signer, self.chain, place=spot.open(), again=spot.open(), now=moment()
        )
        return Notarised(notary=self, spot=spot, image=images[0], attached=attached)


def notary_of(signer: Signer, file: Path) -> Notary:
    """The signer with the certificates in ``file``: looked at before anything is signed.

    Raises:
        UsageError, IntegrityError: As :func:`chain_of`; they are for another key.
        ExpiredError: They do not hold now.
    """
    chain = chain_of(file)
    chain.check(signer.public, now=moment())
    return Notary(signer=signer, file=file, chain=chain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notarised:
    """What came of it. ``image`` is the one that was named."""

    notary: Notary
    spot: Spot
    image: Descriptor
    attached: Attached

    def document(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "certificate": f"sha256:{self.notary.chain.thumbprints[0]}",
            "until": f"{self.notary.chain.until:%Y-%m-%dT%H:%M:%SZ}",
            "added": [str(image) for image in self.attached.added],
            "present": self.attached.present,
            "commands": list(self.commands()),
        }

    def text(self) -> str:
        """For people."""
        counts = f"{len(self.attached.added)} signatures added, {self.attached.present} were there"
        return f"notation: {counts}; verified; the certificate holds to {self._until}"

    @property
    def _until(self) -> str:
        return f"{self.notary.chain.until:%Y-%m-%d}"

    def commands(self) -> Sequence[str]:
        """What to run where ``notation`` is, with a trust policy that names the store."""
        if self.spot.layers is None:
            verify = f"notation verify {self.spot.repository}@{self.image.digest}"
        else:
            image = shlex.quote(f"{self.spot.layers.paths.root}@{self.image.digest}")
            verify = (
                "NOTATION_EXPERIMENTAL=1 notation verify --oci-layout"
                f" --scope REGISTRY/REPOSITORY {image}"
            )
        root = shlex.quote(str(self.notary.file))
        return f"notation cert add --type ca --store {STORE} {root}", verify
