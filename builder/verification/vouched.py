"""What keys vouch for, among all the signatures that lie beside an image."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from builder.attest.statement import Statement
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.keys.public import PublicKey
from builder.signatures.found import Found, Said
from builder.value import value


@value
class Vouched:
    """Something that is said of an image, and the keys that signed these very bytes.

    Keys are counted, never signatures: of one ECDSA signature anybody makes a second.
    """

    said: Said
    keys: tuple[PublicKey, ...]

    @property
    def predicate_type(self) -> str | None:
        """``None`` for what is no statement."""
        return self.said.predicate_type if isinstance(self.said, Statement) else None


@value
class Examined:
    """All signatures of an image, examined.

    ``doubtful`` are sentences about signatures that name a key of ours and are not its, or are its
    and say something else than they should: those are told, whatever else vouches for the image.
    ``strangers`` counts the signatures that no key of ours made.
    """

    vouched: tuple[Vouched, ...] = ()
    doubtful: tuple[str, ...] = ()
    strangers: int = 0


def examine(found: Sequence[Found], keys: Iterable[PublicKey]) -> Examined:
    """Check every signature with every key, and read what is signed by one of them."""
    known = tuple(dict.fromkeys(keys))
    # Bytes that are read in two ways are two things: an envelope's encoding beside the image as if
    # it were the older form is no reason to pass by the envelope.
    made: dict[tuple[bool, bytes], list[PublicKey]] = {}
    first: dict[tuple[bool, bytes], Found] = {}
    doubtful: list[str] = []
    strangers = 0
    for item in found:
        makers = [key for key in known if item.made_by(key)]
        named = [key for key in known if item.hint in (key.fingerprint, key.hint)]
        if not makers:
            strangers += not named
            doubtful += [f"{item.at}: not a signature of {key.fingerprint}" for key in named]
            continue
        what = (item.envelope is None, item.signed)
        first.setdefault(what, item)
        held = made.setdefault(what, [])
        held += [key for key in makers if key not in held]
    vouched = []
    for what, held in made.items():
        try:
            said = first[what].read(held[0])
        except IntegrityError as error:
            doubtful.append(error.message)
            continue
        vouched.append(Vouched(said=said, keys=tuple(held)))
    return Examined(vouched=tuple(vouched), doubtful=tuple(doubtful), strangers=strangers)


def by_repository(image: Digest, said: Iterable[Vouched]) -> tuple[Vouched, ...]:
    """What says no more than "this is the image", each repository's together: a signature is for a
    repository and a digest, so that keys add up whatever the form and the tag that they signed. One
    that says more beside it needs its own keys.

    Args:
        image: What all of it is about.
    """
    found: dict[tuple[str, str], Vouched] = {}
    for item in said:
        what = _repository(image, item.said), _more(item.said)
        first = found.get(what, item)
        found[what] = replace(first, keys=tuple(dict.fromkeys((*first.keys, *item.keys))))
    return tuple(found.values())


def _repository(image: Digest, said: Said) -> str:
    """What the image is called, without a tag and without a digest; empty where it has no name."""
    if isinstance(said, Statement):
        name = next(subject.name for subject in said.subjects if subject.digest == image)
    else:
        name = said.reference
    name = name.partition("@")[0]
    repository, _, tag = name.rpartition(":")
    return repository if repository and "/" not in tag else name


def _more(said: Said) -> str:
    return json.dumps(said.predicate if isinstance(said, Statement) else {}, sort_keys=True)
