"""``builder models verify --compose``: what the services of compose files load, on this machine."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.cli import show
from builder.cli.compose import in_project, read_file
from builder.cli.site import Site
from builder.compose.composition import Source
from builder.compose.document import read
from builder.compose.env_file import read_variables
from builder.compose.include import compose
from builder.errors import ProjectError
from builder.project_files import Files
from builder.quoting import harmless
from builder.served.loads import Served, served
from builder.strict_yaml import SIZE_LIMIT

if TYPE_CHECKING:
    from builder.lock.model import ModelPin
    from builder.models.place import Place


_log = logging.getLogger(__name__)

_DEFAULTS = frozenset({"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"})
_OVERRIDES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)
"""What Docker Compose reads by itself beside one of the defaults, where no file is named."""


def models_of(site: Site, files: Sequence[str], names: Sequence[str]) -> tuple[Served, ...]:
    """What services of compose files load, which are one project.

    Raises:
        ProjectError: See :func:`builder.compose.include.compose` and
            :func:`builder.served.loads.served`.
    """
    from builder.check.composes import mapped

    directory = os.path.dirname(os.path.abspath(files[0]))  # noqa: PTH100, PTH120 - links stay
    if len(files) == 1 and os.path.basename(files[0]) in _DEFAULTS:  # noqa: PTH119 - as above
        _tell_overrides(files[0], directory)
    environment = site.settings.environment
    own = _read(str(Path(directory) / ".env"))
    variables = {} if own is None else read_variables(own, environment, file=f"{directory}/.env")
    sources = [
        Source(
            document=read(read_file(file), file=file),
            directory=directory,
            variables={**variables, **environment},
        )
        for file in files
    ]
    return served(
        compose(sources, read=_read),
        site.project,
        mapped=lambda file: mapped(site.project, in_project(site, file)),
        wanted=names,
        read=_read,
    )


def _tell_overrides(file: str, directory: str) -> None:
    for name in _OVERRIDES:
        if os.path.lexists(Path(directory, name)):
            _log.warning(
                "%s: docker compose reads %s, too, where no file is named, and it is not read here:"
                " docker compose config prints both in one",
                file,
                name,
            )


def _read(path: str) -> bytes | None:
    return None if "\0" in path else Files(Path()).read(path, limit=SIZE_LIMIT)


def places(found: Sequence[Served]) -> "list[tuple[ModelPin, Place]]":
    """Each model in each place once, however many services load it."""
    unique = {
        (item.pin.name, item.place.directory): (item.pin, item.place)
        for item in found
        if item.pin is not None and item.place is not None
    }
    return list(unique.values())


def text(found: Sequence[Served]) -> str:
    """What is loaded from where, for people; what cannot be verified below it."""
    rows = [
        (harmless(item.service), item.option, item.pin.name, harmless(str(item.place.directory)))
        for item in found
        if item.pin is not None and item.place is not None
    ]
    lines = [show.table(("SERVICE", "OPTION", "MODEL", "DIRECTORY"), rows)] if rows else []
    for item in found:
        named = f"{item.option} {harmless(item.named)}" if item.option else ""
        said = ": ".join(filter(None, (harmless(item.service), named)))
        if item.problem is not None:
            lines.append(f"{said}: {harmless(item.problem)}")
            lines += [f"  hint: {harmless(item.hint)}"] if item.hint is not None else []
        if item.remark is not None:
            lines.append(f"{said}: {harmless(item.remark)}")
    return "\n".join(lines)


def document(found: Sequence[Served]) -> list[dict[str, Any]]:
    """The same for ``--json``."""
    return [
        {
            "service": item.service,
            "file": item.file,
            "line": item.line,
            "option": item.option or None,
            "named": item.named or None,
            "model": None if item.pin is None else item.pin.name,
            "directory": None if item.place is None else str(item.place.directory),
            "problem": item.problem,
            "hint": item.hint,
            "remark": item.remark,
        }
        for item in found
    ]


def unverified(files: Sequence[str], found: Sequence[Served]) -> ProjectError | None:
    """The error for models that could not be found."""
    count = sum(item.problem is not None for item in found)
    if not count:
        return None
    total = count + sum(item.pin is not None for item in found)
    return ProjectError(
        f"{' and '.join(files)}: {count} of {total} models that services load cannot be verified",
        hint="each is named above, with what to do",
    )
