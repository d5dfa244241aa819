"""Services and targets to edits of single scalars."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from builder.compose.document import Document, Scalar, read
from builder.compose.interpolation import variable
from builder.compose.service import Service, block_header
from builder.compose.target import Target
from builder.errors import ProjectError, UsageError

_SHOWN = 10
"""How many services a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A service with what its image was and shall be, ``${...}`` and all; equal where nothing is to
    be done."""

    service: str
    line: int
    target: Target
    before: str
    after: str

    @property
    def override(self) -> str | None:
        """The variable that puts another image in place of this one, where it is set."""
        found = variable(self.after)
        return None if found is None else found.name


def pin(
    document: Document,
    services: Sequence[Service],
    target: Callable[[Service], Target],
    *,
    keep_override: bool = False,
) -> tuple[bytes, tuple[Pinned, ...]]:
    """The bytes of the file with the image of each service that names something pinned, and what
    was done. Nothing else is touched; the result is read again to prove it.

    Args:
        target: What a service's name stands for.
        keep_override: Where an image is ``${NAME:-DEFAULT}``, edit the default only. Otherwise all
            of it is replaced, so that nothing but the file decides what runs.

    Raises:
        ProjectError: An image cannot be pinned; nothing of the file is edited then.
    """
    done: list[Pinned] = []
    edits: dict[int, tuple[Scalar, str]] = {}
    shared = sharing(services)
    for service in services:
        if service.runs is None:
            continue
        check_editable(document, service)
        for scalar in service.images:
            check_shared(document, scalar, service, shared)
            with _at(document, scalar, service):
                wanted = target(service)
                after = _after(scalar, wanted.image(scalar.value), keep_override)
            if edits.setdefault(scalar.event, (scalar, after)) != (scalar, after):
                raise ProjectError(
                    f"{document.file}:{scalar.line}: service {service.name!r} shares its image with"
                    " one of another platform",
                    hint="give each an image of its own",
                )
            done.append(
                Pinned(
                    service=service.name,
                    line=scalar.line,
                    target=wanted,
                    before=scalar.value,
                    after=after,
                )
            )
    return edited(document, edits.values()), tuple(done)


def check_editable(document: Document, service: Service) -> None:
    """Refuse a service that names what it runs and has no image to pin.

    Raises:
        ProjectError: What it runs is built on the spot, stands in another file, or nowhere.
    """
    at = f"{document.file}:{service.shown_line}: service {service.name!r}"
    if service.built:
        raise ProjectError(
            f"{at}: it names {service.runs!r}, and has 'build': what it runs is built here",
            hint="remove 'build', or the name",
        )
    if service.odd:
        raise ProjectError(f"{at}: its image is no text", hint="write REPOSITORY:TAG")
    if not service.images and service.elsewhere is not None:
        raise ProjectError(
            f"{at}: it names {service.runs!r}, and its image is that of {service.elsewhere}",
            hint="name it and pin it there",
        )
    if not service.images:
        raise ProjectError(
            f"{at}: it names {service.runs!r}, and has no image",
            hint="write 'image: REPOSITORY:TAG'; it is pinned from then on",
        )


Sharing: TypeAlias = Mapping[int, Sequence[Service]]
"""Which services have each scalar for an image, by its event."""


def sharing(services: Iterable[Service]) -> Sharing:
    """See :data:`Sharing`."""
    shared: dict[int, list[Service]] = {}
    for service in services:
        for scalar in service.images:
            shared.setdefault(scalar.event, []).append(service)
    return shared


def check_shared(document: Document, scalar: Scalar, service: Service, shared: Sharing) -> None:
    """Refuse an image that other services have too, through an alias, a merge key or ``extends``,
    unless they name the same.

    Raises:
        ProjectError: With the names of those services.
    """
    others = [
        f"{other.name!r} ({other.runs!r})" if other.runs else f"{other.name!r} (nothing)"
        for other in shared[scalar.event]
        if other.runs != service.runs
    ]
    if others:
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        raise ProjectError(
            f"{document.file}:{scalar.line}: service {service.name!r} names {service.runs!r}, and"
            " shares its image with services that name something else:"
            f" {', '.join(others[:_SHOWN])}{more}",
            hint="let all of them name the same, or give each an image of its own",
        )


@contextmanager
def _at(document: Document, scalar: Scalar, service: Service) -> Iterator[None]:
    """Say where a name or an image is that is refused inside."""
    try:
        yield
    except (ProjectError, UsageError) as error:
        at = f"{document.file}:{scalar.line}: service {service.name!r}"
        raise ProjectError(f"{at}: {error.message}", hint=error.hint) from error


def _after(scalar: Scalar, image: str, keep_override: bool) -> str:
    if not keep_override or "$" not in scalar.value:
        return image
    found = variable(scalar.value)
    if found is None or found.default is None:
        raise ProjectError(
            f"{scalar.value!r} has no default of its own to pin",
            hint="without --keep-override all of it is replaced",
        )
    return found.with_default(image)


def edited(document: Document, edits: Iterable[tuple[Scalar, str]]) -> bytes:
    """The bytes of a file with other values for some scalars, each in the style that it has.

    Raises:
        ProjectError: A scalar cannot have that value where it stands, or something else would
            change.
    """
    wanted = [(scalar, value) for scalar, value in edits if scalar.value != value]
    if not wanted:
        return document.data
    pieces, done = [], 0
    for scalar, value in sorted(wanted, key=lambda item: item[0].start):
        start, end, text = _replacement(document.text, scalar, value)
        pieces += [document.text[done:start], text]
        done = end
    data = document.mark + "".join([*pieces, document.text[done:]]).encode()
    _prove(document, data, wanted)
    return data


def _replacement(text: str, scalar: Scalar, value: str) -> tuple[int, int, str]:
    """What to put where. Values are references, with or without ``${...}`` around them: nothing in
    them needs an escape in any style, except an IPv6 address at the start of a plain one."""
    if scalar.style in {"|", ">"}:
        start = text.index("\n", block_header(text, scalar)) + 1
        body = text[start : scalar.end]
        start += len(body) - len(body.lstrip())
        return start, start + len(body.strip()), value
    quote = '"' if value.startswith("[") and not scalar.style else scalar.style
    return scalar.start, scalar.end, f"{quote}{value}{quote}"


def _prove(document: Document, data: bytes, edits: Iterable[tuple[Scalar, str]]) -> None:
    """Read the result, and compare everything that it says with what the file said."""
    edits = list(edits)
    values = {scalar.event: value for scalar, value in edits}
    expected = tuple(
        (kind, anchor, tag, values.get(number, value))
        for number, (kind, anchor, tag, value) in enumerate(document.signature)
    )
    try:
        same = read(data, file=document.file).signature == expected
    except ProjectError:
        same = False
    if not same:
        lines: Iterator[int] = (scalar.line for scalar, _ in edits)
        shown = ", ".join(str(line) for line in sorted(lines))
        raise ProjectError(
            f"{document.file}: the image on line {shown} cannot be replaced by itself",
            hint="write it on one line: image: REPOSITORY:TAG",
        )
