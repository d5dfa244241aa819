"""Sign an image where it was published, and look whether that holds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from builder.attest.statement import Statement
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.keys.signer import Signer
from builder.oci import Descriptor, Index, Manifest, Platform
from builder.quoting import plain
from builder.signatures.place import Place
from builder.signatures.publish import Published, Signable, publish
from builder.statements import PREDICATE_TYPES, Kind
from builder.verification.verify import Verified, any_of, verify


def sign(
    images: Sequence[Signable], signer: Signer, *, place: Place, again: Place
) -> tuple[Published, tuple[Verified, ...]]:
    """Sign ``images`` in ``place``; then verify them as anybody would.

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
        verify(
            item.image.digest,
            again,
            keys=[signer.public],
            enough=enough,
            demanded=tuple(Kind) if item.statements else (),
        )
        for item in images
    )
    return published, verified


def signables(
    top: Manifest | Index,
    statements: Mapping[Digest, tuple[Statement, ...]],
    *,
    reference: str,
    name: str,
) -> tuple[Signable, ...]:
    """What is to be signed of ``reference``: the image, or the index and each of its members, since
    some readers look at one and some at the other.

    Args:
        top: What the reference names now.
        statements: What is said of which image, by whoever built it.
        reference: For messages.
        name: What the signatures call it.

    Raises:
        IntegrityError: It names other images than those that something is to be said of, one for
            another platform or of another variant, or two for one platform: who replaces an index
            between push and sign must not get a signature for what he added, nor for an older
            image in the place of the one that is signed.
    """
    members = top.manifests if isinstance(top, Index) else ()
    images = (top.descriptor, *members)
    there = {image.digest for image in images}
    if missing := [str(digest) for digest in statements if digest not in there]:
        raise IntegrityError(
            f"{reference} is {top.digest}, and {', '.join(missing)} is not in it",
            hint="what was built here is not what is published there: builder push, then sign",
        )
    if foreign := [str(item.digest) for item in members if item.digest not in statements]:
        raise IntegrityError(
            f"{reference} lists {', '.join(foreign)}, which was not built here",
            hint="an index is signed with all that is in it: build those, too (--platform), or look"
            " at who may push there",
        )
    _check_members(members, statements, reference=reference)
    return tuple(
        Signable(image=image, reference=name, statements=statements.get(image.digest, ()))
        for image in images
    )


def _check_members(
    members: Sequence[Descriptor],
    statements: Mapping[Digest, Sequence[Statement]],
    *,
    reference: str,
) -> None:
    hint = "look at who may push there; builder push, then sign"
    variants: dict[str, Digest] = {}
    platforms: dict[str, Digest] = {}
    for member in members:
        for said in _manifest_statements(statements[member.digest]):
            built, name = Platform.parse(said["platform"]), said["variant"]["name"]
            _check_platform(member, built, reference=reference, hint=hint)
            if (other := platforms.setdefault(str(built), member.digest)) != member.digest:
                raise IntegrityError(
                    f"{reference} lists {other} and {member.digest}, both for {built}: an engine"
                    " would take either",
                    hint=hint,
                )
            variants.setdefault(name, member.digest)
    if len(variants) > 1:
        told = ", ".join(f"{digest} of {name!r}" for name, digest in variants.items())
        raise IntegrityError(f"{reference} lists images of several variants: {told}", hint=hint)


def _manifest_statements(statements: Sequence[Statement]) -> Iterator[Mapping[str, Any]]:
    for item in statements:
        if item.predicate_type == PREDICATE_TYPES[Kind.MANIFEST]:
            yield item.predicate


def _check_platform(member: Descriptor, built: Platform, *, reference: str, hint: str) -> None:
    listed = member.platform
    if listed is None or (listed.os, listed.architecture) != (built.os, built.architecture):
        raise IntegrityError(
            f"{reference} lists {member.digest} for {plain(str(listed or 'no platform'))}, and it"
            f" was built for {built}",
            hint=hint,
        )
