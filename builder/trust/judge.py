"""Who signed, held to the policy.

Signatures are verified before: what comes in is the set of keys that verified, so that nothing
counts twice however often a key signed.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import date
from enum import StrEnum

from builder.digest import Digest
from builder.errors import ExpiredError, UntrustedError
from builder.keys.public import PublicKey
from builder.reference import Reference
from builder.trust.chain import check_expiry
from builder.trust.model import KeyState, Policy, Role, TrustedKey
from builder.trust.names import FILE, MODEL, WAIVER
from builder.trust.scope import scope_of
from builder.value import value


class Kind(StrEnum):
    """What is signed."""

    IMAGE = "image"
    WAIVER = WAIVER
    MODEL = MODEL


class Outcome(StrEnum):
    """What the policy says. Of several that could be said, the first one here."""

    TRUSTED = "trusted"
    EXPIRED = "expired"
    """The policy is over."""
    OUT_OF_SCOPE = "out-of-scope"
    """No role may sign that."""
    BELOW_THRESHOLD = "below-threshold"
    """Keys of the role signed, and too few of them."""
    REVOKED = "revoked"
    """Nobody of the role signed but with revoked keys."""
    KEY_EXPIRED = "key-expired"
    """Only with keys whose days are over, or have not begun."""
    RETIRED = "retired"
    """Only with retired keys."""
    UNTRUSTED = "untrusted"
    """Nobody of the role."""


@value
class Judgement:
    """What the policy says of one thing, and why."""

    outcome: Outcome
    message: str
    role: str | None = None
    threshold: int = 0
    counted: tuple[TrustedKey, ...] = ()
    """The keys that count, in the order of the role."""
    passed_over: tuple[tuple[TrustedKey, Outcome], ...] = ()
    """Keys of the role that signed and do not count, with the reason."""

    @property
    def trusted(self) -> bool:
        return self.outcome is Outcome.TRUSTED

    @property
    def until(self) -> date | None:
        """The last day on which the keys that count still do; ``None``: all that the policy has."""
        return min((key.until for key in self.counted if key.until), default=None)

    def enforce(self, at: str) -> None:
        """Let pass what is trusted.

        Raises:
            ExpiredError: The policy is over, or the days of the keys.
            UntrustedError: Any other outcome.
        """
        if self.trusted:
            return
        over = self.outcome in {Outcome.EXPIRED, Outcome.KEY_EXPIRED}
        raise (ExpiredError if over else UntrustedError)(
            f"{at}: {self.outcome}: {self.message}", hint=_HINTS[self.outcome]
        )


_HINTS = {
    Outcome.EXPIRED: "get a newer version of the policy",
    Outcome.OUT_OF_SCOPE: f"'scopes' in {FILE} says who signs what",
    Outcome.BELOW_THRESHOLD: (
        "more keys of the role have to sign: images with builder sign, waivers with builder trust"
        " sign --waiver, models with model_signing"
    ),
    Outcome.REVOKED: "it has to be looked at and signed anew, or listed under 'grandfathered'",
    Outcome.KEY_EXPIRED: "sign it anew with a key whose days are not over",
    Outcome.RETIRED: "sign it anew, or list its digest under 'grandfathered'",
    Outcome.UNTRUSTED: "builder trust show has the keys that count",
}


def judge(
    policy: Policy,
    *,
    kind: Kind,
    digest: Digest,
    signed_by: Collection[PublicKey],
    today: date,
    repository: Reference | None = None,
) -> Judgement:
    """Hold the signatures of one thing to a policy that was accepted.

    Args:
        kind: What it is.
        digest: Of what was signed; for ``grandfathered``.
        signed_by: The keys whose signatures over it, as this kind of thing, were verified.
        today: In UTC.
        repository: Where an image is asked for; ``None`` where it lies in no registry.
    """
    try:
        check_expiry(policy, today)
    except ExpiredError as error:
        return Judgement(outcome=Outcome.EXPIRED, message=error.message)
    role = role_of(policy, kind, repository)
    if isinstance(role, str):
        return Judgement(outcome=Outcome.OUT_OF_SCOPE, message=role)
    keys = set(signed_by)
    counted, passed_over = [], []
    for key in policy.keys_of(role):
        if key.public in keys:
            state = _state(key, today)
            if state is Outcome.TRUSTED or digest in policy.grandfathered:
                counted.append(key)
            else:
                passed_over.append((key, state))
    outcome = _outcome(role, counted, [state for _, state in passed_over])
    others = len(keys) - len(counted) - len(passed_over)
    return Judgement(
        outcome=outcome,
        message=_message(role, counted, passed_over, others),
        role=role.name,
        threshold=role.threshold,
        counted=tuple(counted),
        passed_over=tuple(passed_over),
    )


def enough_for(
    policy: Policy, *, image: Digest, repository: Reference | None, today: date
) -> Callable[[str, Sequence[PublicKey]], None]:
    """What asks of each thing that is said of an image whether the keys that said it are enough, as
    verification wants it. It raises as :meth:`Judgement.enforce` does."""

    def enough(what: str, made_by: Sequence[PublicKey]) -> None:
        judge(
            policy,
            kind=Kind.IMAGE,
            digest=image,
            signed_by=made_by,
            today=today,
            repository=repository,
        ).enforce(what)

    return enough


def public_keys(policy: Policy) -> tuple[PublicKey, ...]:
    """All keys of a policy, revoked ones too: that somebody signed with one of them is to be
    known."""
    return tuple(key.public for key in policy.keys.values())


def role_of(policy: Policy, kind: Kind, repository: Reference | None) -> Role | str:
    """The role whose signatures count for a thing; or why there is none."""
    if kind is not Kind.IMAGE:
        return policy.roles.get(kind) or f"{FILE} has no role {str(kind)!r}"
    scope = scope_of(policy, repository)
    if scope is not None:
        return policy.roles[scope.role]
    where = "an image of no repository" if repository is None else repository.name
    return f"no scope in {FILE} has {where}"


def _state(key: TrustedKey, today: date) -> Outcome:
    match key.state:
        case KeyState.REVOKED:
            return Outcome.REVOKED
        case KeyState.RETIRED:
            return Outcome.RETIRED
        case KeyState.ACTIVE:
            early = key.since is not None and today < key.since
            late = key.until is not None and key.until < today
            return Outcome.KEY_EXPIRED if early or late else Outcome.TRUSTED


def _outcome(role: Role, counted: Collection[TrustedKey], states: Collection[Outcome]) -> Outcome:
    if len(counted) >= role.threshold:
        return Outcome.TRUSTED
    if counted:
        return Outcome.BELOW_THRESHOLD
    return next((outcome for outcome in Outcome if outcome in states), Outcome.UNTRUSTED)


def _message(
    role: Role,
    counted: Collection[TrustedKey],
    passed_over: Collection[tuple[TrustedKey, Outcome]],
    others: int,
) -> str:
    named = ", ".join(repr(key.name) for key in counted)
    text = f"signed by {len(counted)} of {role.threshold} keys of the role {role.name!r}"
    text += f" ({named})" if named else ""
    text += "".join(f"; {key.name!r} is {_said(key, why)}" for key, why in passed_over)
    return text + (f"; {others} other keys signed, too" if others > 0 else "")


def _said(key: TrustedKey, why: Outcome) -> str:
    if why is not Outcome.KEY_EXPIRED:
        return str(why)
    days = f"from {key.since} " if key.since else ""
    return f"good {days}to {key.until}" if key.until else f"good {days}on"
