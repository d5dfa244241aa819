"""The patch set of a variant against its base and its environment, as far as that is at hand; and
the exceptions that people made."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta

from builder.check.finding import Finding, error_at, warning_at
from builder.errors import BuilderError, OfflineError, ProjectError
from builder.genesis.eras import era_of
from builder.genesis.facts import Facts
from builder.lock.codec_waivers import day
from builder.lock.model import GenesisPin, Lock, Waiver
from builder.policy import (
    Case,
    Objection,
    judge_environment,
    judge_step,
    vllm_build_of,
)
from builder.project import Project
from builder.settings.model import GenesisPolicy, Level
from builder.variant import GenesisStep, Variant
from builder.waivers import ended

_SOON = timedelta(days=14)
"""How long before its end a waiver is mentioned."""


def patch_set(
    project: Project,
    variant: Variant,
    lock: Lock,
    *,
    facts: Callable[[GenesisPin], Facts],
    today: date,
) -> Iterator[Finding]:
    """What a build would be stopped for, and what it would be told."""
    for step in variant.steps:
        if not isinstance(step, GenesisStep) or step.genesis not in lock.genesis:
            continue  # a pin that is missing is named with the recipe
        pin = lock.genesis[step.genesis]
        if pin.payload is None:
            continue  # said of the step's derivation
        try:
            case = Case(variant=variant.name, step=step, pin=pin, facts=facts(pin))
        except OfflineError:
            continue  # not at hand
        except BuilderError as error:
            yield error_at(step.at, error)
            continue
        for objection in _objections(
            case,
            variant,
            lock,
            today=today,
            policy=_policy(project),
            unvouched=_unvouched(project, lock, today),
        ):
            yield _finding(step.at, objection)


def _objections(
    case: Case,
    variant: Variant,
    lock: Lock,
    *,
    today: date,
    policy: GenesisPolicy,
    unvouched: Mapping[str, str],
) -> tuple[Objection, ...]:
    # What the base's own environment adds is not known before a build.
    environment = {name: value for name, value in variant.image.env if value is not None}
    build = vllm_build_of(variant, lock)
    if build is None:
        unknown = Objection(
            rule="allowlist",
            level=Level.WARNING,
            message="which vLLM the base holds is found out by a build, and only then whether"
            f" Genesis {case.pin.commit.short} lists it",
        )
        return unknown, *judge_environment(environment, case.facts, version=None, policy=policy)
    return judge_step(
        case,
        build=build,
        environment=environment,
        waivers=lock.waivers,
        today=today,
        policy=policy,
        unvouched=unvouched,
    ).objections


def _unvouched(project: Project, lock: Lock, today: date) -> Mapping[str, str]:
    try:
        return project.unvouched(lock.waivers, today=today)
    except BuilderError as error:  # said of the file itself
        return dict.fromkeys(lock.waivers, error.message)


def _policy(project: Project) -> GenesisPolicy:
    try:
        return project.settings.genesis
    except ProjectError:  # said of the file itself
        return GenesisPolicy()


def _finding(at: str, objection: Objection) -> Finding:
    if objection.level is Level.ERROR:
        return error_at(at, objection.error(at))
    return warning_at(at, f"{objection.rule}: {objection.message}", hint=objection.hint)


def plugins(lock: Lock) -> Iterator[Finding]:
    """Patch sets that nothing would call when the image runs."""
    for pin in lock.genesis.values():
        era = None if pin.payload is None else era_of(pin.payload.path)
        if era is not None and era.plugins and pin.plugin is None:
            yield warning_at(
                pin.at,
                "no 'plugin': vLLM's processes do not call the patch set, and what it does in"
                " memory is lost",
                hint="pin the directory of its plugin, and the id of its tree: one of"
                f" {', '.join(era.plugins)}",
            )


def waivers(lock: Lock, today: date) -> Iterator[Finding]:
    """Exceptions that are over, and those that will soon be."""
    for waiver in lock.waivers.values():
        if ended(waiver, today):
            yield warning_at(
                waiver.at, f"ended on {waiver.until}", hint="remove it, or renew it: builder waive"
            )
        elif (last := day(waiver.until)) is not None and last - today <= _SOON:
            yield warning_at(
                waiver.at,
                f"ends with {waiver.until}, and builds that need it then stop",
                hint="take a base that is listed, or renew it: builder waive",
            )


def needless_waivers(lock: Lock) -> Iterator[Finding]:
    """Exceptions for a commit that nothing pins any more."""
    pinned = {pin.commit for pin in lock.genesis.values()}
    for waiver in lock.waivers.values():
        if waiver.genesis not in pinned:
            yield _needless(waiver)


def _needless(waiver: Waiver) -> Finding:
    return warning_at(
        waiver.at,
        f"no pin of a patch set has the commit {waiver.genesis.short}",
        hint="remove it",
    )
