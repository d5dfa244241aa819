"""From the version of a policy that a machine accepted to the one that is there.

The Update Framework's rule for its root (specification, 5.3): a version counts if as many keys as
the version before it wants have signed it, and as many as it wants itself. Versions in between are
followed as far as they are kept (``trust/N.yaml``); where some are not, the newest may be signed by
the keys of the last one that is known. Nothing goes back, and no version has two texts.

That a version in between has expired means nothing: whoever was away must be able to follow.
"""

from collections.abc import Mapping
from datetime import date
from typing import Protocol

from builder.digest import Digest
from builder.errors import ExpiredError, UntrustedError
from builder.trust.codec import read_policy
from builder.trust.model import Policy, TrustedKey
from builder.trust.names import FILE, PAYLOAD_TYPE, SIGNATURES
from builder.trust.signatures import read_signatures, signers
from builder.value import field, value

LOOK = "builder trust show says what there is"


@value
class Text:
    """A version of a policy as a file, with what stands beside it."""

    file: str
    raw: bytes = field(repr=False)
    signatures: bytes | None = field(default=None, repr=False)


@value
class Versions:
    """What a project has of its policy."""

    latest: Text | None
    history: Mapping[int, Text] = field(default_factory=dict)
    """Earlier ones, by the number in their name."""

    @property
    def texts(self) -> tuple[Text, ...]:
        """All of them, the one that is there now first."""
        newest = () if self.latest is None else (self.latest,)
        return (*newest, *self.history.values())


class Memory(Protocol):
    """What a user accepted, by project. Implemented in ``builder.adapters.trust``."""

    def recall(self) -> bytes | None:
        """The text of the highest version that was accepted; ``None`` where none was.

        Raises:
            EnvironmentFault, IntegrityError: There is one, and it cannot be read.
        """

    def remember(self, raw: bytes) -> None:
        """Keep the text of an accepted version. A higher one that somebody else kept meanwhile
        stays.

        Raises:
            EnvironmentFault: It cannot be written.
        """


@value
class Accepted:
    """The policy that holds, and the versions that led to it (of which the last is that one, where
    it is new)."""

    policy: Policy
    raw: bytes = field(repr=False)
    steps: tuple[int, ...] = ()


def follow(versions: Versions, known: bytes) -> Accepted:
    """Go from ``known``, a version that was accepted, to the newest that is there.

    Raises:
        UntrustedError: It is gone, older, another text of the same version, or not signed as it
            must be.
        SignatureError: A file of signatures is damaged.
        ProjectError: A version is no policy.
    """
    before = read_policy(known, file="the accepted version")
    latest = versions.latest
    if latest is None:
        raise UntrustedError(
            f"{FILE}: gone, and version {before.version} of it was accepted here",
            hint="put it back; to live without one: builder trust forget",
        )
    if latest.raw == known:
        return Accepted(policy=before, raw=known)
    return _steps(before, _between(before, versions, latest), latest)


def _between(before: Policy, versions: Versions, latest: Text) -> tuple[Text, ...]:
    """The kept versions between, the lowest first. Of the newest, which nobody has vouched for
    yet, the number alone is used."""
    target = read_policy(latest.raw, file=latest.file).version
    if target < before.version:
        raise UntrustedError(
            f"{latest.file}: version {target}, and version {before.version} was accepted here",
            hint="an older policy may trust keys that were revoked since: get the newest",
        )
    if target == before.version:
        raise UntrustedError(
            f"{latest.file}: version {target} with another text than the one accepted here",
            hint="every change is a new version: builder trust new begins one",
        )
    numbers = sorted(number for number in versions.history if before.version < number < target)
    return tuple(versions.history[number] for number in numbers)


def _steps(before: Policy, between: tuple[Text, ...], latest: Text) -> Accepted:
    steps = []
    for text in (*between, latest):
        demand(before, text, whose=f"version {before.version}, which was accepted before it")
        policy = read_policy(text.raw, file=text.file)
        if policy.version <= before.version:
            raise UntrustedError(f"{text.file}: version {policy.version} after {before.version}")
        demand(policy, text, whose="its own")
        steps.append(policy.version)
        before = policy
    return Accepted(policy=before, raw=latest.raw, steps=tuple(steps))


def begin(versions: Versions, anchor: Digest) -> Accepted:
    """Start from the version whose bytes have this digest, and follow.

    Raises:
        UntrustedError: None has it; and as for :func:`follow`.
    """
    for text in versions.texts:
        if Digest.of(text.raw) == anchor:
            policy = read_policy(text.raw, file=text.file)
            demand(policy, text, whose="its own")
            led = follow(versions, text.raw)
            return Accepted(policy=led.policy, raw=led.raw, steps=(policy.version, *led.steps))
    raise UntrustedError(
        f"{FILE}: no version of it has the digest {anchor}",
        hint=f"compare the digest with whoever gave it; {LOOK}",
    )


def accepted(versions: Versions, *, known: bytes | None, anchor: Digest | None) -> Accepted:
    """The policy that holds: what leads from what this machine accepted, and from ``anchor``.

    Raises:
        UntrustedError: Nothing was accepted; and as for :func:`follow` and :func:`begin`.
    """
    if anchor is not None:
        begun = begin(versions, anchor)
        if known is None:
            return begun
    if known is None:
        raise UntrustedError(
            f"{FILE}: nobody has accepted this policy on this machine",
            hint="look at its keys, and accept it: builder trust init",
        )
    return follow(versions, known)


def demand(policy: Policy, text: Text, *, whose: str) -> frozenset[TrustedKey]:
    """The keys of ``policy`` that signed a version.

    Raises:
        UntrustedError: They are fewer than its role ``root`` wants.
        SignatureError: The file of signatures is damaged.
    """
    role, found = policy.root, root_signers(policy, text)
    if len(found) >= role.threshold:
        return found
    named = ", ".join(repr(key.name) for key in policy.root_keys if key not in found)
    told = f"signed by {len(found)} of {role.threshold} root keys of {whose}"
    if _stale(text):
        told += "; the signatures are of another text: it was changed after it was signed"
    raise UntrustedError(
        f"{text.file}: {told}",
        hint=f"who has not signed: {named}; builder trust sign --key NAME adds a signature",
    )


def root_signers(policy: Policy, text: Text) -> frozenset[TrustedKey]:
    """The active root keys of ``policy`` that signed a version, whoever wrote that."""
    envelopes = read_signatures(text.signatures, file=text.file + SIGNATURES)
    signed_by = signers(text.raw, PAYLOAD_TYPE, envelopes, (key.public for key in policy.root_keys))
    return frozenset(key for key in policy.root_keys if key.public in signed_by)


def _stale(text: Text) -> bool:
    envelopes = read_signatures(text.signatures, file=text.file + SIGNATURES)
    return bool(envelopes) and all(one.payload != text.raw for one in envelopes)


def check_expiry(policy: Policy, today: date, *, at: str = FILE) -> None:
    """Refuse a policy whose last day is over.

    Raises:
        ExpiredError: It is.
    """
    if policy.expires < today:
        raise ExpiredError(
            f"{at}: version {policy.version} expired on {policy.expires}, and it is {today} in UTC",
            hint="get a newer version; whoever keeps it makes one with builder trust new",
        )
