"""What containerd asks a verifier of images, and what it is told.

The plugin starts ``PROGRAM -name NAME -digest DIGEST -stdin-media-type TYPE`` with the descriptor's
manifest on stdin, waits, and takes exit status 0 for yes; stdout is the reason, which it logs and
cuts at 32 KiB. stdin may be left unread. Who verifies is an argument: :class:`Verify`.
"""

from typing import Protocol

from builder.digest import Digest
from builder.errors import BuilderError, UsageError
from builder.reference import Reference
from builder.value import value

REASON_LIMIT = 4096


@value
class Asked:
    """An image that is about to be pulled."""

    reference: Reference
    """As the user named it."""
    digest: Digest
    """What that name led to: an index, or a manifest."""


class Verify(Protocol):
    """The seam: a verification that knows the project's policy."""

    def __call__(self, asked: Asked, /) -> str:
        """Say who vouches for the image, in a line.

        Raises:
            BuilderError: It does not pass, or that cannot be found out.
        """


@value
class Answer:
    """What the program ends with."""

    status: int
    reason: str


def question(name: str, digest: str) -> Asked:
    """What the arguments mean.

    Raises:
        UsageError: A name that is no reference, or names another digest; a digest that is none.
    """
    found = Digest.parse(digest, at="-digest", refusal=UsageError)
    reference = Reference.parse(name, at="-name")
    if reference.digest is not None and reference.digest != found:
        raise UsageError(f"-name: {name!r} is not {found}")
    return Asked(reference=reference, digest=found)


def answer(name: str, digest: str, verify: Verify) -> Answer:
    """Whether the image may be pulled. Whatever goes wrong, it may not: also what nobody foresaw
    ends the program with another status than 0. Hints are left out: they are for whoever types a
    command, and this is read in the log of an engine."""
    try:
        reason, status = verify(question(name, digest)), 0
    except BuilderError as error:
        reason, status = error.message, error.exit_status
    line = " ".join(reason.split())
    return Answer(status=status, reason=line[:REASON_LIMIT])
