"""Compose files of the project: whether each image is pinned, and to what the lock says."""

import re
from collections.abc import Iterator, Mapping, Sequence

from builder.check.finding import Finding, Severity, error_at
from builder.compose.document import read
from builder.compose.judge import WARNED, WRONG, Judgement, judge
from builder.compose.service import has_services, services
from builder.compose.target import targets
from builder.errors import BuilderError, ProjectError
from builder.oci import Platform
from builder.project import Project


def composes(project: Project, wanted: Sequence[str], *, platform: Platform) -> Iterator[Finding]:
    """What is wrong with the project's own compose files; with names, where a service runs a
    variant of one of them."""
    try:
        files = project.composes()
    except ProjectError as error:
        if error.message.startswith("composes"):
            yield error_at("composes", error)
        return  # builder.yaml is said by documents
    for file in files:
        try:
            data, names = project.document(file), mapped(project, file)
            if not names and not has_services(read(data, file=file)):
                continue  # a fragment, or a file that services mount
            found = judged(project, data, file=file, mapped=names, platform=platform)
        except BuilderError as error:
            if not wanted:
                yield _refused(file, error)
            continue
        for item in found:
            if not wanted or item.runs in wanted:
                yield from finding(item, file)


def _refused(file: str, error: BuilderError) -> Finding:
    """A refusal of a file that may be anywhere in the project."""
    found = re.fullmatch(rf"({re.escape(file)}(?::\d+){{0,2}}): (.*)", error.message, re.DOTALL)
    where, message = (file, error.message) if found is None else found.groups()
    return Finding(
        severity=Severity.ERROR,
        where=where,
        message=message,
        hint=error.hint,
        exit_status=error.exit_status,
    )


def mapped(project: Project, file: str) -> Mapping[str, str]:
    """What builder.yaml says that services of ``file``, a path in the project, run."""
    return {item.service: item.runs for item in project.settings.composes if item.file == file}


def judged(
    project: Project, data: bytes, *, file: str, mapped: Mapping[str, str], platform: Platform
) -> tuple[Judgement, ...]:
    """Every image of a compose file against the lock. What was only built and never accepted is no
    lock: every machine says the same.

    Raises:
        ProjectError: The file cannot be read, or has no services.
    """
    document = read(data, file=file)
    return judge(document, services(document, mapped), targets(project, platform))


def finding(item: Judgement, file: str) -> Iterator[Finding]:
    """What there is to say of an image: nothing where it is as it shall be."""
    if item.state in WRONG or item.state in WARNED:
        wrong = item.state in WRONG
        yield Finding(
            severity=Severity.ERROR if wrong else Severity.WARNING,
            where=f"{file}:{item.line}",
            message=item.message,
            hint=item.hint,
            exit_status=ProjectError.exit_status if wrong else 0,
        )
