"""``trust.yaml``: bytes to a policy.

Names are for people: a key is what its bytes are, and its fingerprint is made of them. Where the
file writes one down for reviewers, it is compared.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.keys.public import PublicKey, read_public_key
from builder.lock.codec_waivers import day
from builder.node import (
    Cursor,
    any_text,
    did_you_mean,
    digest,
    each,
    name,
    nearest,
    positive,
    sequence_of,
    shortened,
    some_of,
    text,
    unique,
    word,
)
from builder.trust.model import KeyState, Policy, Role, Scope, TrustedKey
from builder.trust.names import FILE, LONGEST_WAIVER, RESERVED, ROOT
from builder.trust.scope import pattern

SIZE_LIMIT = 64 << 10
"""The most bytes of a policy: each of its signatures holds them all."""
KEY_COUNT_LIMIT = 64


def read_policy(data: bytes, *, file: str = FILE) -> Policy:
    """The policy in ``data``.

    Raises:
        ProjectError: It is none, or one that cannot be met or contradicts itself: a key twice, a
            threshold that the keys of its role cannot reach, a name that nothing has.
    """
    root = Cursor.open(data, file=file)
    if len(data) > SIZE_LIMIT:
        raise root.error(f"{len(data)} bytes, the limit is {SIZE_LIMIT}")
    version, expires = root.take("version", positive), root.take("expires", _day)
    keys = root.take("keys", _keys)
    roles = root.take("roles", _roles(keys))
    policy = Policy(
        version=version,
        expires=expires,
        keys=keys,
        roles=roles,
        scopes=root.take("scopes", _scopes(roles)),
        grandfathered=root.default("grandfathered", _digests, frozenset()),
        longest_waiver=timedelta(days=root.default("waivers", _waivers, LONGEST_WAIVER)),
    )
    root.done()
    return policy


def _day(node: Cursor) -> date:
    written = text(node)
    found = day(written)
    if found is None:
        raise node.error(
            f"expected a day of the calendar, got {shortened(written)!r}",
            hint="for example 2027-12-31; it is the last one, to its end in UTC",
        )
    return found


def _keys(node: Cursor) -> Mapping[str, TrustedKey]:
    found = each(name, _key)(node)
    if not 0 < len(found) <= KEY_COUNT_LIMIT:
        raise node.error(f"expected 1 to {KEY_COUNT_LIMIT} keys, got {len(found)}")
    first: dict[PublicKey, TrustedKey] = {}
    for key in found:
        if (other := first.setdefault(key.public, key)) is not key:
            child = node.key(key.name)
            raise child.error(
                f"the same key as {other.name!r}: {key.public.fingerprint}",
                hint="one key under two names would count twice",
            )
    return {key.name: key for key in found}


def _key(key: str, node: Cursor) -> TrustedKey:
    public = node.take("public", _public)
    written = node.optional("fingerprint", lambda child: (child, text(child)))
    if written is not None and written[1] != public.fingerprint:
        raise written[0].error(
            f"expected {public.fingerprint}, which is that of the key, got"
            f" {shortened(written[1])!r}",
            hint="compare the key with what its owner shows: ssh-keygen -lf FILE",
        )
    state = KeyState(node.take("state", word(*map(str, KeyState))))
    since, until = node.optional("since", _day), node.optional("until", _day)
    if state is not KeyState.ACTIVE and (since or until):
        raise node.error(f"a key that is {state} has no days", hint="leave 'since' and 'until' out")
    if since and until and until < since:
        raise node.error(f"its last day, {until}, is before its first, {since}")
    found = TrustedKey(
        name=key,
        public=public,
        owner=node.take("owner", text),
        state=state,
        since=since,
        until=until,
        at=node.at,
    )
    node.done()
    return found


def _public(node: Cursor) -> PublicKey:
    try:
        return read_public_key(any_text(node).strip().encode() + b"\n", at=node.at)
    except IntegrityError as error:
        found = node.error("", hint=error.hint)
        found.message = error.message
        raise found from error


def _roles(keys: Mapping[str, TrustedKey]) -> Callable[[Cursor], Mapping[str, Role]]:
    def role(key: str, node: Cursor) -> Role:
        found = Role(
            name=key,
            keys=node.take("keys", unique(some_of(_one_of(keys, "key")))),
            threshold=node.take("threshold", positive),
            at=node.at,
        )
        node.done()
        usable = found.keys
        if key == ROOT:
            _refuse_days(node, found, keys)
            usable = tuple(one for one in usable if keys[one].state is KeyState.ACTIVE)
        if found.threshold > len(usable):
            raise node.error(
                f"threshold {found.threshold}, and {len(usable)} keys"
                f"{' that are active' if key == ROOT else ''}: it can never be met"
            )
        return found

    def read(node: Cursor) -> Mapping[str, Role]:
        found = {item.name: item for item in each(name, role)(node)}
        if ROOT not in found:
            raise node.error(f"no role {ROOT!r}", hint="it signs this file and its next version")
        return found

    return read


def _refuse_days(node: Cursor, role: Role, keys: Mapping[str, TrustedKey]) -> None:
    for one in role.keys:
        if keys[one].since or keys[one].until:
            raise node.error(
                f"key {one!r} has days, and no key of the role {ROOT!r} can have any",
                hint="whoever was away must still be able to follow the versions; 'expires' is the"
                " end of all",
            )


def _scopes(roles: Mapping[str, Role]) -> Callable[[Cursor], tuple[Scope, ...]]:
    signing = {key: item for key, item in roles.items() if key not in RESERVED}

    def scope(node: Cursor) -> Scope:
        found = Scope(
            repositories=node.take("repositories", some_of(pattern)),
            role=node.take("role", _one_of(signing, "role for images")),
            at=node.at,
        )
        node.done()
        return found

    def read(node: Cursor) -> tuple[Scope, ...]:
        found = some_of(scope)(node)
        seen: dict[str, str] = {}
        for item in found:
            for one in item.repositories:
                if (first := seen.setdefault(one, item.at)) is not item.at:
                    raise node.error(f"{one!r} stands twice: {first} and {item.at}")
            if len(set(item.repositories)) < len(item.repositories):
                raise node.error(f"{item.at}: a repository stands twice")
        return found

    return read


def _digests(node: Cursor) -> frozenset[Digest]:
    found = sequence_of(digest)(node)
    if len(set(found)) < len(found):
        twice = next(item for item in found if found.count(item) > 1)
        raise node.error(f"{twice} stands twice")
    return frozenset(found)


def _waivers(node: Cursor) -> int:
    days = node.take("days", positive)
    if days > LONGEST_WAIVER:
        raise node.error(f"days: expected 1 to {LONGEST_WAIVER}, got {days}")
    node.done()
    return days


def _one_of(known: Iterable[str], what: str) -> Callable[[Cursor], str]:
    names = tuple(known)

    def read(node: Cursor) -> str:
        value = name(node)
        if value not in names:
            raise node.error(
                f"no {what} {value!r} in this file",
                hint=did_you_mean(nearest(value, names)) or f"there are {', '.join(names)}",
            )
        return value

    return read
