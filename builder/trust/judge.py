"""Who signed, held to the policy.

Signatures are verified before: what comes in is the set of keys that verified, so that nothing
counts twice however often a key signed.
"""

from collections.abc import Callable, Collection, Sequence
from datetime import date
from enum import StrEnum

from builder.digest import Digest
from builder.errors import ExpiredError, UntrustedError
from builder.keys.counted import Counted
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
    grandfathered: tuple[tuple[TrustedKey, Outcome], ...] = ()
    """Those among ``counted`` that would not, were the digest not listed, with the reason."""

    @property
    def trusted(self) -> bool:
        """Whether enough keys signed it that count."""
        return self.outcome is Outcome.TRUSTED

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be told of keys that signed, where it is trusted all the same."""
        return (
            *(f"{_named(key)} is {_said(key, why)}: not counted" for key, why in self.passed_over),
            *(
                f"{_named(key)} is {_said(key, why)}, and counts: the digest is listed under"
                " 'grandfathered'"
                for key, why in self.grandfathered
            ),
        )

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
    Outcome.OUT_OF_SCOPE: f"builder trust new begins a version of {FILE} that can have it",
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
    signed = [(key, _state(key, today)) for key in policy.keys_of(role) if key.public in keys]
    stale = tuple(item for item in signed if item[1] is not Outcome.TRUSTED)
    grandfathered, passed_over = (stale, ()) if digest in policy.grandfathered else ((), stale)
    counted = [key for key, state in signed if (key, state) not in passed_over]
    outcome = _outcome(role, counted, [state for _, state in passed_over])
    others = len(keys) - len(counted) - len(passed_over)
    return Judgement(
        outcome=outcome,
        message=_message(role, counted, passed_over, others),
        role=role.name,
        threshold=role.threshold,
        counted=tuple(counted),
        passed_over=passed_over,
        grandfathered=grandfathered,
    )


def enough_for(
    policy: Policy, *, image: Digest, repository: Reference | None, today: date
) -> Callable[[str, Sequence[PublicKey]], Counted]:
    """What asks of each thing that is said of an image whether the keys that said it are enough, as
    verification wants it. It raises as :meth:`Judgement.enforce` does."""

    def enough(what: str, made_by: Sequence[PublicKey]) -> Counted:
        judgement = judge(
            policy,
            kind=Kind.IMAGE,
            digest=image,
            signed_by=made_by,
            today=today,
            repository=repository,
        )
        judgement.enforce(what)
        counted = tuple(key.public for key in judgement.counted)
        return Counted(keys=counted, remarks=judgement.remarks)

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
    if repository is None:
        return f"no scope in {FILE} has an image of no repository, as in a layout: '*' would"
    return f"no scope in {FILE} has {repository.name}"


def _state(key: TrustedKey, today: date) -> Outcome:
    match key.state:
        case KeyState.REVOKED:
            return Outcome.REVOKED
        case KeyState.RETIRED:
            return Outcome.RETIRED
        case KeyState.ACTIVE:
            return Outcome.TRUSTED if key.in_its_days(today) else Outcome.KEY_EXPIRED


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


def _named(key: TrustedKey) -> str:
    return f"{key.name!r} ({key.public.fingerprint})"


def _said(key: TrustedKey, why: Outcome) -> str:
    if why is not Outcome.KEY_EXPIRED:
        return str(why)
    days = f"from {key.since} " if key.since else ""
    return f"good {days}to {key.until}" if key.until else f"good {days}on"
