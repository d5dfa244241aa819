"""What makes signatures: a private key at hand, or somebody who keeps it."""

from typing import Protocol

from builder.keys.public import PublicKey


class Signer(Protocol):
    """The private half of a key, wherever it is.

    Implemented in ``builder.adapters.keys``: a key file, whose password is asked for once; a
    command that signs for a key it keeps (KMS, HSM).
    """

    @property
    def public(self) -> PublicKey:
        """Its public half."""

    def sign(self, message: bytes) -> bytes:
        """The signature over ``message`` (not over its hash): the same one each time, if the key
        is at hand. DER for ECDSA, 64 bytes for Ed25519.

        Raises:
            EnvironmentFault: Whoever keeps the key does not answer.
            IntegrityError: What was answered is not this key's signature.
        """
