"""Compose files of the project: whether each image is pinned, and to what the lock says."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from posixpath import dirname, join, normpath

from builder.check.finding import Finding, Severity, error_at
from builder.compose.document import Document, read
from builder.compose.include import included
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
            document, names = read(project.document(file), file=file), mapped(project, file)
            if not names and not has_services(document):
                continue  # a fragment, or a file that services mount
            found = judged(project, document, mapped=names, platform=platform)
        except BuilderError as error:
            if not wanted:
                yield _refused(file, error)
            continue
        for item in found:
            if not wanted or item.runs in wanted:
                yield from finding(item, file)
        if not wanted:
            yield from left_out(document, file, files)


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
    project: Project, document: Document, *, mapped: Mapping[str, str], platform: Platform
) -> tuple[Judgement, ...]:
    """Every image of a compose file against the lock. What was only built and never accepted is no
    lock: every machine says the same.

    Raises:
        ProjectError: The file has no services.
    """
    return judge(document, services(document, mapped), targets(project, platform))


def left_out(document: Document, path: str, looked_at: Collection[str]) -> Iterator[Finding]:
    """The files that a file includes and nobody looks at: images in them may be anything.

    Args:
        path: Where the file is, from where ``looked_at`` begin.
    """
    known = set(map(normpath, looked_at))
    for item in included(document):
        if normpath(join(dirname(path), item.value)) not in known:
            yield Finding(
                severity=Severity.WARNING,
                where=f"{document.file}:{item.line}",
                message=f"it includes {item.value!r}, which is not looked at",
                hint="each file is looked at by itself: builder compose check takes it, too",
                exit_status=0,
            )


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
