"""Each file of the project by itself."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from builder.check.finding import Finding, error_at, warning_at
from builder.errors import ProjectError
from builder.lock import codec
from builder.lock.model import Lock
from builder.node import did_you_mean, nearest
from builder.project import Project
from builder.schema_check import check as check_schema
from builder.schema_check import kind_of

PinT = TypeVar("PinT")


def documents(project: Project) -> Iterator[Finding]:
    """Every file as a build reads it; then by its published schema, which is what editors show."""
    for file in project.documents():
        try:
            _read(project, file)
            check_schema(project.document(file), kind=kind_of(file) or "", file=file)
        except ProjectError as error:
            yield error_at(file, error)


def _read(project: Project, file: str) -> object:
    directory, _, rest = file.partition("/")
    match directory:
        case "variants":
            return project.variant(rest.removesuffix(".yaml"))
        case "overlays":
            return project.overlay(rest.partition("/")[0])
        case "lockfiles" if rest.startswith("images/"):
            return project.results(rest.removeprefix("images/").removesuffix(".yaml"))
        case "lockfiles":
            return _pins(project, file)
        case "trust.yaml":
            from builder.trust.codec import read_policy  # noqa: PLC0415 - few projects have one

            return read_policy(project.document(file))
        case _:
            return project.settings


def _pins(project: Project, file: str) -> object:
    match file:
        case codec.IMAGES:
            return project.images
        case codec.PULLS:
            for pull in project.pulls.values():
                codec.check_published(pull, project.sources)
            return project.pulls
        case codec.SOURCES:
            return project.sources
        case codec.WHEELS:
            return project.wheels
        case codec.MODELS:
            return project.models
        case codec.WAIVERS:
            return project.waivers
        case _:
            return project.genesis


def readable(project: Project) -> Lock:
    """The pins of those lockfiles that can be read. Of the others, :func:`documents` speaks."""
    return Lock(
        images=_or_none(lambda: project.images),
        pulls=_or_none(lambda: project.pulls),
        sources=_or_none(lambda: project.sources),
        wheels=_or_none(lambda: project.wheels),
        genesis=_or_none(lambda: project.genesis),
        models=_or_none(lambda: project.models),
        waivers=_or_none(lambda: project.waivers),
    )


def _or_none(pins: Callable[[], Mapping[str, PinT]]) -> Mapping[str, PinT]:
    try:
        return pins()
    except ProjectError:
        return {}


def strays(project: Project) -> Iterator[Finding]:
    """What stands between recipes and locks and is none: a name that is misspelt, most often."""
    for file in project.strays():
        if file.startswith("variants/"):
            try:
                project.variants()
            except ProjectError as error:
                yield error_at(file, error)
        else:
            near = nearest(file, codec.FILES)
            yield warning_at(file, "nothing reads it", hint=did_you_mean(near) or "remove it")


def orphans(project: Project) -> Iterator[Finding]:
    """Accepted results of a variant that is gone."""
    documents = project.documents()
    for file in documents:
        name = file.removeprefix("lockfiles/images/")
        if name != file and f"variants/{name}" not in documents:
            yield warning_at(file, f"there is no variants/{name} any more", hint="remove it")
