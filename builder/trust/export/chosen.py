"""What of a policy can be exported at all."""

from collections.abc import Iterator, Sequence
from datetime import date

from builder.errors import PolicyError
from builder.reference import DOCKER_HUB, HUB_ALIASES
from builder.trust.model import KeyState, Policy, Role, TrustedKey
from builder.trust.names import FILE
from builder.trust.scope import EVERYTHING
from builder.value import value

OFFICIAL = "library/"
"""Where Docker Hub has what is called by a name alone."""
_SPELT = "a registry that is spelt in another way (upper case, :443) is another one there"


@value
class Chosen:
    """A pattern of a repository (:mod:`builder.trust.scope`), and who signs its images."""

    repository: str
    role: Role
    keys: tuple[TrustedKey, ...]
    """Those that count today."""


@value
class Export:
    """Files by their names, and what stands in none of them."""

    files: dict[str, bytes]
    remarks: tuple[str, ...]


def chosen(policy: Policy, today: date) -> tuple[Chosen, ...]:
    """Every pattern with its keys of today, in the order of the file.

    Raises:
        PolicyError: A role has fewer keys today than have to sign.
    """
    found = []
    for scope in policy.scopes:
        role = policy.roles[scope.role]
        keys = tuple(key for key in policy.keys_of(role) if _counts(key, today))
        if len(keys) < role.threshold:
            raise PolicyError(
                f"{role.at}: {len(keys)} keys count today, and {role.threshold} have to sign:"
                " no image could pass",
                hint=f"give the role more keys: builder trust new begins a version of {FILE}",
            )
        found += [Chosen(repository=one, role=role, keys=keys) for one in scope.repositories]
    return tuple(found)


def spelt_otherwise(scopes: Sequence[Chosen], *, reject: bool) -> Iterator[str]:
    """What becomes of names that mean a place and are not its one spelling.

    Args:
        reject: Whether what no scope has is refused there.
    """
    if all(item.repository != EVERYTHING for item in scopes):
        if not reject:
            yield f"{_SPELT}, and its images pass unseen: --reject refuses them"
    elif len(scopes) > 1:
        yield f"{_SPELT}, and its images are held to {EVERYTHING!r} alone"


def hub_spellings(pattern: str, *, short: bool = True) -> tuple[str, ...]:
    """A pattern of Docker Hub under each of the Hub's hosts: no reader of policies takes all of
    them for one. Others are as they are.

    Args:
        short: Also without ``library/``.

    >>> hub_spellings("registry.example/a")
    ('registry.example/a',)
    """
    registry, _, path = pattern.partition("/")
    if registry != DOCKER_HUB:
        return (pattern,)
    name = path.removeprefix(OFFICIAL)
    paths = (path, name) if short and name not in {path, "*"} and "/" not in name else (path,)
    return tuple(f"{host}/{each}" for host in sorted(HUB_ALIASES) for each in paths)


def remarks(policy: Policy, today: date) -> tuple[str, ...]:
    """What the words of no other tool say."""
    return tuple(_remarks(policy, today))


def _remarks(policy: Policy, today: date) -> Iterator[str]:
    yield f"a copy of version {policy.version}: it still holds when that expires, {policy.expires}"
    if policy.grandfathered:
        yield f"{len(policy.grandfathered)} grandfathered digests are left out"
    for key in policy.keys.values():
        if not _counts(key, today):
            yield f"key {key.name!r} is left out: {key.state}, or not in its days"
        elif key.until is not None:
            yield f"key {key.name!r} counts to {key.until}, and in the copy for good"


def _counts(key: TrustedKey, today: date) -> bool:
    return key.state is KeyState.ACTIVE and key.in_its_days(today)
