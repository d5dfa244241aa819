"""Services and targets to what is wrong with their images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from builder.compose.document import Document, Scalar
from builder.compose.interpolation import stated, variable
from builder.compose.pin import check_editable, check_shared, sharing
from builder.compose.service import NAMING, Service
from builder.compose.target import Target
from builder.digest import Digest
from builder.errors import BuilderError, ProjectError
from builder.reference import Reference


class State(StrEnum):
    """How an image stands."""

    PINNED = "pinned"
    """By tag and digest, and to what the lock says where the service names something."""
    OVERRIDABLE = "overridable"
    """Pinned, unless a variable says otherwise."""
    UNPROVEN = "unproven"
    """It names a variant of which nobody has accepted a result."""
    BY_TAG = "by tag"
    """It names nothing, and has no digest."""
    LOOSE = "not pinned"
    """It names something, and is not pinned to it."""
    REFUSED = "refused"
    """It cannot be pinned as it stands."""
    BUILT = "built"
    """Compose builds it: there is nothing to pin."""


WARNED = frozenset({State.OVERRIDABLE, State.UNPROVEN, State.BY_TAG})
WRONG = frozenset({State.LOOSE, State.REFUSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One image of a service, and what is to be said of it."""

    service: str
    line: int
    runs: str | None
    image: str | None
    state: State
    message: str = ""
    hint: str | None = None


def judge(
    document: Document, services: Sequence[Service], target: Callable[[Service], Target]
) -> tuple[Judgement, ...]:
    """Every image of every service. One that is wrong hides nothing of the others."""
    found: list[Judgement] = []
    shared = sharing(services)
    for service in services:
        if service.runs is None:
            found += (_unnamed(service, scalar) for scalar in service.images)
            continue
        try:
            check_editable(document, service)
            wanted = target(service)
        except BuilderError as error:
            found.append(_refused(document, service, None, error))
            continue
        for scalar in service.images:
            try:
                check_shared(document, scalar, service, shared)
                found.append(_named(document, service, scalar, wanted))
            except ProjectError as error:
                found.append(_refused(document, service, scalar, error))
    return tuple(found)


def _refused(
    document: Document, service: Service, scalar: Scalar | None, error: BuilderError
) -> Judgement:
    line = service.shown_line if scalar is None else scalar.line
    message = error.message.removeprefix(f"{document.file}:{line}: ")
    prefix = f"service {service.name!r}"
    return Judgement(
        service=service.name,
        line=line,
        runs=service.runs,
        image=None if scalar is None else scalar.value,
        state=State.REFUSED,
        message=message if message.startswith(prefix) else f"{prefix}: {message}",
        hint=error.hint,
    )


def _unnamed(service: Service, scalar: Scalar) -> Judgement:
    said = stated(scalar.value)
    state, message, hint = State.PINNED, "", None
    if service.built:
        state = State.BUILT
    elif said is None or _digest(said) is None:
        state = State.BY_TAG
        message = f"service {service.name!r}: {scalar.value!r} has no digest: what runs can change"
        hint = f"pin it by digest, or let the service name what it runs: {NAMING}"
    elif found := variable(scalar.value):
        state, (message, hint) = State.OVERRIDABLE, _overridable(service, found.name)
    return Judgement(
        service=service.name,
        line=scalar.line,
        runs=None,
        image=scalar.value,
        state=state,
        message=message,
        hint=hint,
    )


def _named(document: Document, service: Service, scalar: Scalar, wanted: Target) -> Judgement:
    prefix, again = f"service {service.name!r}", f"builder compose pin {document.file}"
    hint: str | None
    if wanted.digest is None:
        state = State.UNPROVEN
        said = stated(scalar.value)
        held = "its digest is" if said is not None and _digest(said) else "it has no digest, and is"
        message = f"{prefix}: nobody has accepted what {wanted.shown} bakes to: {held} unproven"
        hint = f"builder build {wanted.name}, then builder accept {wanted.name}, then {again}"
    else:
        image, said = wanted.image(scalar.value), stated(scalar.value)
        state, message, hint = State.PINNED, "", None
        if said != image:
            state, hint = State.LOOSE, again
            message = f"{prefix}: {scalar.value!r}, wanted {image!r} ({wanted.shown})"
        elif found := variable(scalar.value):
            state, (message, hint) = State.OVERRIDABLE, _overridable(service, found.name)
    return Judgement(
        service=service.name,
        line=scalar.line,
        runs=service.runs,
        image=scalar.value,
        state=state,
        message=message,
        hint=hint,
    )


def _overridable(service: Service, name: str) -> tuple[str, str]:
    return (
        f"service {service.name!r}: can be overridden by {name}, in the environment or in .env",
        "builder compose pin without --keep-override replaces the variable, too",
    )


def _digest(text: str) -> Digest | None:
    try:
        return Reference.parse(text).digest
    except BuilderError:
        return None
