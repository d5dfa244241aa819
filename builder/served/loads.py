"""Services to the models that they load."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from builder.compose.composition import Composition
from builder.compose.container import Container, contained
from builder.compose.include import Read
from builder.compose.interpolation import shown
from builder.compose.service import has_services, services
from builder.compose.weights import Named, named_models
from builder.errors import BuilderError, ProjectError
from builder.lock.model import ModelPin
from builder.models.place import Place
from builder.node import did_you_mean, nearest
from builder.project import Project
from builder.served.mounts import Unmapped
from builder.served.pins import by_hub_id, by_path
from builder.value import value
from builder.variant import Variant


@value
class Served:
    """A model that a service loads: its pin and place, or why it cannot be verified. ``remark`` is
    what else there is to tell."""

    service: str
    file: str
    line: int
    option: str = ""
    named: str = ""
    pin: ModelPin | None = None
    place: Place | None = None
    problem: str | None = None
    hint: str | None = None
    remark: str | None = None


def served(
    composition: Composition,
    project: Project,
    *,
    mapped: Callable[[str], Mapping[str, str]],
    wanted: Sequence[str],
    read: Read,
) -> tuple[Served, ...]:
    """What each service loads. A service that loads nothing, and runs no variant with models, has
    no entry.

    Args:
        mapped: What builder.yaml says that the services of a file run.
        wanted: Names of services; all for none.
        read: Reads files of variables.

    Raises:
        ProjectError: The files have no services, none of a wanted name, or none that loads a model.
    """
    runs = _runs(composition, mapped)
    files = composition.sources[-1].file
    names = list(composition.services)
    if not names:
        raise ProjectError(f"{files}: no services", hint="is it a compose file?")
    for name in wanted:
        if name not in names:
            hint = did_you_mean(nearest(name, names)) or f"there are: {', '.join(names)}"
            raise ProjectError(f"{files}: no service {name!r}", hint=hint)
    found: list[Served] = []
    for name, composed in composition.services.items():
        if wanted and name not in wanted:
            continue
        blank = Served(service=name, file=composed.file, line=composed.line)
        try:
            variant = project.variant(runs[name]) if runs.get(name) in project.recipes else None
            given = contained(composed, read=read)
            found += _of_service(blank, _with_image(given, variant), variant, project)
        except BuilderError as error:
            found.append(replace(blank, problem=error.message, hint=error.hint))
    if not found:
        raise ProjectError(
            f"{files}: no service loads a model, as far as its command line says",
            hint="known are --model, vllm serve MODEL, --model-path, -m and their like",
        )
    return tuple(found)


def _runs(
    composition: Composition, mapped: Callable[[str], Mapping[str, str]]
) -> Mapping[str, str]:
    """What services say that they run; of several files the last that says it."""
    said: dict[str, str] = {}
    for source in composition.sources:
        names = mapped(source.file)
        if names or has_services(source.document):
            known = services(source.document, names)
            said |= {item.name: item.runs for item in known if item.runs is not None}
    return said


def _with_image(given: Container, variant: Variant | None) -> Container:
    """What the image adds, where it is that of a variant: an entrypoint in the file takes the
    image's command away, too."""
    if variant is None:
        return given
    image = variant.image
    environment = {name: text for name, text in image.env if text is not None}
    words = given.words
    if not given.has_entrypoint:
        own = given.words if given.has_command else image.command or ()
        words = (*(image.entrypoint or ()), *own)
    return replace(
        given,
        words=words,
        has_entrypoint=given.has_entrypoint or bool(image.entrypoint),
        environment={**environment, **given.environment},
    )


def _of_service(
    blank: Served, given: Container, variant: Variant | None, project: Project
) -> list[Served]:
    names = named_models(given)
    found = [_one(blank, given, name, variant, project) for name in names]
    lacking = [
        name
        for name in (variant.models if variant is not None else ())
        if name not in {item.pin.name for item in found if item.pin is not None}
    ]
    resolved = all(item.pin is not None for item in found)  # one that is not may be what is lacking
    if lacking and variant is not None and resolved:
        said = f"variant {variant.name} has {', '.join(lacking)}, which it does not load"
        problem = None if names else f"its command line names no model; {said}"
        found.append(replace(blank, problem=problem, remark=said if names else None))
    return found


def _one(
    blank: Served, given: Container, name: Named, variant: Variant | None, project: Project
) -> Served:
    blank = replace(blank, option=name.option, named=shown(name.text))
    try:
        if name.unknown is not None:
            raise Unmapped(name.unknown, "set it, or write the model as it is")
        if variant is not None:
            own = [project.models[model] for model in variant.models]
        else:
            own = list(project.models.values())
        if name.is_path:
            alone = variant is not None and len(own) == 1
            pin, place = by_path(given, name, own, alone=alone)
        else:
            pin, place = by_hub_id(given, name, own)
        if not pin.files:
            raise Unmapped(f"no files of {pin.name} are locked", f"builder lock {pin.name}")
    except Unmapped as error:
        return replace(blank, problem=error.problem, hint=error.hint)
    return replace(blank, pin=pin, place=place)
