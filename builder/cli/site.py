"""Where a command works: the project, its platform, its store and the world, opened in one place.

A command is a function of a :class:`Site` and its own parameters::

    @project_command("load", VARIANT, click.option("--name"))
    def command(site: Site, variant: str, name: str | None) -> None:
        with site.at_work(variant) as world:
            ...
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import cached_property, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from builder.adapters.store import FileStore
from builder.cli.settings import (
    SHARED,
    Settings,
    command_with_settings,
    platform_option,
)
from builder.cli.world import is_project, open_project, open_store, open_world, platform_of, today
from builder.digest import Digest
from builder.errors import ProjectError, UsageError
from builder.oci import Platform
from builder.pipeline import kept
from builder.project import Project
from builder.settings.model import FILE as SETTINGS_FILE
from builder.settings.model import ProjectSettings
from builder.world import World

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Site:
    """The project in ``-C DIR`` and what belongs to it; each part is opened when it is needed.

    Args:
        settings: The shared options.
        asked: ``--platform``.
        anywhere: The command works where no project is, too: then nothing is stated, and whoever
            asks for the project is refused.
    """

    def __init__(
        self, settings: Settings, asked: Platform | None = None, *, anywhere: bool = False
    ) -> None:
        self.settings = settings
        self.asked = asked
        self.homeless = anywhere and not is_project(settings)
        """Whether there is no project here, and none is needed."""

    @cached_property
    def project(self) -> Project:
        return open_project(self.settings)

    @cached_property
    def ours(self) -> ProjectSettings:
        """What builder.yaml says, if anything."""
        return ProjectSettings(at=SETTINGS_FILE) if self.homeless else self.project.settings

    @cached_property
    def platform(self) -> Platform:
        return platform_of(self.ours, self.asked)

    @cached_property
    def store(self) -> FileStore:
        return open_store(self.settings, self.ours)

    @cached_property
    def today(self) -> date:
        """The day in UTC: what waivers end by."""
        return today()

    def image(self, name: str) -> Digest:
        """The image that is meant: a variant's (its last build on this machine), or that of a
        digest.

        Raises:
            UsageError: It looks like a digest, and is none.
            ProjectError: The variant is not there, or was not built.
        """
        if not name.startswith("sha256:"):
            return kept(self.project, name, store=self.store, platform=self.platform)
        try:
            return Digest.parse(name)
        except ProjectError as error:
            raise UsageError(
                error.message, hint="builder build --json and builder store du --json print digests"
            ) from error

    @contextmanager
    def at_work(self, *variants: str, host_limit: float | None = None) -> Iterator[World]:
        """Everything that the flow may touch; what is written to the store meanwhile is not
        collected, and what was opened is closed after it. The recipes are read first: a name that
        leads nowhere makes no store. ``host_limit``: see :func:`builder.cli.world.open_world`."""
        for name in variants:
            self.project.variant(name)
        with self.looking(host_limit=host_limit) as world, world.store.lease():
            yield world

    @contextmanager
    def looking(self, *, host_limit: float | None = None) -> Iterator[World]:
        """As :meth:`at_work`, for those who write nothing to the store: it need not be there."""
        with ExitStack() as closing:
            yield open_world(
                self.settings, self.ours, self.store, closing=closing, host_limit=host_limit
            )


def project_command(
    name: str, *parameters: Callable[[Any], Any], anywhere: bool = False
) -> Callable[[Callable[..., None]], click.Command]:
    """A command on a project: its own parameters, ``--platform``, and the shared options.
    ``anywhere``: see :class:`Site`."""

    def decorate(function: Callable[..., None]) -> click.Command:
        def on_site(settings: Settings, platform: Platform | None, **given: Any) -> None:
            function(Site(settings, platform, anywhere=anywhere), **given)

        command = command_with_settings(update_wrapper(on_site, function))
        for parameter in reversed((*parameters, platform_option, *SHARED)):
            command = parameter(command)
        return click.command(name)(command)

    return decorate


def variant_names(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """For shells: the names in ``variants/`` that begin so. The files are not read."""
    from click.shell_completion import CompletionItem

    directory = Path((context.find_root().obj or {}).get("directory", ".")) / "variants"
    names = sorted(path.stem for path in directory.glob("*.yaml"))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


VARIANT = click.argument("variant", shell_complete=variant_names)
VARIANTS = click.argument(
    "variants", nargs=-1, required=True, metavar="VARIANT...", shell_complete=variant_names
)
