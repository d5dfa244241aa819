"""Sign an image where it was published: for ``sign``, and for builds that do it at once."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import notes
from builder.adapters.keys.directory import NAME
from builder.build_record import recorded
from builder.cli.keyring import directory_of, keyring_of
from builder.cli.places import Spot
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
from builder.oci import Descriptor, Index, Manifest
from builder.sign import sign, signables
from builder.signatures.publish import Published
from builder.statements import statements
from builder.trust.export.containerd import DIRECTORY
from builder.trust.names import FILE

if TYPE_CHECKING:
    from builder.cli.notation import Notarised, Notary

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
    notarised: "Notarised | None" = None
    """What was signed for Notation, where that was asked for."""

    def document(self) -> dict[str, Any]:
        """For ``--json``."""
        more = {} if self.notarised is None else {"notation": self.notarised.document()}
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
            **more,
        }

    def text(self) -> str:
        """For people."""
        counts = (
            f"{len(self.published.added)} signatures added, {self.published.present} were there"
        )
        text = f"{self.spot.reference}: {counts}; verified"
        text += f"\nsigned by {self.signer.public.fingerprint}"
        if self.doubt is not None:
            text += f"\nby {FILE} it does not pass yet: {self.doubt}"
        return text if self.notarised is None else f"{text}\n{self.notarised.text()}"

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
        by files, not by a key that is named. They read registries alone. What no scope has is to be
        refused, or it would seem to be verified; podman's own policy.json stays as it is.
        """
        if self.spot.layers is not None:
            return ()
        image = f"{self.spot.repository}@{self.images[0].digest}"
        attachments = "containers/registries.d/builder.yaml /etc/containers/registries.d/"
        exported = "--policy containers/policy.json --registries.d containers/registries.d"
        return (
            "builder trust export --format containers --reject --out containers",
            f"skopeo {exported} copy --remove-signatures docker://{image} dir:copy",
            f"cp {attachments}",
            f"podman pull --signature-policy containers/policy.json {image}",
            "builder trust export --format containerd --out containerd",
            f"cp containerd/bin/builder {DIRECTORY}/ && ctr image pull {image}",
        )

    def aside(self) -> Sequence[str]:
        """The commands, with what they want."""
        if self.key is not None:
            return self.commands()
        return (f"with the public key in {PUBLIC} (builder key export):", *self.commands())


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSigner:
    """A signer of images with all that is said of them. ``key`` is what a person calls it."""

    site: Site
    key: str
    signer: Signer
    notary: "Notary | None" = None

    def sign(self, image: Digest, spot: Spot) -> Signed:
        """Sign an image that was built here, where it is, and all that is to be said of it.

        Raises:
            GoneError: There is nothing.
            IntegrityError: Another image is there, or an index that lists another one than were
                built here.
        """
        site = self.site
        top = spot.image()
        members = {item.digest for item in top.manifests} if isinstance(top, Index) else set()
        said = {
            item: statements(recorded(item, site.store), name=spot.repository)
            for item in (image, *sorted(members - {image}, key=str))
            if item == image or site.store.note(notes.IMAGE, item.hex) is not None
        }
        signable = signables(top, said, reference=spot.reference, name=spot.name)
        published, _ = sign(signable, self.signer, place=spot.open(), again=spot.open())
        images = tuple(item.image for item in signable)
        return Signed(
            spot=spot,
            images=images,
            signer=self.signer,
            published=published,
            key=_public_file(self.key, site),
            doubt=_doubt(spot, site, top),
            notarised=None if self.notary is None else self.notary.sign(spot, images),
        )


def image_signer(
    site: Site,
    key: str,
    *,
    public: Path | None = None,
    allow_plaintext: bool = False,
    notation: Path | None = None,
) -> ImageSigner:
    """The signer that a person names, with a certificate for Notation. Whoever builds opens it
    first: a wrong password, or a certificate that does not fit, is known before hours of work."""
    signer = keyring_of(site.settings, allow_plaintext=allow_plaintext).signer(key, public=public)
    return ImageSigner(
        site=site,
        key=key,
        signer=signer,
        notary=None if notation is None else _notary(signer, notation),
    )


def _notary(signer: Signer, certificate: Path) -> "Notary":
    from builder.cli.notation import notary_of

    return notary_of(signer, certificate)


def _public_file(key: str, site: Site) -> str | None:
    """The file of the public half of a key of ``builder key``."""
    directory = directory_of(site.settings)
    if not NAME.fullmatch(key) or not directory.has(key):
        return None
    return str(directory.path / f"{key}.pub")


def _doubt(spot: Spot, site: Site, top: Manifest | Index) -> str | None:
    """Why the policy does not let pass what was signed just now (whatever the tag stands for by
    now); ``None`` where it does, and where there is none. It may want other keys, too: that is no
    failure of who signs first."""
    try:
        verify_at(spot, site, by_policy(site, spot), top=top)
    except UsageError:  # there is no policy
        return None
    except (PolicyError, IntegrityError, ProjectError, UnsignedError) as error:
        return error.message
    return None
