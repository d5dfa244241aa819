"""An image held to what vouches for it, wherever it is: for people, and for container engines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.adapters.keys.directory import NAME, KeptKey, KeyDirectory
from builder.adapters.keys.signers import read_public_file
from builder.cli.keyring import directory_of
from builder.cli.places import Spot
from builder.cli.site import Site
from builder.cli.trust_policy import trusting
from builder.digest import Digest
from builder.errors import IntegrityError, UsageError
from builder.keys.public import PublicKey
from builder.oci import Index, Manifest, Platform
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
        UsageError: There is neither a file nor a key of a name, or both, and they differ.
        PolicyError: It is a key of ``builder key`` that is revoked.
        IntegrityError: It is no public key.
    """
    given = tuple(_public(name, site) for name in names)
    return Trusted(keys=given, enough=lambda _: any_of(given))


def _public(name: str, site: Site) -> PublicKey:
    file, directory = Path(name), directory_of(site.settings)
    given = read_public_file(file) if name and file.exists() else None
    kept = _kept(name, directory)
    if given is not None and kept is not None and given != kept.public:
        raise UsageError(
            f"--key: {name!r} is a file here, {given.fingerprint}, and another key in"
            f" {directory.path}, {kept.public.fingerprint}",
            hint=f"./{name} is the file, and {directory.path / kept.name}.pub the other",
        )
    found = given or (None if kept is None else kept.public)
    if found is None:
        raise UsageError(
            f"--key: there is no file {name!r}, and no key of that name in {directory.path}",
            hint="builder key list has their names",
        )
    return found


def _kept(name: str, directory: KeyDirectory) -> KeptKey | None:
    """The key of ``builder key`` that is called so, by its name or by its file there."""
    own = Path(name).name.removesuffix(".pub")
    if "/" in name and Path(name) != directory.path / f"{own}.pub":
        return None
    return directory.usable(own) if NAME.fullmatch(own) and directory.has(own) else None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What passed: an image, and the index that it was chosen from, if it was."""

    image: Verified
    index: Verified | None = None

    @property
    def top(self) -> Verified:
        """What the reference stood for."""
        return self.index or self.image

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be told of either, once."""
        told = () if self.index is None else self.index.remarks
        return tuple(dict.fromkeys((*told, *self.image.remarks)))


def verify_at(
    spot: Spot,
    site: Site,
    trusted: Trusted,
    *,
    top: Manifest | Index,
    demanded: Sequence[Kind] = tuple(Kind),
) -> Passed:
    """Verify the image of the platform; of an index also that somebody signed the index: whoever
    pulls it chooses among what it lists, and not as we do.

    Args:
        top: What the reference stands for. It is read once, by the caller: a tag may stand for
            something else a moment later.

    Raises:
        IntegrityError: The index lies about it. And as :func:`builder.verification.verify.verify`.
    """
    place, image = spot.open(), top.digest
    index: Verified | None = None
    if isinstance(top, Index):
        enough = trusted.enough(image)
        index = verify(image, place, keys=trusted.keys, enough=enough, demanded=())
        image = _member(top, place, site.platform, at=spot.reference)
    verified = verify(
        image,
        place,
        keys=trusted.keys,
        enough=trusted.enough(image),
        demanded=demanded,
        at_hand=lambda digest: spot.at_hand(digest, site.store),
    )
    return Passed(image=verified, index=index)


def _member(index: Index, place: Place, platform: Platform, *, at: str) -> Digest:
    """The image of a platform, held to the word of the index about it: engines go by that."""
    entry = index.select(platform, at=at)
    found = place.manifest(entry.digest)
    said = entry.media_type, f"{entry.size} bytes"
    for told, got in zip(said, (found.media_type, f"{len(found.raw)} bytes"), strict=True):
        if told != got:
            raise IntegrityError(f"{place.at(entry.digest)}: the index says {told}, it is {got}")
    if isinstance(found, Index):
        raise IntegrityError(
            f"{place.at(entry.digest)}: an index in an index, and no image of {platform}",
            hint="name what is meant by its digest",
        )
    return entry.digest
