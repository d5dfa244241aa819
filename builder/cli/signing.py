"""Sign an image where it was published: for ``sign``, and for builds that do it at once."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import notes
from builder.adapters.keys.directory import NAME
from builder.build_record import recorded
from builder.cli.keyring import directory_of, keyring_of
from builder.cli.places import Spot, spot_of
from builder.cli.site import Site
from builder.cli.verifying import by_policy, verify_at
from builder.digest import Digest
from builder.errors import (
    IntegrityError,
    PolicyError,
    ProjectError,
    UnsignedError,
    UsageError,
)
from builder.keys.signer import Signer
from builder.oci import Descriptor, Index
from builder.sign import sign, signables
from builder.signatures.publish import Published
from builder.statements import statements
from builder.trust.export.containerd import DIRECTORY
from builder.trust.names import FILE
from builder.world import World

PUBLIC = "cosign.pub"
"""What commands call the file of a public key that they do not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """What was signed where, and by whom. ``images`` are the image, or an index and its members."""

    spot: Spot
    images: tuple[Descriptor, ...]
    signer: Signer
    published: Published
    key: str | None = None
    """The file of the public half, where it is known."""
    doubt: str | None = None
    """Why the project's trust policy does not let the image pass, where it has one."""

    def document(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "reference": self.spot.reference,
            "images": [str(image.digest) for image in self.images],
            "key": self.signer.public.fingerprint,
            "added": [
                {
                    "image": str(item.image),
                    "kind": str(item.kind),
                    "predicate_type": item.predicate_type,
                }
                for item in self.published.added
            ],
            "present": self.published.present,
            "doubt": self.doubt,
            "commands": list(self.commands()),
            "policy_commands": list(self.policy_commands()),
        }

    def text(self) -> str:
        """For people."""
        counts = (
            f"{len(self.published.added)} signatures added, {self.published.present} were there"
        )
        text = f"{self.spot.reference}: {counts}; verified"
        text += f"\nsigned by {self.signer.public.fingerprint}"
        return (
            text if self.doubt is None else f"{text}\nby {FILE} it does not pass yet: {self.doubt}"
        )

    def commands(self) -> Sequence[str]:
        """What readers of this and of other tools run, with the public key in a file."""
        key = shlex.quote(self.key or PUBLIC)
        if self.spot.layers is not None:
            return (f"builder verify {shlex.quote(self.spot.reference)} --key {key}",)
        image = f"{self.spot.repository}@{self.images[0].digest}"
        offline = "--insecure-ignore-tlog=true"
        attestation = f"cosign verify-attestation --key {key} --type slsaprovenance1"
        return (
            f"builder verify {image} --key {key}",
            f"cosign verify --key {key} {offline} {image}",
            f"{attestation} {offline} {image}",
        )

    def policy_commands(self) -> Sequence[str]:
        """What has skopeo, podman and containerd take it by the project's ``trust.yaml``: they go
        by files, not by a key that is named. They read registries alone."""
        if self.spot.layers is not None:
            return ()
        image = f"{self.spot.repository}@{self.images[0].digest}"
        exported = "--policy containers/policy.json --registries.d containers/registries.d"
        return (
            "builder trust export --format containers --out containers",
            f"skopeo {exported} copy --remove-signatures docker://{image} dir:copy",
            f"cp -r containers/. /etc/containers && podman pull {image}",
            "builder trust export --format containerd --out containerd",
            f"cp containerd/bin/builder {DIRECTORY}/ && ctr image pull {image}",
        )

    def aside(self) -> Sequence[str]:
        """The commands, with what they want."""
        if self.key is not None:
            return self.commands()
        return (f"with the public key in {PUBLIC} (builder key export):", *self.commands())


def signer_of(
    site: Site, key: str, *, public: Path | None = None, allow_plaintext: bool = False
) -> Signer:
    """The signer that a person names. Whoever builds opens it first: a wrong password is known
    before hours of work."""
    return keyring_of(site.settings, allow_plaintext=allow_plaintext).signer(key, public=public)


def sign_there(
    image: Digest, where: str, signer: Signer, *, key: str, site: Site, world: World
) -> Signed:
    """Sign an image that was built here, at ``where``, and all that is to be said of it.

    Args:
        key: What the person calls the signer.

    Raises:
        GoneError: There is nothing at ``where``.
        IntegrityError: Another image is, or an index that lists another one than were built here.
    """
    spot = spot_of(where, world=world, at="REF")
    top = spot.image()
    members = {item.digest for item in top.manifests} if isinstance(top, Index) else set()
    said = {
        item: statements(recorded(item, site.store), name=spot.repository)
        for item in (image, *sorted(members - {image}, key=str))
        if item == image or site.store.note(notes.IMAGE, item.hex) is not None
    }
    images = signables(top, said, reference=spot.reference, name=spot.name)
    published, _ = sign(images, signer, place=spot.open(), again=spot.open())
    return Signed(
        spot=spot,
        images=tuple(item.image for item in images),
        signer=signer,
        published=published,
        key=_public_file(key, site),
        doubt=_doubt(spot, site),
    )


def _public_file(key: str, site: Site) -> str | None:
    """The file of the public half of a key of ``builder key``."""
    directory = directory_of(site.settings)
    if not NAME.fullmatch(key) or not directory.has(key):
        return None
    return str(directory.path / f"{key}.pub")


def _doubt(spot: Spot, site: Site) -> str | None:
    """Why the policy does not let pass what was signed just now; ``None`` where it does, and where
    there is none. It may want other keys, too: that is no failure of who signs first."""
    try:
        verify_at(spot, site, by_policy(site, spot))
    except UsageError:  # there is no policy
        return None
    except (PolicyError, IntegrityError, ProjectError, UnsignedError) as error:
        return error.message
    return None
