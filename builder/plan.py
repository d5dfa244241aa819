"""From a variant and its pins to an ordered chain of derivations. Pure.

Everything that a name in the variant stands for is looked up here, once; what is not there is an
error before anything is fetched.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from builder import canonical
from builder.derivation import Derivation
from builder.digest import Digest
from builder.errors import ProjectError
from builder.lock.model import Lock, SourcePin
from builder.oci import Platform
from builder.python_layout import PythonLayout, from_statement
from builder.steps.overlay import OverlayRequest
from builder.steps.pull import PullRequest
from builder.steps.request import DiffRule, Request
from builder.steps.source import SourceRequest
from builder.steps.wheels import WheelsRequest
from builder.value import value
from builder.variant import (
    GenesisStep,
    Overlay,
    OverlayStep,
    PullStep,
    ScriptFile,
    ScriptStep,
    SourceStep,
    Step,
    Variant,
    WheelsStep,
)

if TYPE_CHECKING:
    from builder.steps.script import AnyScript

PinT = TypeVar("PinT")

_PATCH_SETS = ("GENESIS_", "SNDR_", "VLLM_")
"""How the variables begin that decide what a patch set does."""


@value
class PlannedStep:
    """One step of the chain: the recipe's name for it, what it asks, and the name of that."""

    name: str
    request: Request
    derivation: Derivation
    bytecode_prefixes: tuple[str, ...] = ()
    """Where else than beside its sources the image's Python looks for compiled modules."""

    @property
    def kind(self) -> str:
        return self.request.kind

    @property
    def inputs(self) -> dict[str, Any]:
        """Everything that the derivation asks with, but the parent."""
        return inputs_of(self.request, self.bytecode_prefixes)


@value
class Plan:
    """The chain of a variant on one platform, bottom first. ``base`` is the digest of the base's
    manifest, ``None`` for ``scratch``."""

    variant: Variant
    platform: Platform
    base: Digest | None
    steps: tuple[PlannedStep, ...]
    strict: bool = False
    """Whether hunks were forbidden to move."""

    @property
    def derivation(self) -> Digest | None:
        """The id of the last step, which is all that was asked; ``None`` without steps."""
        return self.steps[-1].derivation.id if self.steps else None


def plan(
    variant: Variant,
    lock: Lock,
    *,
    overlay: Callable[[str], Overlay],
    platform: Platform,
    base: Digest | None,
    environment: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Plan:
    """Look up every pin of ``variant`` and chain its steps above ``base``.

    Args:
        overlay: Gives an overlay by name, with the bytes of its files.
        environment: What the base's config sets; the variant's own is put on top.
        strict: Forbid hunks to move.

    Raises:
        ProjectError: The variant names something that is not there.
    """
    lookup = _Lookup(
        lock=lock,
        overlay=overlay,
        platform=platform,
        python=_python(variant),
        strict=strict,
        environment=_of_patch_sets(variant, environment or {}),
    )
    prefixes = _bytecode_prefixes(variant, environment or {})
    steps: list[PlannedStep] = []
    parent = base
    for step in variant.steps:
        request = lookup.request(step)
        inputs = canonical.encode(inputs_of(request, prefixes))
        derivation = Derivation(kind=request.kind, inputs=inputs, parent=parent)
        steps.append(
            PlannedStep(
                name=step.name,
                request=request,
                derivation=derivation,
                bytecode_prefixes=prefixes,
            )
        )
        parent = derivation.id
    return Plan(variant=variant, platform=platform, base=base, steps=tuple(steps), strict=strict)


def inputs_of(request: Request, bytecode_prefixes: tuple[str, ...]) -> dict[str, Any]:
    """What a step asks with, by content."""
    inputs = request.record()
    if bytecode_prefixes:
        inputs["bytecode_prefixes"] = list(bytecode_prefixes)
    return inputs


def _bytecode_prefixes(variant: Variant, environment: Mapping[str, str]) -> tuple[str, ...]:
    """``PYTHONPYCACHEPREFIX`` as containers of the image will have it, unless told otherwise."""
    merged: dict[str, str | None] = {**environment, **dict(variant.image.env)}
    prefix = merged.get("PYTHONPYCACHEPREFIX")
    return (prefix,) if prefix else ()


def _python(variant: Variant) -> PythonLayout | None:
    stated = variant.python
    if stated is None:
        return None
    return from_statement(stated.version, stated.packages, at=f"{variant.at}: python")


def _of_patch_sets(variant: Variant, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What the image will set of the variables that patch sets read, sorted."""
    merged: dict[str, str | None] = {**environment, **dict(variant.image.env)}
    return tuple(
        (name, value)
        for name, value in sorted(merged.items())
        if value is not None and name.startswith(_PATCH_SETS)
    )


@value
class _Lookup:
    lock: Lock
    overlay: Callable[[str], Overlay]
    platform: Platform
    python: PythonLayout | None
    strict: bool
    environment: tuple[tuple[str, str], ...]

    def request(self, step: Step) -> Request:
        match step:
            case PullStep():
                return self._pull(step)
            case OverlayStep():
                return self._overlay(step)
            case SourceStep():
                return self._source(step)
            case WheelsStep():
                return WheelsRequest(
                    wheels=tuple(
                        pinned(self.lock.wheels, name, file="wheels.yaml", at=step.at)
                        for name in step.wheels
                    ),
                    platform=self.platform,
                    python=self.python,
                    at=step.at,
                )
            case GenesisStep():
                return self._genesis(step)
            case ScriptStep():
                from builder.steps.script import ScriptRequest  # noqa: PLC0415 - as above

                return ScriptRequest(
                    script=self._script(step.script, at=f"{step.at}.script"),
                    interpreter=step.interpreter,
                    touches=step.touches,
                    arguments=step.arguments,
                    environment=step.environment,
                    python=self.python,
                    at=step.at,
                )

    def _genesis(self, step: GenesisStep) -> Request:
        from builder.steps.genesis import GenesisRequest  # noqa: PLC0415 - few variants have one

        return GenesisRequest(
            pin=pinned(self.lock.genesis, step.genesis, file="genesis.yaml", at=step.at),
            platform=step.platform,
            speculative=step.speculative,
            environment=self.environment,
            image=self.platform,
            python=self.python,
            at=step.at,
        )

    def _overlay(self, step: OverlayStep) -> OverlayRequest:
        overlay = self.overlay(step.overlay)
        if not overlay.changes:
            raise ProjectError(
                f"{step.at}: overlay {step.overlay!r} has nothing but scripts, so that applying it"
                " does nothing",
                hint="run one of them by a step of the kind 'script'",
            )
        return OverlayRequest(
            overlay=overlay,
            strict=self.strict,
            until_upstream=step.until_upstream,
            python=self.python,
            at=step.at,
        )

    def _script(self, file: ScriptFile, *, at: str) -> "AnyScript":
        from builder.steps.script import OwnScript, PinnedScript  # noqa: PLC0415 - as above

        if file.overlay is None:
            pin = pinned(self.lock.sources, file.source or "", file="sources.yaml", at=at)
            _check_pinned(pin, file.path, at=at)
            return PinnedScript(source=pin, path=file.path)
        scripts = {script.file: script for script in self.overlay(file.overlay).scripts}
        if (script := scripts.get(file.path)) is None:
            raise ProjectError(
                f"{at}: overlays/{file.overlay}/overlay.yaml lists no script {file.path!r}",
                hint=f"it has: {', '.join(scripts)}" if scripts else "list it under 'scripts'",
            )
        return OwnScript(overlay=file.overlay, script=script)

    def _pull(self, step: PullStep) -> PullRequest:
        pin = pinned(self.lock.pulls, step.pull, file="pulls.yaml", at=step.at)
        rule = DiffRule(
            root=pin.root if step.root is None else step.root,
            strip=pin.strip if step.strip is None else step.strip,
            ignore=step.ignore,
            strict=self.strict,
            at=f"{step.at}: pull {pin.name}",
            stated_at=pin.at,
        )
        return PullRequest(
            pin=pin, rule=rule, until_upstream=step.until_upstream, python=self.python
        )

    def _source(self, step: SourceStep) -> SourceRequest:
        pin = pinned(self.lock.sources, step.source, file="sources.yaml", at=step.at)
        for item in step.files:
            _check_pinned(pin, item.source, at=item.at)
        return SourceRequest(
            pin=pin,
            files=step.files,
            until_upstream=step.until_upstream,
            python=self.python,
            at=step.at,
        )


def _check_pinned(pin: SourcePin, path: str, *, at: str) -> None:
    if pin.file(path) is None:
        raise ProjectError(
            f"{at}: source {pin.name!r} has no pinned file {path!r}",
            hint=f"it has: {', '.join(file.path for file in pin.files)}",
        )


def pinned(pins: Mapping[str, PinT], name: str, *, file: str, at: str) -> PinT:
    """The pin called ``name``.

    Raises:
        ProjectError: There is none; the hint has the nearest name.
    """
    if (pin := pins.get(name)) is not None:
        return pin
    from difflib import get_close_matches  # noqa: PLC0415 - wanted only where a build has failed

    near = get_close_matches(name, pins, n=1)
    raise ProjectError(
        f"{at}: no pin {name!r} in lockfiles/{file}",
        hint=f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(pins) or 'none'}",
    )
