"""Sign an image where it was published, and look whether that holds."""

from collections.abc import Mapping, Sequence

from builder.attest.statement import Statement
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.keys.signer import Signer
from builder.oci import Index, Manifest
from builder.signatures.place import Place
from builder.signatures.publish import Published, Signable, publish
from builder.verification.verify import Verified, any_of, verify


def sign(
    images: Sequence[Signable], signer: Signer, *, place: Place, again: Place
) -> tuple[Published, tuple[Verified, ...]]:
    """Sign ``images`` in ``place``; then verify those that something is said of, as anybody would.

    Args:
        images: See :func:`signables`.
        again: The same place, opened anew: nothing that was written is believed to be there.

    Raises:
        IntegrityError: What was published does not hold.
        NetworkError, EnvironmentFault: As of the place and the signer.
    """
    published = publish(images, signer, place)
    enough = any_of([signer.public])
    verified = tuple(
        verify(item.image.digest, again, keys=[signer.public], enough=enough)
        for item in images
        if item.statements
    )
    return published, verified


def signables(
    top: Manifest | Index,
    statements: Mapping[Digest, tuple[Statement, ...]],
    *,
    reference: str,
) -> tuple[Signable, ...]:
    """What is to be signed of ``reference``: the image, or the index and each of its members, since
    some readers look at one and some at the other.

    Args:
        top: What the reference names now.
        statements: What is said of which image: of one of these, at least.

    Raises:
        IntegrityError: It names other images than those that something is to be said of.
    """
    members = top.manifests if isinstance(top, Index) else ()
    images = (top.descriptor, *members)
    there = {image.digest for image in images}
    if missing := [str(digest) for digest in statements if digest not in there]:
        raise IntegrityError(
            f"{reference} is {top.digest}, and {', '.join(missing)} is not in it",
            hint="what was built here is not what is published there: builder push, then sign",
        )
    return tuple(
        Signable(image=image, reference=reference, statements=statements.get(image.digest, ()))
        for image in images
    )
