"""Whether a plan may be built: each patch set in it is held to what it says of itself.

Asked at every build, also where every layer is there already: what was let pass yesterday may have
ended today.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from types import MappingProxyType

from builder.base import Base
from builder.digest import ObjectId
from builder.errors import PolicyError
from builder.genesis.facts import Facts
from builder.lock.model import GenesisPin, Lock, VllmBuild
from builder.plan import Plan
from builder.policy import Case, Ruling, enforce, judge_step, vllm_build_of
from builder.ports import Progress, Store
from builder.settings.model import GenesisPolicy
from builder.steps.genesis import GenesisRequest
from builder.variant import GenesisStep

_log = logging.getLogger(__name__)


def admit(
    plan: Plan,
    base: Base | None,
    *,
    lock: Lock,
    policy: GenesisPolicy,
    facts: Callable[[GenesisPin], Facts],
    today: date,
    store: Store,
    progress: Progress,
    unvouched: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Ruling, ...]:
    """Let a plan pass, or not; what is only told goes to the log.

    Raises:
        PolicyError, ProjectError: See :func:`builder.policy.enforce`.
    """
    rulings = []
    for ruling in judged(
        plan,
        base,
        lock=lock,
        policy=policy,
        facts=facts,
        today=today,
        store=store,
        progress=progress,
        unvouched=unvouched,
    ):
        enforce(ruling)
        for objection in ruling.warnings:
            hint = f"; {objection.hint}" if objection.hint else ""
            _log.warning("%s: %s: %s%s", ruling.at, objection.rule, objection.message, hint)
        rulings.append(ruling)
    return tuple(rulings)


def judged(
    plan: Plan,
    base: Base | None,
    *,
    lock: Lock,
    policy: GenesisPolicy,
    facts: Callable[[GenesisPin], Facts],
    today: date,
    store: Store,
    progress: Progress,
    unvouched: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Ruling]:
    """What is to be said of each patch set of a plan, one after the other.

    Args:
        facts: What a patch set says of itself.
        today: In UTC.
        store: Knows the files of the base, where its pin does not say which vLLM it has.
        unvouched: The waivers that the trust policy does not let count, with the reason.

    Raises:
        PolicyError: Nothing says which vLLM the patch set would be laid into.
    """
    for step, request in _patch_sets(plan):
        build = vllm_build_of(plan.variant, lock) or _found(base, store=store, progress=progress)
        if build is None:
            raise PolicyError(
                f"{step.at}: nothing says which vLLM the patch set would be laid into",
                hint="write 'vllm' with its version and commit into the base's entry in"
                " lockfiles/vllm.yaml",
            )
        yield judge_step(
            Case(variant=plan.variant.name, step=step, pin=request.pin, facts=facts(request.pin)),
            build=build,
            environment=dict(request.environment),
            waivers=lock.waivers,
            today=today,
            policy=policy,
            unvouched=unvouched,
        )


def _patch_sets(plan: Plan) -> Iterator[tuple[GenesisStep, GenesisRequest]]:
    for step, planned in zip(plan.variant.steps, plan.steps, strict=True):
        if isinstance(step, GenesisStep) and isinstance(planned.request, GenesisRequest):
            yield step, planned.request


def _found(base: Base | None, *, store: Store, progress: Progress) -> VllmBuild | None:
    """The vLLM of a base whose pin does not say: read from its files."""
    if base is None:
        return None
    from builder.bake import base_view  # noqa: PLC0415 - only where the pin is silent
    from builder.python_layout import discover, vllm_build  # noqa: PLC0415 - as above

    view = base_view(base, store=store, progress=progress)
    found = vllm_build(view, discover(view))
    if found is None:
        return None
    whole = found.commit is not None and len(found.commit) == 40
    return VllmBuild(
        version=found.version, commit=ObjectId(found.commit) if whole and found.commit else None
    )
