"""Exceptions of a project (``lockfiles/waivers.yaml``), held to its policy.

What is signed of a waiver is its canonical JSON, all of its fields with its name. An entry counts
if the role ``waiver`` signed exactly these bytes, whatever else stands in its file: others may be
added and removed without anybody signing again.
"""

from collections.abc import Iterable, Mapping
from datetime import date

from builder import canonical
from builder.attest.dsse import Envelope
from builder.digest import Digest
from builder.lock.codec_waivers import day, waiver_record
from builder.lock.model import Waiver
from builder.trust.judge import Judgement, Kind, judge
from builder.trust.model import Policy
from builder.trust.names import WAIVER, WAIVER_TYPE
from builder.trust.signatures import signers


def payload(waiver: Waiver) -> bytes:
    """What is signed of a waiver."""
    return canonical.encode({"name": waiver.name, **waiver_record(waiver)})


def unvouched(
    waivers: Mapping[str, Waiver], envelopes: Iterable[Envelope], *, policy: Policy, today: date
) -> Mapping[str, str]:
    """Those that do not count, by name, each with the reason."""
    signatures = tuple(envelopes)
    why = {
        name: _why_not(waiver, signatures, policy=policy, today=today)
        for name, waiver in waivers.items()
    }
    return {name: text for name, text in why.items() if text is not None}


def _why_not(
    waiver: Waiver, envelopes: tuple[Envelope, ...], *, policy: Policy, today: date
) -> str | None:
    last = day(waiver.until)
    if last is not None and last - today > policy.longest_waiver:
        return (
            f"it ends more than {policy.longest_waiver.days} days from now, the most that"
            " trust.yaml allows"
        )
    found = judged(waiver, envelopes, policy=policy, today=today)
    return None if found.trusted else f"{found.outcome}: {found.message}"


def judged(
    waiver: Waiver, envelopes: Iterable[Envelope], *, policy: Policy, today: date
) -> Judgement:
    """What the policy says of the signatures of one waiver."""
    text, role = payload(waiver), policy.roles.get(WAIVER)
    keys = () if role is None else policy.keys_of(role)
    return judge(
        policy,
        kind=Kind.WAIVER,
        digest=Digest.of(text),
        signed_by=signers(text, WAIVER_TYPE, envelopes, (key.public for key in keys)),
        today=today,
    )
