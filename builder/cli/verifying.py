"""An image held to what vouches for it, wherever it is: for people, and for container engines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.keys.directory import NAME
from builder.adapters.keys.signers import read_public_file
from builder.cli.keyring import directory_of
from builder.cli.places import Spot
from builder.cli.site import Site
from builder.cli.trust_policy import trusting
from builder.digest import Digest
from builder.errors import IntegrityError, UsageError
from builder.keys.public import PublicKey
from builder.oci import Index, Platform
from builder.reference import Reference
from builder.signatures.place import Place
from builder.statements import Kind
from builder.verification.verify import Enough, Verified, any_of, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """The keys that may vouch for images of a place, and how many of them it takes for one."""

    keys: Sequence[PublicKey]
    enough: Callable[[Digest], Enough]


def by_keys(names: Sequence[str], site: Site) -> Trusted:
    """Those that a person names, by file or as ``builder key`` knows them: any one will do.

    Raises:
        UsageError: There is neither a file nor a key of a name.
        IntegrityError: It is no public key.
    """
    given = tuple(_public(name, site) for name in names)
    return Trusted(keys=given, enough=lambda _: any_of(given))


def _public(name: str, site: Site) -> PublicKey:
    file = Path(name)
    if name and file.exists():
        return read_public_file(file)
    directory = directory_of(site.settings)
    own = name.removesuffix(".pub")
    if NAME.fullmatch(own) and directory.has(own):
        return directory.entry(own).public
    raise UsageError(
        f"--key: there is no file {name!r}, and no key of that name in {directory.path}",
        hint="builder key list has their names",
    )


def by_policy(site: Site, spot: Spot) -> Trusted:
    """Those of the project's trust policy.

    Raises:
        UsageError: There is none.
        UntrustedError, ExpiredError: It does not hold here.
    """
    policy = trusting(site)
    from builder.trust.judge import enough_for, public_keys

    repository = None if spot.layers is not None else Reference.parse(spot.repository)
    return Trusted(
        keys=public_keys(policy),
        enough=lambda image: enough_for(
            policy, image=image, repository=repository, today=site.today
        ),
    )


def verify_at(
    spot: Spot, site: Site, trusted: Trusted, *, demanded: Sequence[Kind] = tuple(Kind)
) -> Verified:
    """Verify the image of the platform; of an index also that somebody signed the index: whoever
    pulls it chooses among what it lists, and not as we do.

    Raises:
        GoneError: There is no such image.
        IntegrityError: The index lies about it. And as :func:`builder.verification.verify.verify`.
    """
    top = spot.image()
    place, image = spot.open(), top.digest
    if isinstance(top, Index):
        enough = trusted.enough(image)
        verify(image, place, keys=trusted.keys, enough=enough, demanded=())
        image = _member(top, place, site.platform, at=spot.reference)
    return verify(
        image,
        place,
        keys=trusted.keys,
        enough=trusted.enough(image),
        demanded=demanded,
        at_hand=lambda digest: spot.at_hand(digest, site.store),
    )


def _member(index: Index, place: Place, platform: Platform, *, at: str) -> Digest:
    """The image of a platform, held to the word of the index about it: engines go by that."""
    entry = index.select(platform, at=at)
    found = place.manifest(entry.digest)
    said = entry.media_type, f"{entry.size} bytes"
    for told, got in zip(said, (found.media_type, f"{len(found.raw)} bytes"), strict=True):
        if told != got:
            raise IntegrityError(f"{place.at(entry.digest)}: the index says {told}, it is {got}")
    return entry.digest
