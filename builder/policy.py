"""What a project lets pass: a patch set on a base, by the patch set's own word. Pure.

A patch set lists the vLLM builds that it was tried on, and says of its patches what they go with.
:func:`judge_step` holds a variant to that and gives a :class:`Ruling`; :func:`enforce` stops what
the ruling forbids. What is an error and what is only told stands in ``builder.yaml``
(:class:`builder.settings.model.GenesisPolicy`); single exceptions, each with an end, stand in
``lockfiles/waivers.yaml``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from types import MappingProxyType

from builder.digest import ObjectId
from builder.errors import BuilderError, PolicyError, ProjectError
from builder.genesis.allowlist import Judgement, Listing, judge
from builder.genesis.facts import Facts
from builder.genesis.lint import lint
from builder.lock.model import GenesisPin, Lock, VllmBuild, Waiver
from builder.settings.model import GenesisPolicy, Level
from builder.value import field, value
from builder.variant import GenesisStep, PinnedBase, Variant, WheelsStep
from builder.waivers import ended, near_misses, shown_build, waiver_for

_ABOUT_BASES = {
    Listing.NOT_LISTED: ("allowlist", "does not list {vllm}"),
    Listing.MODULE_MISSING: ("allowlist", "lacks the module that should list {vllm}"),
    Listing.PENDING: ("pending", "lists {vllm} only as pending"),
    Listing.NO_LIST: ("no-list", "has no list that {vllm} could be on"),
}
"""Each listing that is not simply good: the rule about it, and what it says."""
_RULES_ABOUT_BASES = frozenset(rule for rule, _ in _ABOUT_BASES.values())
_SHOWN = 3
"""How many waivers for something else a hint names."""


@value
class Case:
    """A Genesis step of a variant, with what is known of its patch set."""

    variant: str
    step: GenesisStep
    pin: GenesisPin
    facts: Facts = field(repr=False)


@value
class Objection:
    """What a patch set has against a variant, and how the project takes it."""

    rule: str
    """Its word in ``builder.yaml``, under ``policy.genesis``."""
    level: Level
    """Never off."""
    message: str
    hint: str | None = None

    @property
    def about_base(self) -> bool:
        """Whether it is about the base, and not about the environment."""
        return self.rule in _RULES_ABOUT_BASES

    def error(self, at: str) -> BuilderError:
        """As a refusal: by the project's policy where the base is not the right one, of a file of
        the project where the environment that it sets is not."""
        kind = PolicyError if self.about_base else ProjectError
        return kind(f"{at}: {self.rule}: {self.message}", hint=self.hint)


@value
class Ruling:
    """What a project says to a Genesis step on its base."""

    at: str = field(compare=False)
    """Where the step stands."""
    commit: ObjectId
    judgement: Judgement
    waiver: Waiver | None = None
    """The one that lets the base pass; ``None`` where none is needed, or none holds."""
    objections: tuple[Objection, ...] = ()

    @property
    def errors(self) -> tuple[Objection, ...]:
        """Those that stop a build."""
        return tuple(item for item in self.objections if item.level is Level.ERROR)

    @property
    def warnings(self) -> tuple[Objection, ...]:
        """Those that are told."""
        return tuple(item for item in self.objections if item.level is Level.WARNING)

    @property
    def until(self) -> str | None:
        """The last day on which this ruling holds; ``None``: as long as nothing changes."""
        return None if self.waiver is None else self.waiver.until


def vllm_build_of(variant: Variant, lock: Lock) -> VllmBuild | None:
    """Which vLLM the Genesis step of a variant finds, as the pins say: that of the last wheel of
    vLLM below the step, or that of the base. ``None`` where only the tree of the image can
    tell."""
    found: VllmBuild | None = None
    if isinstance(variant.base, PinnedBase):
        pin = lock.images.get(variant.base.pin)
        found = None if pin is None else pin.vllm
    for step in variant.steps:
        if isinstance(step, GenesisStep):
            break
        if isinstance(step, WheelsStep):
            pins = (lock.wheels.get(name) for name in step.wheels)
            versions = [pin.version for pin in pins if pin and pin.project.lower() == "vllm"]
            found = VllmBuild(version=versions[-1]) if versions else found
    return found


def judge_step(
    case: Case,
    *,
    build: VllmBuild,
    environment: Mapping[str, str],
    waivers: Mapping[str, Waiver],
    today: date,
    policy: GenesisPolicy,
    unvouched: Mapping[str, str] = MappingProxyType({}),
) -> Ruling:
    """Hold a Genesis step to what its patch set says.

    Args:
        case: The step, its pin, and what the patch set says of itself.
        build: The vLLM that it is laid into.
        environment: What the image will have; variables of others are not looked at.
        waivers: The exceptions of the project.
        today: In UTC.
        policy: What is an error, and what is only told.
        unvouched: The waivers that the trust policy does not let count, with the reason.
    """
    judgement = _judgement(case, build)
    about_base = judge_base(case, build=build, policy=policy)
    waiver = None
    if about_base is not None and about_base.level is Level.ERROR:
        about_base, waiver = _excepted(
            about_base, case, build, waivers, today=today, unvouched=unvouched
        )
    return Ruling(
        at=case.step.at,
        commit=case.pin.commit,
        judgement=judgement,
        waiver=waiver,
        objections=(
            *(() if about_base is None else (about_base,)),
            *judge_environment(environment, case.facts, version=build.version, policy=policy),
        ),
    )


def judge_base(case: Case, *, build: VllmBuild, policy: GenesisPolicy) -> Objection | None:
    """What the patch set has against a base, waivers aside; ``None`` where that is nothing."""
    judgement = _judgement(case, build)
    if judgement.listing is Listing.BOTH and policy.pending is not Level.OFF:
        return Objection(
            rule="pending",
            level=Level.WARNING,
            message=f"Genesis {case.pin.commit.short} lists vLLM {judgement.vllm}, and lists it as"
            " pending, too",
        )
    rule, text = _ABOUT_BASES.get(judgement.listing, (None, ""))
    if rule is None or (level := policy.level(rule)) is Level.OFF:
        return None
    said = text.format(vllm=f"vLLM {judgement.vllm}")
    nearest = ", ".join(map(repr, judgement.nearest))
    return Objection(
        rule=rule,
        level=level,
        message=f"Genesis {case.pin.commit.short} {said}",
        hint=(f"the nearest that it lists: {nearest}; " if nearest else "")
        + f"take a base that it lists, or record an exception: builder waive {case.variant}"
        " --reason TEXT --until DATE",
    )


def judge_environment(
    environment: Mapping[str, str], facts: Facts, *, version: str | None, policy: GenesisPolicy
) -> tuple[Objection, ...]:
    """What the patch set has against an environment. Without a version nothing is said of the
    versions that patches are for."""
    return tuple(
        Objection(rule=str(item.rule), level=level, message=item.message, hint=item.hint)
        for item in lint(environment, facts, version=version)
        if (level := policy.level(str(item.rule))) is not Level.OFF
    )


def enforce(ruling: Ruling) -> None:
    """Let pass what the project lets pass.

    Raises:
        PolicyError: The patch set does not list the base, and no waiver holds.
        ProjectError: The environment of the variant is not one that the patch set takes. All
            objections stand in the message, a line each.
    """
    errors = ruling.errors
    if not errors:
        return
    if errors[0].about_base or len(errors) == 1:
        raise errors[0].error(ruling.at)
    head = f"Genesis {ruling.commit.short} has {len(errors)} objections to the environment"
    lines = (
        f"  {item.rule}: {item.message}" + (f"; {item.hint}" if item.hint else "")
        for item in errors
    )
    raise ProjectError(
        "\n".join((f"{ruling.at}: {head}", *lines)),
        hint="mend image.env; what is an error stands under policy.genesis in builder.yaml",
    )


def _judgement(case: Case, build: VllmBuild) -> Judgement:
    commit = None if build.commit is None else str(build.commit)
    return judge(case.facts.allowlist, version=build.version, commit=commit)


def _excepted(
    objection: Objection,
    case: Case,
    build: VllmBuild,
    waivers: Mapping[str, Waiver],
    *,
    today: date,
    unvouched: Mapping[str, str],
) -> tuple[Objection, Waiver | None]:
    """The objection as the waivers leave it, and the waiver that took its force. One that counts
    goes before one that does not, however long that would hold."""
    vouched = [item for item in waivers.values() if item.name not in unvouched]
    waiver = waiver_for(vouched, case.pin.commit, build)
    if waiver is not None and not ended(waiver, today):
        told = (
            f"{objection.message}; waiver {waiver.name!r} lets it pass until {waiver.until}:"
            f" {waiver.reason} ({waiver.author})"
        )
        return replace(objection, level=Level.WARNING, message=told, hint=None), waiver
    message, hint = objection.message, objection.hint or ""
    if waiver is not None:
        message += f", and waiver {waiver.name!r} ended on {waiver.until}"
    elif (other := waiver_for(waivers.values(), case.pin.commit, build)) is not None:
        message += f", and waiver {other.name!r} does not count: {unvouched[other.name]}"
        hint += f"; builder trust sign --waiver {other.name} --key NAME signs it"
    if others := _named(near_misses(waivers.values(), case.pin.commit, build)):
        hint += f"; {others}"
    return replace(objection, message=message, hint=hint), None


def _named(waivers: Iterable[Waiver]) -> str:
    """Waivers for something else, so that nobody wonders why they do not count."""
    each = [
        f"waiver {item.name!r} is for vLLM {shown_build(item.vllm)} under Genesis"
        f" {item.genesis.short}"
        for item in waivers
    ]
    more = [f"{len(each) - _SHOWN} more are for others"] if len(each) > _SHOWN else []
    return ", ".join(each[:_SHOWN] + more)
