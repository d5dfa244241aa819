"""A signature that lies beside an image, as somebody put it there."""

from enum import StrEnum
from typing import TypeAlias

from builder.attest import statement
from builder.attest.dsse import Envelope
from builder.attest.statement import Statement
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.keys.public import PublicKey
from builder.sigstore import simple_signing
from builder.sigstore.simple_signing import SimpleSigning
from builder.value import field, value


class Kind(StrEnum):
    """The forms of signatures, as results name them."""

    SIMPLE_SIGNING = "simple-signing"
    DSSE_ATTACHMENT = "dsse-attachment"
    BUNDLE = "bundle"


Said: TypeAlias = Statement | SimpleSigning
"""What is signed: a statement, or the older form of "this is the image of that name"."""


@value
class Found:
    """One signature, by an unknown key, over bytes that nobody has read yet.

    The claims in it come out of :meth:`read` alone, which takes the key that vouches for them.
    ``hint`` and ``at`` are nobody's word: they may choose which key is tried first, and stand in
    messages.
    """

    kind: Kind
    image: Digest
    """The image that it was found at: the one that was asked for, not one that it names."""
    signed: bytes = field(repr=False)
    """The exact bytes that the signature is over: the payload, or an envelope's encoding (PAE)."""
    signature: bytes = field(repr=False)
    hint: str
    """How it names its key: a fingerprint or a bundle's hint, empty where it does not."""
    at: str
    """Where it lies, for messages."""
    envelope: Envelope | None = field(default=None, repr=False)
    """Where ``signed`` is that of an envelope: what :meth:`read` reads. Not verified."""

    def made_by(self, key: PublicKey) -> bool:
        """Whether this is the key's signature. Thresholds count keys that this holds for, never
        signatures: of one ECDSA signature anybody makes a second."""
        return key.verifies(self.signature, self.signed)

    def read(self, key: PublicKey) -> Said:
        """What ``key`` says with it about ``image``.

        Raises:
            IntegrityError: It is not the key's signature; what is signed cannot be read, or in more
                than one way; it is about another image.
        """
        if not self.made_by(key):
            raise IntegrityError(f"{self.at}: not a signature of {key.fingerprint}")
        if self.envelope is None:
            said: Said = simple_signing.parse(self.signed, at=self.at)
        else:
            said = statement.parse(self.envelope, at=self.at)
        if not said.about(self.image):
            raise IntegrityError(
                f"{self.at}: a signature of {key.fingerprint}, but about another image than"
                f" {self.image}: {_subjects(said)}"
            )
        return said


def _subjects(said: Said) -> str:
    if isinstance(said, SimpleSigning):
        return str(said.digest)
    shown = ", ".join(str(subject.digest) for subject in said.subjects[:3])
    return shown if len(said.subjects) <= 3 else f"{shown} and {len(said.subjects) - 3} more"
